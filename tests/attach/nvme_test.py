"""DeepSpeed 3 with its optimizer states and parameters on NVMe, for which any folder of a file system will do.

    tests/attach/run nvme_test
"""
import collections
import unittest

import runs
from pairs import TRAIN, folder

STEPS = 3
READ, WRITE = 2, 3
WIDTH = "width=512"  # DeepSpeed leaves shards below 1 MiB where they are


def setUpModule():
    folder()


class Nvme(unittest.TestCase):
    def trained(self, name, attach):
        place = folder() / f"nvme-{name}"
        place.mkdir()
        out, made = folder() / f"nvme-{name}.out", folder() / "nvme.zscope"
        command = runs.torchrun(TRAIN, "zero3", out, f"nvme={place}", WIDTH)
        output = runs.finish(runs.start((runs.attach(made) if attach else []) + command,
                                        TORCH_EXTENSIONS_DIR=str(runs.other_folder("async_io"))))
        self.assertTrue(any(path.stat().st_size for path in place.rglob("*.swp")), "nothing went to NVMe")
        return runs.results(out), made, output

    def test_states_are_read_and_written_whole_and_training_is_the_same(self):
        plain = self.trained("plain", False)[0]
        attached, made, output = self.trained("attached", True)
        self.assertEqual(plain, attached)
        self.assertNotIn("is off", output)
        recording = runs.read(made)
        moved = collections.defaultdict(list)
        for span in recording.spans_of(0, "transfer_begin"):
            if span["stream"] == "nvme":
                moved[int(span["code"])].append(int(span["v0"]))
        shard = 4 * sum(int(param["shard_elems"]) for param in recording.params)
        # Master weights alone before the first update, which makes Adam's two states.
        self.assertEqual(dict(moved), {READ: [shard] + [3 * shard] * (STEPS - 1), WRITE: [3 * shard] * STEPS})


if __name__ == "__main__":
    unittest.main()
