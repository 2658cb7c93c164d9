"""Training under Slurm's own programs: two nodes, both of them this machine, made for the test. Skipped where Slurm is not
installed (on Debian: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge).

    tests/attach/run slurm_test
"""
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest

import runs
from pairs import TRAIN, folder, plain

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo")
FOUND = {name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") for name in PROGRAMS}
NODES = ("node-a", "node-b")
CASE = ("fsdp2",)
AS_RANK = "RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS exec"
LIMIT_S = 60  # of what Slurm does itself

CONFIGURATION = """
ClusterName=shardscope
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation={place}/state
SlurmctldPidFile={place}/slurmctld.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdPidFile={place}/%n.pid
SlurmdLogFile={place}/%n.log
SlurmdSpoolDir={place}/spool-%n
ReturnToService=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def daemon(*command):
    subprocess.run(list(map(str, command)), check=True, env=os.environ)  # they go to the background themselves


def runs_still(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def words(command):
    return " ".join(map(str, command))


def eventually(done, what):
    deadline = time.monotonic() + LIMIT_S
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {LIMIT_S} s")
        time.sleep(0.2)


@unittest.skipUnless(all(FOUND.values()), f"not installed: {', '.join(name for name, path in FOUND.items() if not path)}")
class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = folder() / "slurm"
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (cls.place / name).mkdir(parents=True)
        folder().chmod(0o755)  # munged wants a path that others may pass
        key = cls.place / "munge.key"
        key.write_bytes(os.urandom(256))
        key.chmod(0o400)
        text = CONFIGURATION.format(host=socket.gethostname(), port=runs.free_port(), user=getpass.getuser(), place=cls.place)
        for node in NODES:
            text += (f"NodeName={node} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={runs.free_port()} "
                     f"CPUs={os.cpu_count()} State=UNKNOWN\n")
        (cls.place / "slurm.conf").write_text(text, encoding="utf-8")
        os.environ["SLURM_CONF"] = str(cls.place / "slurm.conf")
        cls.addClassCleanup(cls.end)
        daemon(FOUND["munged"], "--force", f"--key-file={key}", *(f"--{name}={cls.place}/munge.{name[:-5] if name.endswith('-file') else name}"
                                                                  for name in ("socket", "pid-file", "log-file", "seed-file")))
        daemon(FOUND["slurmctld"])
        for node in NODES:
            daemon(FOUND["slurmd"], "-N", node)
        eventually(lambda: cls.asked("sinfo", "-h", "-o", "%t %D").split() == ["idle", "2"], "both nodes are idle")

    @classmethod
    def end(cls):
        os.environ.pop("SLURM_CONF", None)
        pids = [int(file.read_text()) for file in cls.place.glob("*.pid")]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        eventually(lambda: not any(map(runs_still, pids)), "Slurm has ended")  # it writes its state then, into the tests' folder

    @classmethod
    def asked(cls, program, *arguments):
        return subprocess.run([FOUND[program], *map(str, arguments)], capture_output=True, text=True, check=False).stdout

    def check(self, recording, out):
        self.assertEqual(runs.results(out), plain(CASE))
        events = runs.read(recording)
        self.assertEqual(sorted(row["rank"] for row in events.table("ranks")), ["0", "1"])
        for rank in range(2):
            self.assertEqual(len(events.of(rank, "loss")), 3)

    def test_every_task_is_a_rank(self):
        recording, out = folder() / "tasks.zscope", folder() / "tasks"
        runs.finish(runs.start(runs.attach(recording) + ["srun", "-N", 2, "-n", 2, "bash", "-c",
                                                         f"{AS_RANK} {runs.PYTHON} {TRAIN} {CASE[0]} {out}"],
                               MASTER_ADDR="127.0.0.1", MASTER_PORT=str(runs.free_port())))
        self.check(recording, out)

    def test_a_task_that_starts_torchrun(self):
        recording, out = folder() / "one-task.zscope", folder() / "one-task"
        runs.finish(runs.start(runs.attach(recording) + ["srun", "-n", 1, *runs.torchrun(TRAIN, CASE[0], out)]))
        self.check(recording, out)

    def test_a_batch_script_that_attaches(self):
        """sbatch, in whose script attach starts srun; its output is in the job's file."""
        recording, out, script, said = (folder() / f"batch{end}" for end in (".zscope", "", ".sh", ".txt"))
        command = words(runs.attach(recording) + ["srun", "bash", "-c", f"'{AS_RANK} {runs.PYTHON} {TRAIN} {CASE[0]} {out}'"])
        script.write_text(f"#!/bin/bash\nexport MASTER_ADDR=127.0.0.1 MASTER_PORT={runs.free_port()}\n{command}\n", encoding="utf-8")
        runs.finish(runs.start(["sbatch", "--wait", "-N", 2, "-n", 2, "-o", said, script]))
        self.assertIn("recorded to", said.read_text(encoding="utf-8"))
        self.check(recording, out)

    def test_attach_on_each_node(self):
        """One attach records, the other passes its node's ranks on to it."""
        recording, out, port = folder() / "each.zscope", folder() / "each", runs.free_port()
        endpoint, name = f"ipc://{folder()}/each.sock", "--run-id job-$SLURM_JOB_ID"
        train = words([runs.PYTHON, "-m", "torch.distributed.run", "--nnodes", 2, "--node-rank", "$SLURM_NODEID", "--nproc-per-node", 1,
                       "--master-addr", "127.0.0.1", "--master-port", port, TRAIN, CASE[0], out])
        script = f"""if [ "$SLURM_NODEID" = 0 ]; then exec {words(runs.attach(recording, '--listen', endpoint, name))} {train}
                     else exec {runs.SHARDSCOPE} attach --upstream {endpoint} {name} -- {train}; fi"""
        output = runs.finish(runs.start(["srun", "-N", 2, "-n", 2, "bash", "-c", script]))
        self.assertIn("recorded to", output)
        self.check(recording, out)

    def test_a_cancelled_step_leaves_a_recording(self):
        recording, out = folder() / "cancelled.zscope", folder() / "cancelled"
        training = runs.start(runs.attach(recording) + ["srun", "--job-name", "cancelled", "-N", 2, "-n", 2, "bash", "-c",
                                                        f"{AS_RANK} {runs.PYTHON} {TRAIN} {CASE[0]} {out} steps=1000 sleep=0.1"],
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=str(runs.free_port()))
        deadline = time.monotonic() + runs.DEADLINE_S
        while not runs.has_events(recording) and training.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertIsNone(training.poll(), "it has ended before it could be cancelled")
        self.asked("scancel", "--name", "cancelled")
        output = runs.finish(training, expected=None)
        self.assertNotEqual(training.returncode, 0, output[-2000:])
        self.assertIn("recorded to", output)
        self.assertFalse(pathlib.Path(f"{out}.0").exists(), "the script's own end was not reached")
        self.assertGreater(len(runs.read(recording).of(0, "loss")), 0)


if __name__ == "__main__":
    unittest.main()
