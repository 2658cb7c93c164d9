#!/usr/bin/env python3
"""zero_train as real processes: ranks agree, weights round-trip, failures end everything with one message.

usage: zero_train_test.py ZERO_TRAIN   (in the project's root; needs mpirun)
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ZERO_TRAIN = sys.argv.pop(1) if len(sys.argv) > 1 else "zero_train"
LIMIT_S = 10  # everything ends within this after a failure
# A busy machine may be slow to start programs; failures are timed from the failure on.
START_LIMIT_S = 120


def config(stage, folder, **changes):
    zero = {"stage": stage, "reduce_bucket_size": 20000}
    if stage == 3:
        zero.update(stage3_prefetch_bucket_size=20000, stage3_max_live_parameters=60000,
                    stage3_max_reuse_distance=0, stage3_param_persistence_threshold=0)
    settings = {"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1.0,
                "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": zero}
    settings.update(changes)
    path = folder / f"stage{stage}.json"
    path.write_text(json.dumps(settings))
    return path


def command(world, *arguments):
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(world)]
    if os.geteuid() == 0:
        launch.insert(1, "--allow-run-as-root")
    return launch + [ZERO_TRAIN, *map(str, arguments)]


def run(world, *arguments, check=True):
    done = subprocess.run(command(world, *arguments), capture_output=True, text=True, timeout=START_LIMIT_S)
    if check and done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
    return done


def messages(text):
    return [line for line in text.splitlines() if line.startswith("shardscope: ")]


def ranks_of(run_id):
    """Process ids of the ranks of a run, found by their arguments."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if arguments[0].endswith(b"zero_train") and run_id.encode() in arguments:
            found.append(int(entry.name))
    return sorted(found)


class ZeroTrain(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def train(self, world, stage, name, *more):
        losses = self.folder / f"{name}.json"
        weights = self.folder / f"{name}.safetensors"
        run(world, "--config", config(stage, self.folder), "--model", "mlp", "--data", "golden:mlp", "--steps", 3,
            "--init-scheme", "hash", "--quiet", "--losses", losses, "--save", weights, "--overwrite", *more)
        return json.loads(losses.read_text()), weights.read_bytes()

    def test_stages_agree_bitwise_as_processes(self):
        for world in (2, 4):
            losses, weights = self.train(world, 0, "a")
            self.assertEqual(len(losses["losses"]), world)
            for stage in (1, 2, 3):
                other_losses, other_weights = self.train(world, stage, "b")
                self.assertEqual(losses["losses"], other_losses["losses"], f"stage {stage}, world {world}")
                self.assertEqual(weights, other_weights, f"stage {stage}, world {world}")

    def test_groups_of_processes_change_no_bit(self):
        def losses(name, **zero):
            path = config(3, self.folder)
            settings = json.loads(path.read_text())
            settings["zero_optimization"].update(zero)
            settings["shardscope"] = {"ranks_per_node": 2}
            path.write_text(json.dumps(settings))
            out = self.folder / f"{name}.json"
            run(4, "--config", path, "--model", "mlp", "--data", "golden:mlp", "--steps", 3, "--init-scheme", "hash",
                "--quiet", "--losses", out)
            steps = json.loads(out.read_text())
            del steps["ended_s"]  # a time
            return steps

        plain = losses("plain")
        self.assertEqual(losses("hpz", zero_hpz_partition_size=2), plain)
        self.assertEqual(losses("mics", mics_shard_size=4, mics_hierarchical_params_gather=True), plain)
        self.assertNotEqual(losses("qgz", zero_quantized_gradients=True), plain)

    def test_saved_weights_are_read_again(self):
        _, weights = self.train(2, 3, "first")
        saved = self.folder / "first.safetensors"
        again = self.folder / "again.safetensors"
        # One step with learning rate 0 and no decay changes nothing.
        settings = config(2, self.folder, optimizer={"type": "AdamW", "params": {"lr": 0, "weight_decay": 0}})
        run(3, "--config", settings, "--model", "mlp", "--data", "golden:mlp", "--steps", 1, "--quiet", "--init",
            saved, "--save", again)
        self.assertEqual(weights, again.read_bytes())

    def test_missing_collector_does_not_stop_training(self):
        done = run(2, "--config", config(3, self.folder), "--model", "mlp", "--data", "golden:mlp", "--steps", 2,
                   "--publish", "tcp://127.0.0.1:9")
        self.assertEqual(done.returncode, 0)

    def test_the_configuration_a_run_tells_has_the_detail_that_was_asked_for(self):
        for asked, level in (((), "params"), (("--detail", "phases"), "phases")):
            said = subprocess.run([ZERO_TRAIN, "--config", str(config(3, self.folder)), "--print-config", "2", *asked],
                                  stdout=subprocess.PIPE, check=True)
            self.assertEqual(json.loads(said.stdout)["shardscope"]["detail"], level)

    def test_wrong_input_is_named_once(self):
        cases = [
            (["--model", "mpl"], "mpl"),
            (["--model", "mlp", "--data", "/no/such/file"], "/no/such/file"),
            (["--model", "mlp", "--data", "golden:mlp", "--config", "/no/such/config.json"], "/no/such/config.json"),
            (["--model", "mlp", "--data", "golden:mlp", "--init", "/no/such/weights"], "/no/such/weights"),
            (["--steps", "0"], "steps"),
        ]
        for arguments, named in cases:
            done = run(2, *arguments, check=False)
            self.assertNotEqual(done.returncode, 0, arguments)
            printed = messages(done.stderr)
            self.assertEqual(len(printed), 1, f"{arguments}: {done.stderr}")
            self.assertIn(named, printed[0])

    def start_long_run(self, run_id, *more):
        process = subprocess.Popen(
            command(4, "--config", config(3, self.folder), "--model", "mlp", "--data", "golden:mlp", "--steps",
                    1000000, "--run-id", run_id, *map(str, more)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = process.stdout.readline()
        self.assertTrue(first.startswith(("step 0", "continues ")), first)
        return process

    def end_of(self, process, since):
        out, err = process.communicate(timeout=START_LIMIT_S)
        self.assertLess(time.monotonic() - since, LIMIT_S, "the run took too long to end")
        return out, err

    def test_ranks_that_do_not_find_each_other_are_an_error(self):
        # As torchrun starts them: each would train alone.
        for rank, spoken in (("0", 1), ("1", 0)):
            done = subprocess.run([ZERO_TRAIN, "--steps", "1"], capture_output=True, text=True,
                                  timeout=START_LIMIT_S, env={**os.environ, "WORLD_SIZE": "4", "RANK": rank})
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(messages(done.stderr)), spoken, done.stderr)
            if spoken:
                self.assertIn("torchrun or deepspeed started this process as one of 4 ranks (WORLD_SIZE=4), but",
                              done.stderr)
                self.assertIn("mpirun -n", done.stderr)

    def test_killed_rank_ends_the_run(self):
        run_id = f"kill-{os.getpid()}"
        process = self.start_long_run(run_id)
        ranks = ranks_of(run_id)
        self.assertEqual(len(ranks), 4)
        since = time.monotonic()
        os.kill(ranks[2], signal.SIGKILL)
        _, err = self.end_of(process, since)
        self.assertNotEqual(process.returncode, 0)
        # mpirun may end the others before one of them has noticed; if one has, it says what happened, once.
        printed = messages(err)
        self.assertLessEqual(len(printed), 1, err)
        for message in printed:
            self.assertIn("ended (killed", message)
        self.assertEqual(ranks_of(run_id), [])

    def test_termination_ends_the_run_in_order(self):
        run_id = f"term-{os.getpid()}"
        process = self.start_long_run(run_id)
        since = time.monotonic()
        for rank in ranks_of(run_id):
            os.kill(rank, signal.SIGTERM)
        _, err = self.end_of(process, since)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(messages(err), [])

    def consolidated(self, checkpoints):
        """The weights of the latest checkpoint; raises when it is not whole."""
        output = self.folder / "consolidated.safetensors"
        subprocess.run([ZERO_TRAIN, "--consolidate", checkpoints, "--save", output], check=True, capture_output=True)
        return output.read_bytes()

    def test_continued_run_is_the_run(self):
        losses, weights = self.train(2, 3, "whole")
        checkpoints = self.folder / "checkpoints"
        common = ["--config", config(3, self.folder), "--model", "mlp", "--data", "golden:mlp", "--init-scheme", "hash",
                  "--checkpoint", checkpoints]
        run(2, *common, "--steps", 2)
        again = run(2, *common, "--steps", 3, check=False)
        self.assertIn("holds the checkpoints of another run", again.stderr)
        run(2, *common, "--steps", 3, "--resume", checkpoints, "--losses", self.folder / "tail.json", "--save",
            self.folder / "tail.safetensors")
        tail = json.loads((self.folder / "tail.json").read_text())
        self.assertEqual([rank[2:] for rank in losses["losses"]], tail["losses"])
        self.assertEqual(weights, (self.folder / "tail.safetensors").read_bytes())
        self.assertEqual(weights, self.consolidated(checkpoints))

    def test_stopped_run_leaves_a_checkpoint(self):
        run_id = f"stop-{os.getpid()}"
        checkpoints = self.folder / "checkpoints"
        process = self.start_long_run(run_id, "--checkpoint", checkpoints)
        process.send_signal(signal.SIGUSR1)  # mpirun forwards it
        _, err = process.communicate(timeout=START_LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.consolidated(checkpoints)

    def test_killed_run_leaves_a_whole_checkpoint(self):
        checkpoints = self.folder / "checkpoints"
        resume = []
        for attempt in range(3):
            run_id = f"save-{os.getpid()}-{attempt}"
            process = self.start_long_run(run_id, "--checkpoint", checkpoints, "--checkpoint-every", 1, "--keep", 2,
                                          *resume)
            # Somewhere in the middle of one of the saves that follow each other.
            for _ in range(3 + 4 * attempt):
                process.stdout.readline()
            for rank in ranks_of(run_id):
                os.kill(rank, signal.SIGKILL)
            process.communicate(timeout=START_LIMIT_S)
            self.assertGreater(len(self.consolidated(checkpoints)), 100_000)
            resume = ["--resume", checkpoints]


if __name__ == "__main__":
    unittest.main(verbosity=2)
