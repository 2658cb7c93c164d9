"""Every way of starting a training run: launchers, the samples, `python -m shardscope`, calls in code, `--view`."""
import os
import shutil
import subprocess
import sys
import unittest

import runs
from pairs import TRAIN, folder, plain

SAMPLES = runs.ROOT / "samples" / "attach"
WITH_SCRIPTS = f"{runs.HERE / 'scripts'}:{runs.process_environment()['PATH']}"  # where a `srun` is


def setUpModule():
    folder()


class Launchers(unittest.TestCase):
    """Two ranks whatever starts them, recorded as `expected` plain results say."""

    def check(self, name, command, case, **environment):
        recording, out = folder() / f"{name}.zscope", folder() / name
        output = runs.finish(runs.start(runs.attach(recording) + command(out), **environment))
        self.assertEqual(runs.results(out), plain(case), output[-2000:])
        events = runs.read(recording)
        self.assertEqual({row["rank"] for row in events.table("ranks")}, {"0", "1"})
        for rank in range(2):
            self.assertEqual(len(events.of(rank, "loss")), 3)

    def test_deepspeed(self):
        self.check("by-deepspeed", lambda out: [runs.PYTHON, "-m", "deepspeed.launcher.runner", "--num_gpus", 2, "--master_port",
                                                runs.free_port(), TRAIN, "zero3", out], ("zero3",))

    def test_accelerate(self):
        # With --cpu it starts one process, or mpirun's.
        self.check("by-accelerate", lambda out: [runs.PYTHON, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", 2,
                                                 "--num_machines", 1, "--mixed_precision", "no", "--dynamo_backend", "no",
                                                 "--main_process_port", runs.free_port(), TRAIN, "fsdp2", out], ("fsdp2",))

    def test_torchrun_module(self):
        self.check("by-module", lambda out: [runs.PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port",
                                             runs.free_port(), "-m", "train", "fsdp2", out], ("fsdp2",),
                   PYTHONPATH=runs.process_environment()["PYTHONPATH"] + f":{runs.HERE}")

    def test_mpirun(self):
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        script = f"RANK=$OMPI_COMM_WORLD_RANK LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK exec {runs.PYTHON} {TRAIN} fsdp2"
        self.check("by-mpirun", lambda out: ["mpirun", *as_root, "--oversubscribe", "--bind-to", "none", "-n", 2, "bash", "-c",
                                             f"{script} {out}"], ("fsdp2",), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(runs.free_port()))

    def test_srun(self):
        """Every task is a rank, by Slurm's variables."""
        script = f"RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS exec {runs.PYTHON} {TRAIN} fsdp2"
        self.check("by-srun", lambda out: ["srun", "-n", 2, "bash", "-c", f"{script} {out}"], ("fsdp2",), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(runs.free_port()), PATH=WITH_SCRIPTS)

    def test_srun_that_starts_torchrun(self):
        """The launcher has the variables of task 0 and is no rank; its ranks have them too, and are."""
        self.check("by-srun-torchrun", lambda out: ["srun", "-n", 1, *runs.torchrun(TRAIN, "fsdp2", out)], ("fsdp2",), PATH=WITH_SCRIPTS)

    def test_without_torchs_entry_points(self):
        """sitecustomize is enough."""
        self.check("no-autoload", lambda out: runs.torchrun(TRAIN, "fsdp2", out), ("fsdp2",), TORCH_DEVICE_BACKEND_AUTOLOAD="0")


class InCode(unittest.TestCase):
    """A collector that runs already."""

    def recorded(self, name, command):
        recording, endpoint = folder() / f"{name}.zscope", f"ipc://{folder()}/{name}.sock"
        collector = runs.start([runs.SHARDSCOPE, "record", recording, "--listen", endpoint])
        out = folder() / name
        runs.finish(runs.start(command(endpoint, out)))
        runs.finish(collector)
        self.assertEqual(runs.results(out), plain(("fsdp2",)))
        return runs.read(recording)

    def test_python_m_shardscope(self):
        events = self.recorded("by-m", lambda endpoint, out: [
            runs.PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port", runs.free_port(),
            "-m", "shardscope", "--endpoint", endpoint, TRAIN, "fsdp2", out])
        self.assertEqual(len(events.of(1, "loss")), 3)

    def test_attach_and_detach(self):
        """After detach() the classes are as they were and training continues unrecorded."""
        script = folder() / "detach.py"
        script.write_text(f"""
import sys
import torch.distributed.fsdp._fully_shard._fsdp_param_group as groups
before = dict(vars(groups.FSDPParamGroup))
import shardscope, torch
shardscope.attach(endpoint=sys.argv.pop(1), run_id="by-code")
assert vars(groups.FSDPParamGroup)["unshard"] is not before["unshard"]
sys.path.insert(0, {str(runs.HERE)!r})
import train
step, steps = torch.optim.AdamW.step, 0
def counted(self, *args, **kwargs):
    global steps
    result = step(self, *args, **kwargs)
    steps += 1
    if steps == 2:
        shardscope.detach()
        assert dict(vars(groups.FSDPParamGroup)) == before
    return result
torch.optim.AdamW.step = counted
train.main()
""", encoding="utf-8")
        events = self.recorded("by-code", lambda endpoint, out: runs.torchrun(script, endpoint, "fsdp2", out))
        self.assertEqual(len(events.of(0, "loss")), 2)


class Samples(unittest.TestCase):
    def check(self, name, framework):
        recording = folder() / f"sample-{name}.zscope"
        output = runs.finish(runs.start(runs.attach(recording) + runs.torchrun(SAMPLES / f"{name}.py"), HF_HUB_OFFLINE="1"))
        self.assertNotIn("is off", output)
        summary = runs.figures(recording)
        self.assertEqual((summary["dropped"], summary["run"]["world"]), (0, 2))
        self.assertGreater(summary["steps"], 1)
        self.assertGreater(len(summary["loss"]), 1)
        self.assertIn(framework, str(summary["run"]))

    def test_fsdp2(self):
        self.check("fsdp2", "FSDP2")

    def test_ddp(self):
        self.check("ddp", "DistributedDataParallel")

    def test_deepspeed_zero3(self):
        self.check("deepspeed_zero3", "DeepSpeed")

    def test_trainer(self):
        self.check("trainer", "DeepSpeed")


@unittest.skipUnless(shutil.which("xvfb-run"), "needs xvfb")
class View(unittest.TestCase):
    def test_dashboard_opens_and_closing_it_ends_attach(self):
        """`--view` under a virtual display: the window stays after the training, SIGINT ends both."""
        recording, out = folder() / "view.zscope", folder() / "view"
        process = runs.start(["timeout", "--signal=INT", "60", "xvfb-run", "-a", *runs.attach(recording, "--view"),
                              *runs.torchrun(TRAIN, "fsdp2", out)])
        output = runs.finish(process, expected=None)
        self.assertIn("training has ended; close the window to finish", output)
        self.assertEqual(runs.results(out), plain(("fsdp2",)))


if __name__ == "__main__":
    unittest.main()
