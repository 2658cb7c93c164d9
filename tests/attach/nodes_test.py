"""Runs over several nodes, all of them this machine under different host names: one recording has every rank."""
import os
import subprocess
import unittest

import runs
from pairs import TRAIN, folder, plain

# Changing it needs root, or a system that lets users make namespaces.
NAMED = subprocess.run(["unshare", "--uts", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
CASE = ("zero3",)
WITH_SCRIPTS = f"{runs.HERE / 'scripts'}:{runs.process_environment()['PATH']}"  # where a `pdsh` and a `srun` are


def setUpModule():
    folder()


def on(node, command):
    """`command` as that node would run it."""
    return ["unshare", "--uts", "bash", "-c", f'hostname {node}; exec "$@"', "bash", *command] if NAMED else command


class Nodes(unittest.TestCase):
    def check(self, recording, out, nodes):
        self.assertEqual(runs.results(out), plain(CASE))
        events = runs.read(recording)
        for rank in range(2):
            self.assertEqual(len(events.of(rank, "loss")), 3)
        rows = sorted(events.table("ranks"), key=lambda row: int(row["rank"]))
        self.assertEqual([row["rank"] for row in rows], ["0", "1"])
        if NAMED:
            self.assertEqual([row["host"] for row in rows], nodes)

    def test_torchrun_on_each_node(self):
        """One attach records, the other passes its node's ranks on to it."""
        recording, out = folder() / "each-node.zscope", folder() / "each-node"
        port, endpoint = runs.free_port(), f"ipc://{folder()}/each-node.sock"
        train = lambda node: [runs.PYTHON, "-m", "torch.distributed.run", "--nnodes", 2, "--node-rank", node, "--nproc-per-node", 1,
                              "--master-addr", "127.0.0.1", "--master-port", port, TRAIN, CASE[0], out]
        first = runs.start(on("node-a", runs.attach(recording, "--listen", endpoint, "--run-id", "job-17") + train(0)))
        second = runs.start(on("node-b", [runs.SHARDSCOPE, "attach", "--upstream", endpoint, "--run-id", "job-17", "--", *train(1)]))
        runs.finish(second)
        runs.finish(first)
        self.check(recording, out, ["node-a", "node-b"])

    def test_srun_starts_attach_on_each_node(self):
        """As docs/attach has it: by SLURM_NODEID one attach records, the others pass their node's ranks on to it."""
        recording, out, port = folder() / "srun-nodes.zscope", folder() / "srun-nodes", runs.free_port()
        endpoint = f"ipc://{folder()}/srun-nodes.sock"
        words = lambda command: " ".join(map(str, command))
        train = words([runs.PYTHON, "-m", "torch.distributed.run", "--nnodes", 2, "--node-rank", "$SLURM_NODEID", "--nproc-per-node", 1,
                       "--master-addr", "127.0.0.1", "--master-port", port, TRAIN, CASE[0], out])
        name = "--run-id job-$SLURM_JOB_ID"
        first = words(runs.attach(recording, "--listen", endpoint, name))
        script = f"""if [ "$SLURM_NODEID" = 0 ]; then exec {first} {train}
                     else exec {runs.SHARDSCOPE} attach --upstream {endpoint} {name} -- {train}; fi"""
        output = runs.finish(runs.start(["srun", "-N", 2, "-n", 2, "bash", "-c", script], PATH=WITH_SCRIPTS))
        self.assertIn("recorded to", output)
        self.check(recording, out, ["node-a", "node-b"])

    def test_srun_starts_the_ranks_of_all_nodes(self):
        """One attach before srun; the folder is of a file system that the nodes share."""
        recording, out, shared, keys = (folder() / name for name in ("srun.zscope", "srun", "srun-shared", "srun-keys"))
        shared.mkdir()
        subprocess.run([runs.SHARDSCOPE, "keys", keys], check=True, stdout=subprocess.DEVNULL)
        script = f"RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS exec {runs.PYTHON} {TRAIN} {CASE[0]} {out}"
        attach = runs.attach(recording, "--listen", "tcp://0.0.0.0:0", "--keys", keys, "--folder", shared, "--advertise", "127.0.0.1")
        runs.finish(runs.start(attach + ["srun", "-N", 2, "-n", 2, "bash", "-c", script], PATH=WITH_SCRIPTS,
                               MASTER_ADDR="127.0.0.1", MASTER_PORT=str(runs.free_port())))
        self.check(recording, out, ["node-a", "node-b"])
        self.assertEqual(os.listdir(shared), [], "the folder, which has a key in it, is removed")

    def test_deepspeed_starts_the_nodes(self):
        """Its launcher hands on PYTHONPATH and little else; the folder is of a file system that the nodes share."""
        recording, out, shared = folder() / "hostfile.zscope", folder() / "hostfile", folder() / "shared"
        shared.mkdir()
        hosts = folder() / "hosts"
        hosts.write_text("node-a slots=1\nnode-b slots=1\n", encoding="utf-8")
        keys = folder() / "node-keys"
        subprocess.run([runs.SHARDSCOPE, "keys", keys], check=True, stdout=subprocess.DEVNULL)
        attach = runs.attach(recording, "--listen", "tcp://0.0.0.0:0", "--keys", keys, "--folder", shared, "--advertise", "127.0.0.1")
        output = runs.finish(runs.start(
            attach + [runs.PYTHON, "-m", "deepspeed.launcher.runner", "--hostfile", hosts, "--no_ssh_check", "--master_addr", "127.0.0.1",
                      "--master_port", runs.free_port(), TRAIN, CASE[0], out],
            PATH=WITH_SCRIPTS))
        self.assertIn("recorded to", output)
        self.check(recording, out, ["node-a", "node-b"])
        self.assertEqual(os.listdir(shared), [], "the folder, which has a key in it, is removed")

    def test_options_that_contradict_one_another(self):
        for options, words in ((["--folder", folder()], "cannot reach tcp://127.0.0.1:0; give --listen"),
                               (["--upstream", "tcp://127.0.0.1:5711"], "give --run-id NAME"),
                               (["--folder", "/no/such/folder"], "--folder: Directory does not exist"),
                               (["--upstream-key", "x.key"], "--upstream-key requires --upstream")):
            done = subprocess.run([runs.SHARDSCOPE, "attach", *options, "--", "true"], capture_output=True, text=True, check=False)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
