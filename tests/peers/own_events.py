"""Reads what zero_train did from a recording, through `shardscope export --format csv`."""
import csv
import struct

# CollectiveOp of instrumentation/event.h.
# MemoryCategory.
GRAD_FULL, GRAD_SHARD, REDUCE_BUCKET = 3, 4, 8
BLOCK = 256  # of an arena
OPS = ("all_gather", "reduce_scatter", "reduce", "all_reduce", "broadcast", "barrier", "all_to_all")


def as_double(bits):
    return struct.unpack("<d", struct.pack("<q", int(bits)))[0]


def submitted(event):
    return [OPS[int(event["code"])], int(event["v0"])]


class Recording:
    """A recording's tables; everything by step, as the ranks' hosts issued it."""

    def __init__(self, folder):
        with open(folder / "events.csv", newline="") as file:
            self.events = list(csv.DictReader(file))
        with open(folder / "spans.csv", newline="") as file:  # of them only where steps end, as an event
            self.events += [{"rank": row["rank"], "at_ns": row["end_ns"], "kind": "step_end"}
                            for row in csv.DictReader(file) if row["kind"] == "step_begin"]
        with open(folder / "slices.csv", newline="") as file:
            self.slices = [{k: int(v) for k, v in row.items()} for row in csv.DictReader(file)]
        with open(folder / "params.csv", newline="") as file:
            self.params = list(csv.DictReader(file))

    def host(self, rank):
        """Events of a rank's host thread in the order in which it made them."""
        mine = [e for e in self.events if int(e["rank"]) == rank]
        return sorted(mine, key=lambda e: int(e["at_ns"]))

    def losses(self, rank):
        return [as_double(e["v0"]) for e in self.host(rank) if e["kind"] == "loss"]

    def norms(self):
        return [as_double(e["v0"]) for e in self.host(0) if e["kind"] == "grad_norm"]

    def collectives(self, rank):
        """By step: [op, elements of the whole tensor]."""
        steps, inside = [], False
        for event in self.host(rank):
            if event["kind"] == "loss_scale":  # the first thing a step says
                steps.append([])
                inside = True
            elif event["kind"] == "step_end":  # what comes before the next one is an evaluation's
                inside = False
            elif event["kind"] == "collective_submitted" and inside:
                steps[-1].append(submitted(event))
        return steps

    def evaluations(self, rank):
        """Of each: its step, its loss (over all ranks and batches), collectives and gathers by batch as above; in
        "outside" collectives that came before the first batch or, in stages 0 to 2, at any time."""
        found, now = [], None
        for event in self.host(rank):
            kind = event["kind"]
            if kind == "step_end":
                now = {"collectives": [], "gathers": [], "outside": []}
                parts = {}
            elif kind == "loss_scale":
                now = None
            elif now is None:
                continue
            elif kind == "eval_trace_mode":
                now["collectives"].append([])
                now["gathers"].append([])
                parts = {}
            elif kind == "collective_submitted":
                (now["collectives"] or [now["outside"]])[-1].append(submitted(event))
            elif kind == "collective_part" and now["gathers"] and OPS[int(event["code"])] == "all_gather":
                if event["a"] not in parts:
                    parts[event["a"]] = []
                    now["gathers"][-1].append(parts[event["a"]])
                parts[event["a"]].append(int(event["b"]))
            elif kind == "eval_loss":
                now["gathers"] = [[sorted(g) for g in batch] for batch in now["gathers"]]
                found.append({**now, "step": int(event["a"] or event["b"]), "loss": as_double(event["v0"])})
                now = None
        return found

    def gathers(self, rank):
        """By micro-step: parameters of one gather, each a sorted list; gathers after the step are left out."""
        micro_steps, open_gather = [], {}
        for event in self.host(rank):
            kind = event["kind"]
            if kind == "trace_mode":
                micro_steps.append([])
            elif kind == "overflow":  # the update begins
                open_gather = None
            elif kind == "loss_scale":
                open_gather = {}
            elif kind == "collective_part" and open_gather is not None and micro_steps:
                if OPS[int(event["code"])] != "all_gather":
                    continue
                sequence = event["a"]
                if sequence not in open_gather:
                    open_gather[sequence] = []
                    micro_steps[-1].append(open_gather[sequence])
                open_gather[sequence].append(int(event["b"]))
        return [[sorted(g) for g in micro] for micro in micro_steps]

    def held(self, rank, category):
        """By step: bytes of device memory of a category as it changes, from the first change of the step on."""
        steps, now = [], 0
        for event in self.host(rank):
            if event["kind"] == "loss_scale":
                steps.append([])
            elif event["kind"] in ("memory_alloc", "memory_free") and int(event["code"]) == category:
                now += int(event["v0"]) * (1 if event["kind"] == "memory_alloc" else -1)
                if steps:
                    steps[-1].append(now)
        return steps
