"""Reads a recording; each part is a cell where an editor knows `# %%` (VS Code, Jupytext):

    python samples/attach/read_recording.py fsdp2.zscope

It needs the package and pandas; `shardscope attach --record fsdp2.zscope -- torchrun ...` makes a recording.
"""
# %% The recording, and what the command line would say of it
import sys

import shardscope

run = shardscope.open(sys.argv[1] if len(sys.argv) > 1 else "fsdp2.zscope")
summary = run.summary()
print(summary["run"]["framework"], "on", summary["run"]["world"], "ranks:", summary["steps"], "steps, median", summary["step_ms"]["median"], "ms")
for finding in run.findings():
    print("-", finding["title"])

# %% Where each step went, by rank and phase
phases = run.spans(kind="phase").to_pandas()
by_step = phases.pivot_table(index=["rank", "phase"], columns="step", values="duration_ns", aggfunc="sum") / 1e6
print(by_step.iloc[:, 1:6].round(2).to_string())

# %% Which module the computation waited longest for
waits = run.spans(kind="fetch_wait").to_pandas()
if len(waits):
    print((waits.groupby("label")["duration_ns"].agg(["count", "sum", "max"]).sort_values("sum", ascending=False) / [1, 1e6, 1e6]).head().to_string())

# %% How much each collective moved, and how long the ranks were in it
collectives = run.spans(kind="collective").to_pandas()
print(collectives.groupby(["rank", "op"]).agg(count=("bytes", "size"), bytes=("bytes", "sum"), ms=("duration_ns", lambda ns: ns.sum() / 1e6)).to_string())

# %% One step alone, without keeping more than a batch of rows in memory
spans = 0
for batch in run.spans(step=summary["steps"] - 1).batches():
    spans += batch["begin_ns"].rows
print("spans of the last step:", spans)
