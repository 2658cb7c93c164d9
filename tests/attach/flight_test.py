"""`shardscope why --flight-recorder` on dumps that PyTorch wrote of hangs on purpose, beside PyTorch's own analyzer on the same
dumps: the first difference that it names is named, at the same place of the same group, and where it blames those that did as
usual, or does not know, the rank that differs is named.

Gloo's dumps lack what the analyzer needs (the names and ranks of their process groups), so it is given copies with these filled
in, and with what gloo has retired as completed, as NCCL writes both."""
import ast
import json
import pathlib
import pickle
import re
import subprocess
import tempfile
import unittest

import runs

SCRIPT = runs.HERE / "scripts" / "flight.py"
ODD, WORLD = 1, 3
GROUPS = {"0": ("default_pg", list(range(WORLD))), "1": ("pair", [0, 1])}


def dumps_of(mode, here):
    """Without torchrun, which would end the others when one rank ends."""
    port = runs.free_port()
    ranks = [subprocess.Popen([runs.PYTHON, SCRIPT, mode, here], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=runs.process_environment(RANK=str(rank), WORLD_SIZE=str(WORLD), LOCAL_RANK=str(rank),
                                                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                                                           TORCH_FR_BUFFER_SIZE="2000")) for rank in range(WORLD)]
    said = [rank.communicate(timeout=runs.DEADLINE_S)[0] for rank in ranks]
    written = {path.name for path in (here / "pickle").iterdir()} if (here / "pickle").is_dir() else set()
    wanted = {f"trace_rank_{rank}" for rank in range(WORLD) if mode != "dies" or rank != ODD}
    if written != wanted:
        raise AssertionError(f"{mode}: dumps {sorted(written)}: {said}")


def completed(folder, to):
    """Copies as NCCL's are."""
    to.mkdir()
    for path in folder.iterdir():
        dump, rank = pickle.loads(path.read_bytes()), int(path.name[-1])
        dump["pg_config"] = {name: {"name": name, "desc": description, "ranks": str(ranks)}
                             for name, (description, ranks) in GROUPS.items() if rank in ranks}
        for entry in dump["entries"]:
            entry["state"] = "completed" if entry["retired"] else entry["state"]
        (to / path.name).write_bytes(pickle.dumps(dump, 2))
    return to


def why(folder):
    return json.loads(subprocess.run([runs.SHARDSCOPE, "why", "--json", "--flight-recorder", folder], capture_output=True, text=True,
                                     check=True).stdout)


def analyzer(folder):
    """What PyTorch's says first: group, sequence, ranks; None: it names nothing."""
    done = subprocess.run([runs.PYTHON.parent / "torchfrtrace", folder, "-p", "trace_rank_", "--allow-incomplete-ranks"],
                          capture_output=True, text=True, check=False, env=runs.process_environment())
    text = done.stdout + done.stderr
    if done.returncode != 0:
        raise AssertionError(text[-2000:])
    first = re.search(r"sequence number: (\d+).*?group info: (\d+):.*?(?=sequence number|\Z)", text, re.DOTALL)
    if not first:
        return None
    missing = re.search(r"missing ranks: (\{[^}]*\})", first[0])
    ranks = ast.literal_eval(missing[1]) if missing else {int(rank) for rank in re.findall(r"Culprit rank (\d+)", first[0])}
    return first[2], int(first[1]), ranks


def difference_at(answer, group, sequence):
    for one in answer["groups"]:
        if one["name"] == group and one["difference"] and one["difference"]["sequence"] == sequence:
            return one["difference"]
    return None


class FlightRecorder(unittest.TestCase):
    def compared(self, mode):
        with tempfile.TemporaryDirectory(prefix=f"flight-{mode}-") as kept:
            here = pathlib.Path(kept)
            dumps_of(mode, here)
            self.assertNotEqual(subprocess.run([runs.PYTHON.parent / "torchfrtrace", here / "pickle", "-p", "trace_rank_",
                                                "--allow-incomplete-ranks"], capture_output=True, check=False,
                                               env=runs.process_environment()).returncode, 0, "it reads gloo's dumps by now")
            own, other = why(here / "pickle"), completed(here / "pickle", here / "completed")
            as_nccl, theirs = why(other), analyzer(other)
            self.assertEqual(own["culprits"], as_nccl["culprits"])
            for answer in (own, as_nccl):
                if theirs:
                    self.assertIsNotNone(difference_at(answer, *theirs[:2]), (theirs, answer["text"]))
            return own, why(here / "json"), theirs

    def odd_is_named(self, mode, what, group="0", alone=True):
        own, plain, theirs = self.compared(mode)
        self.assertIsNotNone(theirs, mode)
        for answer in (own, plain):
            found = difference_at(answer, group, theirs[1])
            self.assertEqual(found["what"], what, answer["text"])
            self.assertTrue(any(side["ranks"] == [ODD] for side in found["sides"]), found)
        # Each side with the line of the script that issued it; JSON has no stacks.
        lines = {frame["line"] for side in difference_at(own, group, theirs[1])["sides"] for entry in [side["entry"]] if entry
                 for frame in entry["frames"] if frame["file"] == str(SCRIPT)}
        self.assertTrue(lines, own)
        self.assertIn(str(SCRIPT), own["text"])
        if alone:
            self.assertEqual(own["culprits"], [ODD], own["text"])
        return own, theirs

    def test_a_rank_that_leaves_out_or_swaps_a_collective(self):
        for mode in ("skips", "swaps"):
            _, theirs = self.odd_is_named(mode, "operation")
            self.assertEqual(theirs[2], {0, 2}, "PyTorch's names the ones that did as usual")

    def test_a_rank_that_returns(self):
        own, theirs = self.odd_is_named("returns", "missing")
        self.assertEqual(theirs[2], {ODD})
        self.assertIn(f"Rank {ODD} never issued it", own["text"])

    def test_other_sizes_and_types(self):
        self.odd_is_named("sizes", "sizes", alone=False)  # afterwards all of them wait for one another
        self.odd_is_named("types", "type", alone=False)   # of one width, and nothing hangs

    def test_sums_that_do_not_agree(self):
        self.odd_is_named("alltoall", "sizes", alone=False)

    def test_another_operation_in_a_group_of_two(self):
        own, _ = self.odd_is_named("group", "operation", group="1", alone=False)
        self.assertTrue(own["text"].startswith("Group 1 (pair)"), own["text"])

    def test_a_rank_without_a_dump(self):
        own, _, theirs = self.compared("dies")
        self.assertIsNone(theirs, "PyTorch's cannot decide")
        self.assertEqual((own["culprits"], own["without_dump"]), ([ODD], [ODD]))

    def test_a_message_that_no_rank_sends(self):
        own, _, _ = self.compared("receives")  # gloo records no messages: where rank 1 is not, is known
        self.assertEqual(own["culprits"], [ODD])

    def test_a_healthy_run(self):
        own, plain, theirs = self.compared("healthy")
        self.assertIsNone(theirs)
        for answer in (own, plain):
            self.assertTrue(all(one["difference"] is None for one in answer["groups"]), answer["text"])
            self.assertIn("these dumps show no hang", answer["text"])


if __name__ == "__main__":
    unittest.main()
