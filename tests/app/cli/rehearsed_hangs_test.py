"""What `why` says of runs whose ranks part on purpose (zero_train --fault), in stages 2 and 3: rank, collective, module and what
that rank does instead, by its words. Runs that stand are asked while they stand, by their endpoint; those that our runtime ends
because the ranks differ, when they have ended."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import command_line
from command_line import BIN, ENV, ROOT, said

STEP = 5
# Each module gathered by itself, so that a collective has a module's name.
ALONE = {"zero_optimization.stage3_param_persistence_threshold": 0, "zero_optimization.stage3_prefetch_bucket_size": 0}
# Several buckets: another order of modules then makes other buckets.
SMALL = {"zero_optimization.reduce_bucket_size": 20000}


def end_below(launcher):
    for folder in command_line.processes_below(launcher):
        try:
            os.kill(int(folder.name), signal.SIGKILL)
        except ProcessLookupError:
            continue


class RehearsedHangs(command_line.CommandTest):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.recording = self.folder / "run.zscope"

    def why(self, stage, kind, expected, settings=(), more=(), ranks=3):
        """The paragraph, once it is what is expected: what ranks emitted last may still be on its way, and a stopped rank is known
        as one after a while. `{S}` is seconds, `{T}` a time, `{E}` how a wait ended: by the library's error, if that event arrived."""
        for path in self.folder.glob("*.sock"):
            path.unlink()
        endpoint = f"ipc://{self.folder}/run.sock"
        sets = [part for key, value in dict(settings).items() for part in ("--set", f"{key}={value}")]
        run = subprocess.Popen([BIN / "shardscope", "run", "--no-view", "--config", ROOT / f"samples/stage{stage}.json", "--ranks",
                                str(ranks), "--model", "mlp", "--data", "golden:mlp", "--steps", "20", "--record", self.recording,
                                "--overwrite", "--listen", endpoint, "--fault", f"rank=1,step={STEP},kind={kind}", *sets, *more],
                               env=ENV, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        pattern = re.escape(expected).replace(r"\{S\}", r"[0-9.]+ s").replace(r"\{T\}", r"[0-9.]+ [nmµu]?s")
        pattern = pattern.replace(r"\{E\}", "(the first of them ended|it ended by an error)")
        try:
            deadline = time.monotonic() + 60
            text = ""
            while not re.search(pattern, text):
                self.assertLess(time.monotonic(), deadline, f"{pattern}\nnot in\n{text}")
                if run.poll() is None:
                    asked = command_line.shardscope("why", endpoint, "--quiet", 1, "--wait", 5)
                    text = asked.stdout if asked.returncode == 0 else text
                else:
                    text = said("why", self.recording)
            hangs = run.poll() is None
        finally:
            # Ranks would wait as long as --collective-timeout says; and mpirun may not notice that ranks which ended within
            # one moment are gone.
            if run.poll() is None:
                end_below(run.pid)
            warnings = run.communicate()[1]
        self.assertIn("warning: --fault: this run rehearses a hang: rank 1 ", warnings)
        return hangs, text

    def still_hangs(self, *arguments, **more):
        self.assertTrue(self.why(*arguments, **more)[0])

    def test_an_early_return(self):
        for stage, waited in ((2, "reduce #11 for out and 21 more parameters (392 KiB)"), (3, "all-gather #115 for inp (2.77 KiB)")):
            self.why(stage, "return", f"Ranks 0, 2 waited in {waited} for rank 1, since {{S}}, until {{E}} {{T}} "
                     "later. Rank 1 never entered it: it has ended, with code 0; the last gate that it passed is optimizer 4", ALONE)

    def test_a_skipped_module(self):
        other = "In the forward of micro-step 5 rank 1 ran blk.2 where ranks 0, 2 ran blk.1. Ranks 0, 1, 2 failed with exit code 1."
        self.why(2, "skip-module,module=blk.1", "The ranks issued different collectives (size): rank 1 reduce #11 for out and 15 more "
                 "parameters (263 KiB); ranks 0, 2 reduce #11 for out and 21 more parameters (392 KiB). " + other)
        self.why(3, "skip-module,module=blk.1", "for blk.1.ln (528 B); rank 1 all-gather #119 for blk.2.ln (528 B). " + other, ALONE)

    def test_a_skipped_module_whose_ranks_wait_for_each_other(self):
        self.still_hangs(3, "skip-module,module=blk.1",
                    "Ranks 0, 2 wait in reduce-scatter #32 for out and 21 more parameters (392 KiB) for rank 1, since {S} (at least "
                    "{S}). Rank 1 never entered it: it waits in all-gather #32 for blk.2.ln (528 B) for ranks 0, 2; the last gate "
                    "that it passed is post-forward of blk.2, its last event is of {S}. The ranks issued different collectives "
                    "(operation): rank 1 all-gather #32 for blk.2.ln (528 B); ranks 0, 2 reduce-scatter #32 for out and 21 more "
                    "parameters (392 KiB). In the forward of micro-step 5 rank 1 ran blk.2 where ranks 0, 2 ran blk.1.")

    def test_another_branch(self):
        other = "In the forward of micro-step 5 rank 1 ran blk.1 where ranks 0, 2 ran blk.0. Ranks 0, 1, 2 failed with exit code 1."
        # All buckets are as long and begin with the same parameter: the modules alone show it.
        self.why(2, "swap-modules,module=blk.0", other, SMALL)
        self.why(3, "swap-modules,module=blk.0", "for blk.0.ln (528 B); rank 1 all-gather #116 for blk.1.ln (528 B). " + other, ALONE)

    def test_fewer_batches(self):
        self.still_hangs(2, "fewer-steps", "Ranks 0, 2 wait in reduce #11 for out and 21 more parameters (392 KiB) for rank 1, since {S} (at "
                    "least {S}). Rank 1 never entered it: it is between two steps, after step 4; the last gate that it passed is "
                    "optimizer 4")
        self.still_hangs(3, "fewer-steps", "Ranks 0, 2 wait in all-gather #115 for inp (2.77 KiB) for rank 1, since {S} (at least {S}). Rank "
                    "1 never entered it: it is between two steps, after step 4; the last gate that it passed is optimizer 4", ALONE)

    def test_fewer_micro_batches(self):
        twice = {"gradient_accumulation_steps": 2}
        for stage, waited in ((2, "reduce #17 for out and 21 more parameters (392 KiB)"), (3, "for inp (2.77 KiB)")):
            self.still_hangs(stage, "fewer-micro-steps", f"{waited} for rank 1, since {{S}} (at least {{S}}). Rank 1 never entered it: it is "
                        "in the phase optimizer; the last gate that it passed is optimizer 5", {**ALONE, **twice})

    def test_a_rank_that_saves_alone(self):
        for stage, waited in ((2, "reduce #11 for out and 21 more parameters (392 KiB)"), (3, "all-gather #115 for inp (2.77 KiB)")):
            self.still_hangs(stage, "save-alone", f"Ranks 0, 2 wait in {waited} for rank 1, since {{S}} (at least {{S}}). Rank 1 never entered "
                        "it: it is in the phase checkpoint save; the last gate that it passed is optimizer 4", ALONE,
                        ("--checkpoint", self.folder / f"checkpoints{stage}"))

    def test_a_rank_that_dies(self):
        for stage, waited in ((2, "reduce #11 for out and 21 more parameters (392 KiB)"), (3, "all-gather #115 for inp (2.77 KiB)")):
            self.why(stage, "die", f"Ranks 0, 2 waited in {waited} for rank 1, since {{S}}, until {{E}} {{T}} later. No "
                     "event shows that rank 1 entered it: it was killed by signal 9 (SIGKILL)", ALONE)

    def test_a_rank_that_is_stopped(self):
        for stage, waited in ((2, "reduce #11 for out and 21 more parameters (392 KiB)"), (3, "all-gather #115 for inp (2.77 KiB)")):
            self.still_hangs(stage, "stop", f"Ranks 0, 2 wait in {waited} for rank 1, since {{S}} (at least {{S}}). Rank 1 never entered it: "
                        "it is stopped since {S}", ALONE)

    def test_of_two_ranks_each_waits_for_the_other(self):
        self.still_hangs(3, "fewer-steps", "Rank 0 waits in all-gather #115 for inp (2.75 KiB) for rank 1, since {S} (at least {S}). Rank 1 "
                    "never entered it", ALONE, ranks=2)

    def test_such_a_run_says_what_it_is(self):
        text = self.why(2, "return", "Rank 1 never entered it")[1]
        self.assertIn(" The run rehearses this: rank 1 ends with code 0 before step 5 on purpose.", text)
        found = command_line.read("findings", self.recording)
        self.assertEqual(found[0]["id"], "rehearsed_fault")
        self.assertIn("Rank 1 ends with code 0 before step 5 on purpose.", found[0]["evidence"])
        self.assertIn("rank_failed", [one["id"] for one in found[1:]])
        page = self.folder / "report.html"
        said("report", self.recording, "-o", page)
        self.assertIn("Rank 1 ends with code 0 before step 5 on purpose.", page.read_text())

    def test_what_cannot_happen_is_refused(self):
        run = ("run", "--config", ROOT / "samples/stage3.json", "--model", "mlp", "--data", "golden:mlp", "--ranks", 2, "--fault")
        wrong = command_line.shardscope(*run, "rank=1,step=3,kind=sleep")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("kind=sleep is unknown; there are return, skip-module", wrong.stderr)
        self.refused((*run, "rank=2,step=3,kind=die"), "--fault: rank=2, but the run has 2 ranks")
        self.refused((*run, "rank=1,step=3,kind=skip-module,module=inp"), "--fault: module=inp cannot be skipped")


if __name__ == "__main__":
    command_line.main()
