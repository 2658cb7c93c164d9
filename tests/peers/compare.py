#!/usr/bin/env python3
"""Trains the same model on the same data with DeepSpeed and with zero_train, and compares what they did, step by step.

usage: tests/peers/compare.py [--venv FOLDER] [--build FOLDER] [--only TEXT] [--markdown FILE]

Cases (cases.py): the residual MLP of 100417 parameters and a GPT of 26340, and the GPT with its head tied to its token
embedding; stages 0 to 3; 1 to 4 ranks; fp32; accumulation of 3, also with round_robin_gradients, and bf16; two parameter
groups (biases and norms without weight decay, at another rate); stage 3 with persistent parameters; evaluations between
steps; sequences shorter than the model's context. zero_train runs with "compat": "deepspeed". Compared: the loss of every
rank and micro-step and the norm of the gradient of every step, within the bounds below; the collectives of a step in order,
with their elements; the partitions (stages 1 and 2: flat buffer, partition, padding, the slice of every parameter on every
rank; stage 3: elements and padding of every shard); in stages 1 and 2, with the switch gradient_buffers, the bytes of
gradients against DeepSpeed's live storages (the buckets of a backward, what is owned before the update, its fp32 copies, what
is left after); in stage 3 the parameters of every gather of every micro-step, in order. Of evaluations: the loss, collectives
and gathers of every batch, and that training does what it does without them (evaluations.py). In "lengths" the
size of micro-batches changes with every micro-step and rank, in both alike (shardscope.micro_batches.shapes); in "copies"
two data-parallel groups of two ranks train a copy of the model each (shardscope.data_parallel_groups; there an mpu).
Exit code 0 only if everything agrees. The virtual environment of the peers (5 GB) is made at the first call.
"""
import argparse
import collections
import functools
import json
import os
import pathlib
import subprocess
import sys

import evaluations
import launch
import own_events
import peer_models
from cases import COPIES, EVALUATION, GROUPS, LENGTHS, SHORT, STEPS, cases, copy_size, has, job_of, name_of, place_of, without, zero_settings
from differences import deviation, first_difference
from own_events import Recording

# Largest relative deviation. fp32: rounding in other orders of summation, as between DeepSpeed's own stages (golden
# data: 1.3e-6). bf16: activations, weights and gradients are rounded to 8 bits at other places (zero_train's kernels
# compute in fp32 and round once), and the steps at lr 1e-3 that follow move the losses by a third or more each.
BOUNDS = {"fp32": {"loss": 2e-5, "norm": 2e-5}, "bf16": {"loss": 5e-2, "norm": 5e-2}}


def run_deepspeed(python, chosen, scratch, environment):
    """All cases of one world in one set of processes."""
    for world in sorted({case.world for case in chosen}):
        jobs = [job_of(case, scratch / name_of(case) / "deepspeed") for case in chosen if case.world == world]
        run = launch.start_peers(python, jobs, world, scratch / f"deepspeed-world{world}", environment)
        try:
            run.wait(60 + 90 * len(jobs))
        except launch.PeerError as error:
            print(error, file=sys.stderr)  # the cases concerned lack their results and are reported one by one
        finally:
            run.kill()


def write_weights(path, model):
    import formula_data
    from safetensors.numpy import save_file
    module = peer_models.torch_model(model, peer_models.GOLDEN_GPT)
    save_file({name: formula_data.initial_weight(name, i, tuple(p.shape))
               for i, (name, p) in enumerate(module.named_parameters())}, path)


def run_own(build, case, folder):
    folder = launch.fresh(folder)
    job = job_of(case, folder)
    ours = job["config"]["shardscope"] = {"compat": {"preset": "deepspeed", "gradient_buffers": case.stage in (1, 2)}}
    data, more = f"golden:{peer_models.DATA[case.model]}", []
    if has(case, "groups"):
        ours["param_groups"] = GROUPS
    if has(case, "evaluation"):
        ours.update(eval_interval=EVALUATION["interval"], eval_batches=EVALUATION["batches"])
        more += ["--eval-data", data]
    if has(case, "copies"):
        ours["data_parallel_groups"] = COPIES
    if has(case, "lengths"):
        ours["micro_batches"] = {"shapes": LENGTHS}
    launch.own_arguments(job, folder)  # writes model.json and config.json
    if has(case, "context_7"):  # of the data; the table of positions keeps its rows
        tree = json.loads((folder / "model.json").read_text())
        tree["input"]["context"] = SHORT
        (folder / "model.json").write_text(json.dumps(tree))
    write_weights(str(folder / "init.safetensors"), case.model)
    program = pathlib.Path(build) / "bin" / "shardscope"
    train = [program, "run", "--no-view", "--ranks", str(case.world), "--config", folder / "config.json", "--model",
             folder / "model.json", "--data", data, "--steps", str(STEPS), "--init", folder / "init.safetensors", "--record",
             folder / "run.zscope", *more]
    for command in (train, [program, "export", folder / "run.zscope", "--format", "csv", "--output", folder / "csv"]):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise launch.PeerError(f"{command[1]} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return Recording(folder / "csv")


class Peer:
    """What DeepSpeed left in its folder."""

    def __init__(self, folder, world):
        lines = [(folder / f"rank{r}.steps").read_text().splitlines() for r in range(world)]
        self.steps = [[json.loads(line) for line in of_rank] for of_rank in lines]
        self.seen = [json.loads((folder / f"rank{r}.json").read_text()) for r in range(world)]


def comparable_steps(case):
    """DeepSpeed keeps no fp32 master weights in stage 0 with bf16 (its DDP_BFLOAT16): its own stages 1 to 3 part from
    its stage 0 by a third within five steps. So only what precedes the first update can agree."""
    return 1 if case.stage == 0 and case.dtype == "bf16" else STEPS


def compare_layout(case, own, peer):
    if case.stage == 3:
        shards = {}
        for s in own.slices:
            if has(case, "copies") and s["rank"] not in COPIES[0]:
                continue  # of the other copy: the same
            size, padding = shards.get(s["param"], (0, 0))
            shards[s["param"]] = (max(size, s["elems"] + s["padding_elems"]), padding + s["padding_elems"])
        ours = [[size, padding] for _, (size, padding) in sorted(shards.items())]
        return first_difference(ours, peer.seen[0]["layout"]["shards"])
    for rank, seen in enumerate(peer.seen):
        mine = sorted((s for s in own.slices if s["rank"] == rank), key=lambda s: s["shard_offset"])
        ours = [[s["param"], s["param_offset"], s["elems"]] for s in mine if s["elems"] > 0]
        difference = first_difference(ours, seen["layout"]["slices"])
        if difference:
            return f" slices of rank {rank}{difference}"
        held = sum(s["elems"] for s in mine)
        sizes = (seen["layout"]["partition"], seen["layout"]["flat"])
        last = place_of(case, rank) + 1 == copy_size(case)
        if sizes[0] * copy_size(case) != sizes[1] or held + (seen["layout"]["padding"] if last else 0) != sizes[0]:
            return f" rank {rank} holds {held} elements, DeepSpeed's partition and flat buffer have {sizes}"
    return ""


def blocks(elem_bytes):
    return -(-elem_bytes // own_events.BLOCK) * own_events.BLOCK


def compare_gradients(case, own, peer):
    """Bytes of gradients in each step of each rank, against DeepSpeed's live storages (peer_observer)."""
    for rank, seen in enumerate(peer.seen):
        kept = own.held(rank, own_events.GRAD_FULL)
        owned = own.held(rank, own_events.GRAD_SHARD)
        buckets = own.held(rank, own_events.REDUCE_BUCKET)
        if len(seen["gradients"]) != STEPS:
            return f" of rank {rank}: DeepSpeed's of {len(seen['gradients'])} steps were seen"
        for step, theirs in enumerate(seen["gradients"]):
            where = f" of rank {rank} in step {step}"
            if max(buckets[step]) != blocks(theirs["bucket"]):
                return f"{where}: buckets take {max(buckets[step])}, DeepSpeed's {theirs['bucket']}"
            # 16 bits, 16 bits and fp32, fp32, nothing.
            first, both, copies, after = owned[step][-4:]
            if copies != blocks(theirs["copies"]) or both != first + copies:
                return f"{where}: fp32 copies take {owned[step]}, DeepSpeed's {theirs['copies']}"
            if theirs["beside"] != 0 or theirs["after"] != 0 or after != 0 or (kept[step] and kept[step][-1] != 0):
                return f"{where}: gradients beside and after the copies: {after} and {kept[step][-1:]}, DeepSpeed's {theirs}"
            # DeepSpeed keeps whole what a partition has any part of; here the rest of such a gradient is apart.
            size = 2 if case.dtype == "bf16" else 4
            whole = first + (kept[step][-1 - spanning(case, own, rank)] if spanning(case, own, rank) else 0)
            if abs(whole - theirs["owned"]) > 3 * own_events.BLOCK + size * 2 * case.world:
                return f"{where}: owned gradients take {whole}, DeepSpeed's {theirs['owned']}"
    return ""


def spanning(case, own, rank):
    """How many gradients the rank owns a part of, and not all."""
    held = collections.Counter()
    for s in own.slices:
        if s["rank"] == rank:
            held[s["param"]] += s["elems"]
    return sum(0 < elems < int(own.params[param]["elems"]) for param, elems in held.items())


def by_step(micro_steps, parts):
    return [sum(micro_steps[i:i + parts], []) for i in range(0, len(micro_steps), parts)]


def compare(case, own, peer):
    """{what: '' or the difference}, and figures to print."""
    found, figures = {}, {}
    bound = BOUNDS[case.dtype]
    steps = comparable_steps(case)
    theirs = [loss for rank in peer.steps for step in rank[:steps] for loss in step[1]]
    ours = [loss for r in range(case.world) for loss in own.losses(r)[:steps * case.parts]]
    figures["loss"] = deviation(ours, theirs)
    found["losses"] = "" if figures["loss"] <= bound["loss"] else f" deviate by {figures['loss']:.1e}"
    norms = [step[2] for step in peer.steps[0][:steps]]
    if None not in norms:  # DeepSpeed reports none in stage 0 with fp32
        figures["norm"] = deviation(own.norms()[:steps], norms)
        found["norms"] = "" if figures["norm"] <= bound["norm"] else f" deviate by {figures['norm']:.1e}"
    theirs = by_step(peer.seen[0]["collectives"], case.parts)
    ours = own.collectives(0)
    if case.world == 1:
        # DeepSpeed leaves out a gather from one rank (NoGatherHandle), zero_train makes it a local step: nothing
        # travels in either.
        theirs, ours = ([[c for c in step if c[0] != "all_gather"] for step in of] for of in (theirs, ours))
    size = 2 if case.dtype == "bf16" else 4
    totals = collections.Counter()
    for op, elems in theirs[-1] if theirs else []:
        totals[op] += elems * size
    figures["bytes"] = ", ".join(f"{op} {total}" for op, total in sorted(totals.items()))
    if threshold := zero_settings(case).get("stage3_param_persistence_threshold"):
        sizes = [size * copy_size(case) - padding for size, padding in peer.seen[0]["layout"]["shards"]]
        persistent = [elems for elems in sizes if elems <= threshold]
        if not 0 < len(persistent) < len(sizes):
            found["persistent"] = f" {len(persistent)} of {len(sizes)} parameters persist: this case compares nothing"
    found["collectives"] = first_difference(ours, theirs)
    if case.stage > 0:
        found["layout"] = compare_layout(case, own, peer)
    if case.stage in (1, 2) and not has(case, "groups"):
        found["gradients"] = compare_gradients(case, own, peer)
    if case.stage == 3:
        for rank, seen in enumerate(peer.seen):
            difference = first_difference(own.gathers(rank), seen["gathers"])
            if difference:
                found["gathers"] = f" of rank {rank}{difference}"
                break
        else:
            found["gathers"] = ""
        figures["gathers"] = sum(map(len, peer.seen[0]["gathers"]))
    if has(case, "evaluation"):
        found["evaluation"], figures["evaluation"] = evaluations.compare(case, own, peer, bound["loss"])
    return found, figures


def report(rows):
    lines = ["| model | stage | ranks | accumulation | type | settings | losses | norms | bytes by operation and step | layout | "
             "gradients | gathers | evaluation |", "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for case, found, figures in rows:
        def cell(what, figure=""):
            if what not in found:
                return ""
            return "**differ**" if found[what] else (figure or "equal")
        lines.append(f"| {case.model} | {case.stage} | {case.world} | {case.parts} | {case.dtype} | {case.settings} | "
                     f"{cell('losses', '%.0e' % figures.get('loss', 0))} | "
                     f"{cell('norms', '%.0e' % figures.get('norm', 0))} | "
                     f"{cell('collectives', 'equal: ' + (figures.get('bytes') or 'none'))} | {cell('layout')} | "
                     f"{cell('gradients')} | {cell('gathers', 'equal: %d' % figures.get('gathers', 0))} | "
                     f"{cell('evaluation', figures.get('evaluation'))} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", default=launch.DEFAULT_VENV)
    parser.add_argument("--build", default=launch.DEFAULT_BUILD)
    parser.add_argument("--scratch", default=launch.ROOT / "build" / "peers-runs")
    parser.add_argument("--only", default="", help="cases whose name contains this, e.g. mlp-stage3 or gas3")
    parser.add_argument("--reuse", action="store_true", help="keep what DeepSpeed did in the last call")
    parser.add_argument("--markdown", help="writes the table to this file too")
    options = parser.parse_args()
    python = launch.ensure_venv(options.venv)
    if pathlib.Path(sys.prefix).resolve() != pathlib.Path(options.venv).resolve():
        os.execve(python, [str(python), *sys.argv], launch.peer_environment(python))
    chosen = [case for case in cases() if options.only in name_of(case)]
    scratch = pathlib.Path(options.scratch) if options.reuse else launch.fresh(options.scratch)
    print(launch.versions(python), flush=True)
    bf16 = launch.bf16_environment(python) if any(c.dtype == "bf16" for c in chosen) else {}
    # What is trained without evaluation, for what evaluation changes.
    plain = [without(case, "evaluation") for case in chosen if has(case, "evaluation")]
    missing = [case for case in dict.fromkeys(chosen + plain) if not (scratch / name_of(case) / "deepspeed" / "rank0.json").exists()]
    run_deepspeed(python, missing, scratch, bf16)
    rows, failures = [], 0

    @functools.lru_cache(maxsize=None)
    def run_of(case):
        folder = scratch / name_of(case)
        return run_own(options.build, case, folder / "own"), Peer(folder / "deepspeed", case.world)

    for case in chosen:
        try:
            found, figures = compare(case, *run_of(case))
            if has(case, "evaluation"):
                found["training"], changes = evaluations.changed_training(case, run_of(case),
                                                                          run_of(without(case, "evaluation")))
                figures["evaluation"] += "".join(f", {what}: {count}" for what, count in changes.items())
        except (launch.PeerError, OSError, subprocess.TimeoutExpired) as error:
            found, figures = {"run": f" {error}"}, {}
        bad = {what: difference for what, difference in found.items() if difference}
        failures += bool(bad)
        print(f"{'DIFFERS' if bad else 'agrees '} {name_of(case)}", flush=True)
        for what, difference in bad.items():
            print(f"    {what}{difference}", flush=True)
        rows.append((case, found, figures))
    table = report(rows)
    print(table)
    if options.markdown:
        pathlib.Path(options.markdown).write_text(table + "\n")
    print(f"{len(chosen) - failures} of {len(chosen)} cases agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
