"""Runs that hang because ranks differ: `why` names the rank and what it does, while they hang."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import runs
from pairs import folder, slow

SCRIPT = runs.HERE / "scripts" / "hang.py"
ODD = 1
# In these rank 1 gathers another size than the others: gloo may end it by SIGABRT, and with it go its events that were not sent yet.
GLOO_ABORTS = ("skips", "branches", "saves")
# In these rank 1 ends, and torchrun ends the others soon after, which may be before `why` is run.
ENDS = ("dies", "returns")
# What the others gather in the forward of the third step where rank 1 gathers something else: modules of (the others, rank 1).
PARTS = {"skips": ("blocks.1", "blocks.2"), "branches": ("blocks.0", "blocks.1")}
# In these rank 1 does not come to that forward, in whose first gather the others wait.
STAYS_AWAY = ("fewer", "stops", "dies", "returns")
FIRST = "blocks.0"
# What the line of the script does on which a rank stands, where it runs.
STANDS_AT = {ODD: "time.sleep(SECONDS", 0: "self.blocks[index](x)"}


def odd_of(answer):
    return next(one for one in answer["ranks"] if one["rank"] == ODD)


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
            answer = json.loads(done.stdout)
            aborted = mode in GLOO_ABORTS and odd_of(answer)["state"] in ("gone", "ended")
            if not answer["difference"] and not answer["hung"] and not aborted:
                self.fail(f"{framework} {mode}: no difference: {answer}")
            return answer
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
        odd = odd_of(answer)
        if mode in GLOO_ABORTS and answer["text"].startswith(f"Rank {ODD} is gone"):
            self.assertEqual(odd["state"], "gone")
            return
        if mode in ENDS:
            self.assertIn(odd["state"], ("gone", "ended"), answer)
            self.assertIn(f"ank {ODD} ", answer["text"])
        self.assertTrue(answer["hung"] or answer["difference"], answer)
        others = [one for one in answer["ranks"] if one["rank"] != ODD]
        named = answer["culprit"] == ODD or any(ODD in one["waits_for"] for one in others)
        in_difference = answer["difference"] and any(side["ranks"] == [ODD] for side in answer["difference"]["sides"])
        self.assertTrue(named or in_difference, (mode, answer["text"], odd))
        if framework == "fsdp2":
            self.tells_module_and_operation(answer, mode)

    def tells_module_and_operation(self, answer, mode):
        """Of FSDP2 every gather is one module's. What rank 1 had not sent when it was killed or ended is not there."""
        text = answer["text"]
        if mode in PARTS and answer["difference"]["what"] == "module":
            sides = {tuple(side["ranks"]): side["collective"] for side in answer["difference"]["sides"]}
            for ranks, module in zip(((0, 2), (ODD,)), PARTS[mode], strict=True):
                self.assertEqual((sides[ranks]["op"], sides[ranks]["module"]), ("all_gather", module), text)
            self.assertRegex(text, rf"The ranks issued different collectives \(module\): ranks 0, 2 all-gather #\d+ for {PARTS[mode][0]} "
                                   rf"\([^)]*\); rank 1 all-gather #\d+ for {PARTS[mode][1]} ")
        if mode not in STAYS_AWAY:
            return
        for one in answer["ranks"]:
            if one["rank"] != ODD and mode not in ENDS:
                self.assertEqual((one["collective"]["op"], one["collective"]["module"]), ("all_gather", FIRST), text)
        self.assertEqual(answer["culprit"], ODD, text)
        verb = "wait(ed)?" if mode in ENDS else "wait"
        self.assertRegex(text, rf"^Ranks? (0, 2|0|2) {verb}s? in all-gather #\d+ for {FIRST} \([^)]*\) for rank 1, since ")
        said = {"fewer": "Rank 1 never entered it: it is between two steps, after step 1", "stops": "it is stopped since"}
        self.assertIn(said.get(mode, "rank 1"), text)
        # Who is stopped answers nothing.
        ranks = {"fewer": {0, ODD}, "stops": {0}}.get(mode, set())
        lines = {line["rank"]: line for line in answer.get("lines", [])}
        self.assertTrue(ranks <= set(lines), answer)
        source = SCRIPT.read_text(encoding="utf-8").splitlines()
        for rank in ranks:
            self.assertEqual(lines[rank]["file"], str(SCRIPT))
            self.assertIn(STANDS_AT[rank], source[lines[rank]["line"] - 1])

    def test_a_rank_that_stops(self):
        self.blames("fsdp2", "stops")

    def test_a_rank_with_fewer_batches(self):
        self.blames("fsdp2", "fewer")

    def test_a_rank_that_dies(self):
        self.blames("fsdp2", "dies")

    @slow
    def test_the_other_ways_to_part(self):
        for framework in ("fsdp2", "zero3"):
            for mode in ("skips", "branches", "saves", "fewer", "stops", "dies", "returns"):
                with self.subTest(framework=framework, mode=mode):
                    self.blames(framework, f"{mode}")


if __name__ == "__main__":
    unittest.main()
