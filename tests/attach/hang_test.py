"""Runs that hang because ranks differ: `why` names the rank and what it does, while they hang."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import runs
from pairs import folder, slow

SCRIPT = runs.HERE / "scripts" / "hang.py"
ODD = 1
# In these rank 1 ends, and torchrun ends the others soon after, which may be before `why` is run.
ENDS = ("dies", "returns")
# What `why` says, by framework and mode. #N is a number, (B) bytes, S seconds.
WAIT = r"^Ranks 0, 2 wait in all-gather #N for {} (B) for rank 1, since S (at least S). Rank 1 never entered it: it {}"
BETWEEN = "is between two steps, after step 1; the last gate that it passed is optimizer 1"
ENDED = r"^(Ranks 0, 2|Rank 0|Rank 2) wait(s|ed)? in all-gather #N for {} (B) for rank 1, since S"
WAIT2, ENDED2 = WAIT.replace("all-gather", "all-reduce"), ENDED.replace("all-gather", "all-reduce")
ABORTED = r".* Rank 1 ended with SIGABRT: not caught: gloo::EnforceNotMet: .*op.preamble.length <= op.nbytes"
SAID = {
    ("fsdp2", "fewer"): WAIT.format("blocks.0", BETWEEN),
    ("fsdp2", "stops"): WAIT.format("blocks.0", "is stopped since S"),
    ("fsdp2", "dies"): ENDED.format("blocks.0"),
    ("fsdp2", "returns"): ENDED.format("blocks.0"),
    ("fsdp2", "skips"): r"The ranks issued different collectives (module): ranks 0, 2 all-gather #N for blocks.1 (B); "
                        r"rank 1 all-gather #N for blocks.2 (B).",
    ("fsdp2", "branches"): r"The ranks issued different collectives (module): ranks 0, 2 all-gather #N for blocks.0 (B); "
                           r"rank 1 all-gather #N for blocks.1 (B).",
    ("fsdp2", "saves"): r"The ranks issued different collectives (size): rank 1 all-gather #N (B); ranks 0, 2 all-gather #N for blocks.0 (B)."
                        + ABORTED,
    # Of stage 3 the others are through their forward when rank 1 still waits for the parameters of the module that it came to.
    ("zero3", "fewer"): WAIT.format("Net", BETWEEN),
    ("zero3", "stops"): WAIT.format("Net", "is stopped since S"),
    ("zero3", "dies"): ENDED.format("Net"),
    ("zero3", "returns"): ENDED.format("Net"),
    ("zero3", "skips"): r"The ranks issued different collectives (operation): rank 1 all-gather #N for blocks.2 (B); ranks 0, 2 reduce-scatter "
                        r"#N for blocks.3 and 7 more parameters (B). In the forward of micro-step 0 rank 1 came to blocks.2 where ranks 0, 2 "
                        r"ran blocks.1.",
    ("zero3", "branches"): r"The ranks issued different collectives (operation): rank 1 all-gather #N for blocks.1 (B); ranks 0, 2 "
                           r"reduce-scatter #N for blocks.3 and 7 more parameters (B). In the forward of micro-step 0 rank 1 came to blocks.1 "
                           r"where ranks 0, 2 ran blocks.0.",
    ("zero3", "saves"): r"The ranks issued different collectives (size): rank 1 all-gather #N (B); ranks 0, 2 all-gather #N for Net (B)."
                        + ABORTED,
    ("zero2", "fewer"): WAIT2.format("blocks.3 and 7 more parameters", BETWEEN),
    ("zero2", "stops"): WAIT2.format("blocks.3 and 7 more parameters", "is stopped since S"),
    ("zero2", "dies"): ENDED2.format("blocks.3 and 7 more parameters"),
    ("zero2", "returns"): ENDED2.format("blocks.3 and 7 more parameters"),
    # Of stage 2 another order of modules changes no collective: nothing hangs. A bucket without a module's gradients is a smaller one.
    ("zero2", "skips"): r"The ranks issued different collectives (size): rank 1 all-reduce #N for blocks.3 and 5 more parameters (B); "
                        r"ranks 0, 2 all-reduce #N for blocks.3 and 7 more parameters (B). In the forward of micro-step 0 rank 1 ran blocks.2 "
                        r"where ranks 0, 2 ran blocks.1." + ABORTED,
    ("zero2", "saves"): r"^Ranks 0, 2 wait in all-reduce #N for blocks.3 and 7 more parameters (B) for rank 1, since S (at least S). Rank 1 "
                        r"never entered it: it waits in barrier #N for ranks 0, 2; ",
}
# The script's line at which a running rank is; a stopped rank does not answer.
STANDS_AT = {"fewer": {ODD: "time.sleep(", 0: "self.blocks[index](x)"}, "stops": {0: "self.blocks[index](x)"}}
WAITS_AT = {"zero2": "backward(model("}  # stage 2 communicates in the backward alone


def pattern_of(text):
    """A regular expression of one of SAID."""
    for plain, pattern in (("(B)", r"\([\d.]+ [KM]?i?B\)"), ("#N", r"#\d+"), ("(size)", r"\(size\)"), ("(module)", r"\(module\)"),
                           ("(operation)", r"\(operation\)"), ("(at least S)", r"\(at least S\)")):
        text = text.replace(plain, pattern)
    return re.compile(re.sub(r"\bS\b", lambda _: r"[\d.]+ m?s", text))


def came(recording, training):
    """Whether events came, before the training ended and the deadline passed."""
    deadline = time.monotonic() + runs.DEADLINE_S
    while not runs.has_events(recording):
        if time.monotonic() > deadline or training.poll() is not None:
            return runs.has_events(recording)
        time.sleep(0.2)
    return True


def odd_of(answer):
    found = [one for one in answer["ranks"] if one["rank"] == ODD]
    if not found:
        raise AssertionError(f"nothing came from rank {ODD}: {answer}")
    return found[0]


class Hangs(unittest.TestCase):
    def why(self, framework, mode):
        here = pathlib.Path(tempfile.mkdtemp(prefix=f"hang-{framework}-{mode}-", dir=folder()))
        endpoint, recording = f"ipc://{here}/run.sock", here / "run.zscope"
        settings = here / "settings"
        settings.mkdir()
        (settings / "settings.json").write_text(json.dumps({"endpoint": endpoint, "run_id": "x", "linger_s": 0.2}), encoding="utf-8")
        collector = runs.start([runs.SHARDSCOPE, "record", recording, "--listen", endpoint])
        training = runs.start(runs.torchrun(SCRIPT, framework, mode, ranks=3), SHARDSCOPE_ATTACH=str(settings))
        try:
            # Imports take minutes where other programs compute, and bytecode is not written yet.
            self.assertTrue(came(recording, training), f"{framework} {mode}: no rank has sent anything")
            deadline = time.monotonic() + runs.DEADLINE_S / 2
            while time.monotonic() < deadline and training.poll() is None:
                done = subprocess.run([runs.SHARDSCOPE, "why", endpoint, "--json", "--quiet", "3", "--wait", "60"],
                                      capture_output=True, text=True, check=False)
                answer = json.loads(done.stdout) if done.returncode == 0 else {}
                if answer.get("hung") or answer.get("difference"):
                    return answer
                time.sleep(1)
            # Where ranks gather other modules in collectives of the same size the training ends, with wrong weights.
            collector.send_signal(signal.SIGINT)
            collector.wait(timeout=60)
            done = subprocess.run([runs.SHARDSCOPE, "why", recording, "--json"], capture_output=True, text=True, check=True)
            return json.loads(done.stdout)
        finally:
            for process in list(pathlib.Path("/proc").glob("[0-9]*")):
                try:
                    if str(SCRIPT).encode() in (process / "cmdline").read_bytes() and str(settings).encode() in \
                            (process / "environ").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)
                except OSError:
                    continue
            training.communicate()
            if collector.poll() is None:
                collector.send_signal(signal.SIGINT)  # it would wait for ranks that come back
            collector.communicate(timeout=60)

    def blames(self, framework, mode):
        answer = self.why(framework, mode)
        odd, text = odd_of(answer), answer["text"]
        self.assertRegex(text, pattern_of(SAID[framework, mode]))
        self.assertTrue(answer["hung"] or answer["difference"], answer)
        if mode in ENDS:
            self.assertEqual(odd["state"], "gone", answer)
        if mode in ("skips", "branches", "saves"):
            self.assertIn([ODD], [side["ranks"] for side in answer["difference"]["sides"]])
        else:
            self.assertEqual(answer["culprit"], ODD, text)
        lines = {line["rank"]: line for line in answer.get("lines", [])}
        source = SCRIPT.read_text(encoding="utf-8").splitlines()
        for rank, does in STANDS_AT.get(mode, {}).items():
            self.assertEqual(lines[rank]["file"], str(SCRIPT))
            self.assertIn(does if rank == ODD else WAITS_AT.get(framework, does), source[lines[rank]["line"] - 1])

    def test_a_rank_that_stops(self):
        self.blames("fsdp2", "stops")

    def test_a_rank_with_fewer_batches(self):
        self.blames("fsdp2", "fewer")

    def test_a_rank_that_dies(self):
        self.blames("fsdp2", "dies")

    @slow
    def test_a_recorded_time_out_blames_the_rank_that_never_came(self):
        """The ranks that wait fail first, and the launcher then ends the one that they wait for."""
        # Groups that DeepSpeed makes wait for half an hour.
        recording = folder() / "late.zscope"
        output = runs.finish(runs.start(runs.attach(recording) + runs.torchrun(SCRIPT, "fsdp2", "late", 600, ranks=3)), expected=None)
        self.assertIn("imed out", output)
        done = subprocess.run([runs.SHARDSCOPE, "findings", "--json", recording], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        self.assertEqual((found[0]["id"], found[0]["rank"]), ("hang", ODD), found)
        self.assertRegex(found[0]["explains"][0], "^Ranks .*then failed")
        self.assertNotIn("rank_failed", [one["id"] for one in found])

    @slow
    def test_every_way_to_part(self):
        for framework, mode in SAID:
            with self.subTest(framework=framework, mode=mode):
                self.blames(framework, mode)


if __name__ == "__main__":
    unittest.main()
