"""Scripts as users have them: a Hugging Face Trainer, accelerate, TRL, several engines; bit for bit as without Shardscope."""
import collections
import os
import signal
import time
import unittest

import runs
from pairs import TRAIN, folder

SCRIPTS = runs.HERE / "scripts"
CHECKPOINT_SAVE, CHECKPOINT_LOAD, GENERATION, EVALUATION = range(5, 9)  # phases
OFFLINE = {"HF_HUB_OFFLINE": "1"}


def setUpModule():
    folder()


def by_accelerate(*options):
    return lambda script, *arguments: [
        runs.PYTHON, "-m", "accelerate.commands.launch", "--num_processes", 2, "--num_machines", 1, "--mixed_precision", "no",
        "--dynamo_backend", "no", "--main_process_port", runs.free_port(), *options, script, *arguments]


class Scripts(unittest.TestCase):
    def both(self, script, *arguments, steps, losses, launched=runs.torchrun, name=""):
        """The recording of an attached run that trained as the plain one did."""
        name = name or "-".join((script, *arguments))
        made, out = folder() / f"{name}.zscope", folder() / name
        command = [SCRIPTS / f"{script}.py", f"{out}.plain", *arguments]
        runs.finish(runs.start(launched(*command), **OFFLINE))
        command[1] = f"{out}.attached"
        output = runs.finish(runs.start(runs.attach(made) + launched(*command), **OFFLINE))
        self.assertEqual(runs.results(f"{out}.plain"), runs.results(f"{out}.attached"))
        self.assertNotIn("is off", output)
        self.assertEqual(runs.figures(made)["dropped"], 0)
        recording = runs.read(made)
        for rank in range(2):
            self.assertEqual(len(recording.spans_of(rank, "step_begin")), steps)
            self.assertEqual(len(recording.of(rank, "loss")), losses)
        return recording

    def roots(self, recording):
        return [row["type"] for row in recording.modules if row["parent"] == ""]

    def phases(self, recording, rank, phase):
        return [s for s in recording.spans_of(rank, "phase_begin") if int(s["code"]) == phase]

    def test_trainer_that_evaluates_and_saves(self):
        recording = self.both("hf_trainer", "2", "evaluate", steps=3, losses=6)
        for rank in range(2):
            steps = [int(s["end_ns"]) for s in recording.spans_of(rank, "step_begin")]
            for phase in (EVALUATION, CHECKPOINT_SAVE):
                spans = self.phases(recording, rank, phase)
                self.assertEqual([int(s["a"]) for s in spans], [0, 1, 2], "after each step, named by it")
                for span, step, after in zip(spans, steps, [*steps[1:], 1 << 62]):
                    self.assertTrue(step <= int(span["begin_ns"]) < int(span["end_ns"]) < after)
        summary = runs.figures(folder() / "hf_trainer-2-evaluate.zscope")
        self.assertEqual(summary["unmatched_ends"]["count"], 0)

    def test_trainer_with_deepspeed(self):
        for stage in ("2", "3"):
            with self.subTest(stage=stage):
                self.both("hf_trainer", stage, steps=3, losses=6)

    def test_accelerate(self):
        self.both("accelerate_ddp", steps=3, losses=6)

    def test_accelerate_with_fsdp2(self):
        self.is_fsdp2_of_accelerate(self.both("accelerate_fsdp2", steps=3, losses=6))
        self.assertEqual(runs.figures(folder() / "accelerate_fsdp2.zscope")["run"]["stage"], 3)

    def test_accelerate_launch_with_fsdp2(self):
        name = "launched-fsdp2"
        recording = self.both("accelerate_launched", steps=3, losses=6, name=name, launched=by_accelerate(
            "--use_fsdp", "--fsdp_version", 2, "--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP", "--fsdp_transformer_layer_cls_to_wrap",
            "GPT2Block", "--fsdp_reshard_after_forward", "true"))
        self.is_fsdp2_of_accelerate(recording)
        run = runs.figures(folder() / f"{name}.zscope")["run"]
        self.assertEqual((run["stage"], run["world"]), (3, 2))
        self.assertIn("FSDP2", run["framework"])

    def test_accelerate_launch_with_deepspeed(self):
        for stage in (2, 3):
            with self.subTest(stage=stage):
                name = f"launched-deepspeed-{stage}"
                recording = self.both("accelerate_launched", steps=3, losses=6, name=name, launched=by_accelerate(
                    "--use_deepspeed", "--zero_stage", stage, "--gradient_accumulation_steps", 2, "--gradient_clipping", 1.0,
                    "--zero3_init_flag", "false"))
                run = runs.figures(folder() / f"{name}.zscope")["run"]
                self.assertEqual((run["stage"], run["world"]), (stage, 2))
                self.assertIn("DeepSpeed", run["framework"])
                for rank in range(2):
                    self.assertEqual(len(recording.of(rank, "grad_norm")), 3)

    def is_fsdp2_of_accelerate(self, recording, blocks=2):
        """accelerate shards two blocks, the embedding and last norm as one group, and what is left with the root; these two it keeps
        whole from forward to backward. Of the two micro-steps of a step `accumulate` has the second one alone reduced."""
        for rank in range(2):
            ops = collections.Counter(int(e["code"]) for e in recording.of(rank, "collective_submitted")
                                      if e["b"] not in ("", "4294967295"))
            self.assertEqual((ops[0], ops[1]), (6 * (2 * blocks + 2), 3 * (blocks + 2)), "gathers, reduce-scatters")
            self.assertEqual(len(recording.of(rank, "grad_norm")), 3)

    def test_sft(self):
        self.both("trl_sft", steps=3, losses=3)

    def test_policy_and_reference(self):
        """The reference's engine is made first, without an optimizer: the run is the policy's, the reference is in it."""
        recording = self.both("trl_grpo", "2", steps=2, losses=2)
        self.assertEqual(len(self.roots(recording)), 2)
        self.assertEqual(runs.figures(folder() / "trl_grpo-2.zscope")["run"]["stage"], 2)
        for rank in range(2):
            # What the next step trains on is generated before it.
            generated = [(int(s["begin_ns"]), int(s["end_ns"])) for s in self.phases(recording, rank, GENERATION)]
            steps = [(int(s["begin_ns"]), int(s["end_ns"])) for s in recording.spans_of(rank, "step_begin")]
            self.assertEqual(len(generated), 2)
            self.assertTrue(generated[0][1] <= steps[0][0] and steps[0][1] <= generated[1][0] and generated[1][1] <= steps[1][0],
                            (generated, steps))
        names = collections.Counter(row["name"] for row in recording.params)
        self.assertEqual(set(names.values()), {2})

    def test_two_engines_and_a_frozen_one(self):
        for stage in ("1", "3"):
            with self.subTest(stage=stage):
                recording = self.both("two_engines", stage, steps=4, losses=4)
                self.assertEqual(self.roots(recording), ["Sequential"] * 3)
                self.assertEqual(len(recording.params), 12)
                updates = [int(span["b"]) for span in recording.spans_of(0, "optimizer_begin")]
                self.assertEqual(updates, [0, 1, 2, 3])


    def test_hooks_that_are_made_anew(self):
        """Modules get new numbers from DeepSpeed each time; here they stay what they were, once forward and once backward a step."""
        recording = self.both("hooks_again", steps=4, losses=4)
        for kind in ("0", "1"):
            count = collections.Counter(s["a"] for s in recording.spans_of(0, "module_begin") if s["code"] == kind)
            self.assertEqual(count, {row["module"]: 4 for row in recording.modules}, kind)
        # add_hooks gives the trace up: what is recorded next is complete in the step after, so that none ever is.
        self.assertEqual([e["code"] for e in recording.of(0, "trace_mode")], ["1"] * 4)


class Killed(unittest.TestCase):
    def test_a_rank_is_killed(self):
        """torchrun ends the run as without us; the recording holds what was until then."""
        recording = folder() / "rank-killed.zscope"
        process = runs.start(runs.attach(recording) + runs.torchrun(TRAIN, "fsdp2", folder() / "rank-killed", "steps=400", "sleep=0.1"))
        deadline = time.monotonic() + runs.DEADLINE_S
        while not runs.has_events(recording) and time.monotonic() < deadline:
            time.sleep(0.05)
        rank = next(int(entry) for entry in os.listdir("/proc") if entry.isdigit() and is_rank(entry, str(folder() / "rank-killed")))
        os.kill(rank, signal.SIGKILL)
        runs.finish(process, expected=1)
        self.assertGreater(len(runs.read(recording).of(0, "loss")), 0)


def is_rank(pid, out):
    """A process of ours that trains: its own arguments begin with train.py's, not a launcher's."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode().split("\0")
    except OSError:
        return False
    return out in words and "--nproc-per-node" not in words


if __name__ == "__main__":
    unittest.main()
