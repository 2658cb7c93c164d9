"""Which processes are armed, and what detach() puts back."""
import subprocess
import sys
import unittest
from unittest import mock

import runs
from pairs import folder

# (command of a Python as sys.orig_argv has it, whether it is a launcher's)
COMMANDS = [
    ("python train.py", False),
    ("python -u train.py --backend deepspeed", False),
    ("python -W ignore -X dev train.py torchrun", False),
    ("python -c print() torchrun", False),
    ("python", False),
    ("python -m trainer accelerate", False),
    ("python -m shardscope train.py", False),
    ("python /usr/local/bin/torchrun --nproc-per-node 2 train.py", True),
    ("python -W ignore -X dev /env/bin/accelerate launch train.py", True),
    ("python -m torch.distributed.run --nproc-per-node 2 train.py", True),
    ("python -um torch.distributed.run train.py", True),
    ("python -mtorch.distributed.launch train.py", True),
    ("python /env/lib/python3.11/site-packages/torch/distributed/run.py train.py", True),
    ("python -I -B -u -O -X faulthandler -W error -m deepspeed.launcher.runner train.py", True),
    ("python -u -m deepspeed.launcher.launch --world_info=e30= train.py", True),
    ("python -m accelerate.commands.launch train.py", True),
    ("python -m coverage run --rcfile x.ini -m torch.distributed.run train.py", True),
    ("python -m cProfile -o out /env/bin/torchrun train.py", True),
    ("python -m cProfile -o x.py -m torch.distributed.run train.py", True),
    ("python -m cProfile -s time /env/bin/ds train.py", True),
    ("python /env/bin/deepspeed.pt train.py", True),
    ("python /env/bin/coverage run -p -m torch.distributed.run train.py", True),
    ("python -m coverage run --source=deepspeed --omit torchrun /env/bin/torchrun train.py", True),
    ("python -m trace -t -m --module torch.distributed.run train.py", True),
    ("python -m debugpy --listen 5678 --configure-subProcess True -mtorch.distributed.run train.py", True),
    ("python -m coverage run -m cProfile -o deepspeed -m torch.distributed.run train.py", True),
    ("python -m cProfile train.py torchrun", False),
    ("python -m cProfile train deepspeed", False),
    ("python -m cProfile -o torchrun train.py", False),
    ("python -m coverage run --source deepspeed train.py", False),
    ("python /env/bin/coverage run --rcfile torchrun -m trainer deepspeed", False),
    ("python -m debugpy --log-to deepspeed train.py", False),
    ("python -m debugpy -c torchrun", False),
    ("python -m pdb -c deepspeed train.py", False),
    ("python -m coverage", False),
]
# What a batch system or mpirun gives to whatever it starts.
OF_RANKS = [{"SLURM_PROCID": "0"}, {"OMPI_COMM_WORLD_RANK": "1"}, {"LOCAL_RANK": "0"}, {"RANK": "0"}, {}]


def setUpModule():
    folder()
    sys.path.insert(0, str(runs.PACKAGE))  # this process is not under SHARDSCOPE_ATTACH: nothing is armed


class Armed(unittest.TestCase):
    def test_launchers_are_known_by_their_program(self):
        from shardscope import _arm
        for command, launches in COMMANDS:
            with self.subTest(command=command):
                self.assertEqual(_arm._launches(command.split()), launches)

    def test_a_launcher_is_never_armed_whatever_its_variables(self):
        from shardscope import _arm
        settings = folder() / "settings.json"
        settings.write_text('{"detail": "steps"}', encoding="utf-8")
        for command, launches in COMMANDS:
            for variables in OF_RANKS:
                with self.subTest(command=command, variables=variables), mock.patch.object(sys, "orig_argv", command.split()), \
                        mock.patch.dict("os.environ", variables), mock.patch.object(_arm, "arm") as armed:
                    _arm.arm_from(folder())
                    self.assertEqual([call.args for call in armed.call_args_list], [] if launches else [({"detail": "steps"},)])


# What the environment of a rank says, by the rank itself.
ENVIRONMENT = "import os; print(*(os.environ.get(name) for name in ('NCCL_PROFILER_PLUGIN', 'SHARDSCOPE_NCCL_RUN')))"


class NcclPlugin(unittest.TestCase):
    PLUGIN = str(runs.PACKAGE / "shardscope" / "libnccl-profiler-shardscope.so")

    def rank_has(self, *options, **variables):
        output = runs.finish(runs.start([runs.SHARDSCOPE, "attach", *options, "--", runs.PYTHON, "-c", ENVIRONMENT], RANK="0",
                                        **variables))
        told = "ranks that use NCCL load Shardscope's profiler plugin" in output
        # The rank's line; the others are ours.
        return next(line for line in output.splitlines() if not line.startswith("shardscope:")), told

    def test_ranks_have_it_unless_the_user_names_one_or_says_no(self):
        quiet = {"HOME": str(folder()), "NCCL_CONF_FILE": str(folder() / "no.conf")}
        self.assertEqual(self.rank_has(**quiet), (f"{self.PLUGIN} join", True))
        for own in ("/opt/inspector.so", "none", ""):
            self.assertEqual(self.rank_has(**quiet, NCCL_PROFILER_PLUGIN=own), (f"{own} None", True))
        self.assertEqual(self.rank_has("--no-nccl-plugin", **quiet), ("None None", False))

    def test_one_named_in_a_file_of_nccl_stays(self):
        conf = folder() / "nccl.conf"
        conf.write_text("NCCL_DEBUG=WARN\nNCCL_PROFILER_PLUGIN=inspector\n", encoding="utf-8")
        self.assertEqual(self.rank_has(NCCL_CONF_FILE=str(conf)), ("None None", True))

    def test_it_links_the_library_of_the_package(self):
        listed = subprocess.run(["ldd", self.PLUGIN], capture_output=True, text=True, check=True).stdout
        self.assertIn(f"libshardscope.so.1 => {runs.PACKAGE / 'shardscope' / 'libshardscope.so.1'}", listed)

    def test_what_is_recorded_says_so(self):
        from shardscope import _nccl, _records
        with mock.patch.dict("os.environ", {"NCCL_PROFILER_PLUGIN": _nccl.PLUGIN}):
            self.assertTrue(_records.recorded("ddp", "cuda:0") & _records.BITS["nccl"])
            self.assertFalse(_records.recorded("ddp", "cpu") & _records.BITS["nccl"])
        with mock.patch.dict("os.environ", {"NCCL_PROFILER_PLUGIN": "none"}):
            self.assertFalse(_records.recorded("ddp", "cuda:0") & _records.BITS["nccl"])
            self.assertIn("names another plugin", dict(_records.reasons("ddp", "cuda:0"))[_records.BITS["nccl"]])


EXITS = """
import sys
import shardscope
of_python = sys.excepthook, sys.exit
for _ in range(3):
    shardscope.attach(endpoint="ipc:///nowhere")
    assert sys.excepthook is not of_python[0] and sys.exit is not of_python[1]
    shardscope.detach()
    assert (sys.excepthook, sys.exit) == of_python
# What the script puts around ours is its own and stays.
shardscope.attach(endpoint="ipc:///nowhere")
inner = sys.exit
def leaving(code=None):
    inner(code)
sys.exit = leaving
shardscope.detach()
assert sys.exit is leaving and sys.excepthook is of_python[0]
shardscope.attach(endpoint="ipc:///nowhere")
sys.exit(7)
"""


class Detached(unittest.TestCase):
    def test_exits_are_as_they_were(self):
        runs.finish(runs.start([runs.PYTHON, "-c", EXITS]), expected=7)


if __name__ == "__main__":
    unittest.main()
