"""The helper that is compiled against torch: what it counts, with torch's own CUDA allocator over memory of the host, and that
a run without it, or with one that cannot be used, trains as before.

    tests/attach/run torch_helper_test

There is no GPU: nothing computes on the device, its memory is allocated and freed by the script.
"""
import json
import os
import pathlib
import re
import subprocess
import unittest

import runs
from pairs import folder

MIB = 1 << 20
BUILD = (runs.PYTHON, "-m", "shardscope.torch_helper")
# Prints what each reading was, then the allocator's own figures.
COUNTS = """
import json, sys, warnings
warnings.simplefilter("ignore")
import torch
from shardscope import torch_helper
MIB = 1 << 20
torch.cuda.init()
before = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
above = torch_helper.peaks() if sys.argv[1] == "1" else lambda device: 0
read = []
def look():
    read.append(above(0))
look()                                                                        # nothing has happened
kept = torch.empty(10 * MIB, dtype=torch.uint8, device="cuda"); look()        # the peak is the present level
brief = torch.empty(7 * MIB + 13, dtype=torch.uint8, device="cuda"); del brief; look()
look()                                                                        # that peak has been read
del before, kept; look()                                                      # 13 MiB above what is left
try:
    torch.empty(300 * MIB, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    pass
look()                                                                        # was never there
shared = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
shared.record_stream(torch.cuda.ExternalStream(16))
del shared; look()                                                            # freed, though the stream may still use it
look()
print(json.dumps([read, torch.cuda.memory_stats()]))
"""
# As seen by the package: a model on the CPU, and memory that its backward needs on the device for a while.
TRAIN = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
import torch.distributed as dist
from shardscope import _memory
MIB = 1 << 20
torch.cuda.init()
watch = _memory.Memory.watch
_memory.Memory.watch = lambda self, model, source_of, device: watch(self, model, source_of, "cuda")
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
torch.manual_seed(7)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
stays = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
for step, size in enumerate((64, 32, 48, 300)):
    out = model(torch.ones(2, 4)).sum()
    def backward(_):
        try:
            torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass
    out.register_hook(backward)
    out.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", out.item().hex())
"""


def setUpModule():
    folder()
    for library, options in (("gpu.so", ()), ("libcuda.so.1", ("-Wl,-soname,libcuda.so.1",))):
        source = driver() if options else (runs.HERE / "host_memory_gpu.c").read_text(encoding="utf-8")
        subprocess.run(["cc", "-x", "c", "-shared", "-fPIC", *options, "-o", folder() / library, "-"], input=source, text=True, check=True)


def driver():
    """The driver's functions that torch links with, of which none is called to any effect."""
    library = next(runs.ENVIRONMENT.glob("lib/python*/site-packages/torch/lib/libcaffe2_nvrtc.so"))
    symbols = subprocess.run(["readelf", "--dyn-syms", "-W", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    return "".join(f"int {name}(void) {{ return 0; }}\n" for name in sorted(set(re.findall(r"UND (cu[A-Z]\w+)", symbols))))


def start(command, cache="cache", **more):
    return runs.start(command, XDG_CACHE_HOME=str(folder() / cache), LD_PRELOAD=str(folder() / "gpu.so"), LD_LIBRARY_PATH=str(folder()), **more)


def build(cache="cache", **more):
    """Without the stand-ins, which the compiler needs as little as a user's does."""
    return runs.start(BUILD, XDG_CACHE_HOME=str(folder() / cache), PYTHONWARNINGS="ignore", **more)


class Helper(unittest.TestCase):
    built = None

    @classmethod
    def setUpClass(cls):
        cls.built = pathlib.Path(runs.finish(build()).splitlines()[-1])

    def counted(self, how):
        return json.loads(runs.finish(start([runs.PYTHON, "-c", COUNTS, how])).splitlines()[-1])

    def test_it_counts_requested_bytes_above_the_present_level(self):
        self.assertEqual(self.counted("1")[0], [0, 0, 7 * MIB + 13, 0, 13 * MIB, 0, 5 * MIB, 0])

    def test_the_allocator_does_as_without_it(self):
        self.assertEqual(self.counted("1")[1], self.counted("0")[1])

    def recorded(self, name, cache):
        made = folder() / f"helper-{name}.zscope"
        output = runs.finish(start(runs.attach(made) + [runs.PYTHON, "-c", TRAIN, folder() / f"rendezvous-{name}"], cache))
        levels = [int(event["v1"]) for event in runs.read(made).of(0, "memory_alloc", "memory_free")]
        messages = [row["text"] for row in runs.read(made).table("messages")]
        return output, [round(level / MIB) for level in levels if level > 10 * MIB], messages

    def test_each_step_has_its_own_peak(self):
        output, peaks, messages = self.recorded("with", "cache")
        self.assertNotIn("helper:", output)
        self.assertEqual(peaks, [64 + 8, 32 + 8, 48 + 8])
        refused = [text for text in messages if "out of memory" in text]
        self.assertEqual(len(refused), 1, messages)
        self.assertRegex(refused[0], r"device 0: 300.0 MiB requested; free \d+\.\d of 256.0 MiB, allocated by torch 8.0, ")
        self.assertFalse(any("torch_helper" in text for text in messages))

        without, peaks, messages = self.recorded("without", "empty")
        self.assertEqual(peaks, [64 + 8], "a lower peak than before is not seen")
        self.assertTrue(any("python -m shardscope.torch_helper" in text for text in messages))
        losses = [line for line in output.splitlines() if line.startswith("loss")]
        self.assertEqual((len(losses), losses), (4, [line for line in without.splitlines() if line.startswith("loss")]))

    def test_one_that_cannot_be_loaded_is_said_once(self):
        broken = folder() / "broken" / "shardscope" / "torch-helper" / self.built.name
        broken.mkdir(parents=True)
        (broken / "shardscope_torch_helper.so").write_text("no library", encoding="utf-8")
        output, peaks, _ = self.recorded("broken", "broken")
        self.assertEqual(output.count("shardscope: torch helper: OSError"), 1, output)
        self.assertEqual(peaks, [64 + 8])

    def test_of_another_torch_none_is_loaded(self):
        other = folder() / "other" / "shardscope" / "torch-helper" / self.built.name.replace("torch-2.", "torch-1.")
        other.mkdir(parents=True)
        os.link(self.built / "shardscope_torch_helper.so", other / "shardscope_torch_helper.so")
        _, peaks, messages = self.recorded("other", "other")
        self.assertEqual(peaks, [64 + 8])
        self.assertTrue(any("python -m shardscope.torch_helper" in text for text in messages))

    def test_without_a_compiler_one_line_says_so(self):
        output = runs.finish(build("no-compiler", CXX="/nowhere/c++"), expected=1)
        said = [line for line in output.splitlines() if line.startswith("shardscope:")]
        self.assertEqual(len(said), 1, output)
        self.assertIn("was not built", said[0])
        self.assertNotIn("Traceback", output)


if __name__ == "__main__":
    unittest.main()
