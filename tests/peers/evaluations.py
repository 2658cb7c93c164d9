"""Compares evaluations between training steps: engine.eval() and forwards without gradients in DeepSpeed, and what
shardscope.eval_interval does."""
from cases import EVALUATION, STEPS
from differences import deviation, first_difference


def compare(case, own, peer, bound):
    """('' or the difference, the figure to print) of what evaluations did."""
    after = [step for step in range(STEPS) if (step + 1) % EVALUATION["interval"] == 0]
    worst = 0.0
    for rank, seen in enumerate(peer.seen):
        ours, theirs = own.evaluations(rank), seen["evaluations"]
        where = f" of rank {rank}"
        if [each["step"] for each in ours] != after or len(theirs) != len(after):
            return f"{where}: ours are after steps {[each['step'] for each in ours]}, DeepSpeed's are {len(theirs)}", ""
        for number, (mine, of_peer) in enumerate(zip(ours, theirs)):
            difference = compare_one(case, mine, of_peer)
            if difference:
                return f"{where}, evaluation {number}:{difference}", ""
    for number, mine in enumerate(own.evaluations(0)):
        losses = [loss for seen in peer.seen for loss in seen["evaluations"][number]["losses"]]
        worst = max(worst, deviation([mine["loss"]], [sum(losses) / len(losses)]))
    gathers = sum(len(batch) for each in peer.seen[0]["evaluations"] for batch in each["gathers"])
    figure = f"{worst:.0e}" + (f", gathers equal: {gathers}" if case.stage == 3 else "")
    return ("" if worst <= bound else f": losses deviate by {worst:.1e}"), figure


def compare_one(case, mine, of_peer):
    if len(of_peer["losses"]) != EVALUATION["batches"]:
        return f" DeepSpeed's are of {len(of_peer['losses'])} batches"
    theirs = of_peer["collectives"]
    if case.stage < 3:  # every rank has its parameters: nothing is to travel
        ours = mine["outside"] + sum(mine["collectives"], [])
        return f" collectives{first_difference([ours], [sum(theirs, [])])}" if ours or any(theirs) else ""
    if mine["outside"]:
        return f" collectives before the first batch: {mine['outside']}"
    if len(mine["gathers"]) != EVALUATION["batches"]:
        return f" ours are of {len(mine['gathers'])} batches"
    ours = mine["collectives"]
    if case.world == 1:  # DeepSpeed leaves out a gather from one rank
        ours, theirs = ([[c for c in batch if c[0] != "all_gather"] for batch in of] for of in (ours, theirs))
    for what, a, b in (("collectives", ours, theirs), ("gathers", mine["gathers"], of_peer["gathers"])):
        difference = first_difference(a, b)
        if difference:
            return f" {what}{difference}"
    return ""


def changed_training(case, evaluated, plain):
    """('' or the difference, {} or what to print) of training beside the run that does not evaluate, on both sides.

    Losses and norms are the same to the last bit. In stage 3 DeepSpeed evaluates by the coordinator of training: what a
    forward leaves gathered for a backward serves the next forward, so the micro-step after an evaluation gathers less. Ours
    must do so in the same micro-steps, and no others may change."""
    (own, peer), (plain_own, plain_peer) = evaluated, plain
    after = {(step + 1) * case.parts for step in range(STEPS - 1) if (step + 1) % EVALUATION["interval"] == 0}
    changed = []
    for rank in range(case.world):
        pairs = (("ours, losses", own.losses(rank), plain_own.losses(rank)),
                 ("ours, norms", own.norms(), plain_own.norms()),
                 ("DeepSpeed, losses", *([step[1] for step in run.steps[rank]] for run in (peer, plain_peer))),
                 ("DeepSpeed, norms", *([step[2] for step in run.steps[rank]] for run in (peer, plain_peer))))
        for what, a, b in pairs:
            if a != b:
                return f" of {what} of rank {rank} with evaluations {a}, without {b}", {}
        if case.stage < 3:
            if difference := first_difference(own.collectives(rank), plain_own.collectives(rank)):
                return f" of rank {rank}: our collectives with evaluations (first) and without: {difference}", {}
            continue
        ours = differing(own.gathers(rank), plain_own.gathers(rank))
        theirs = differing(peer.seen[rank]["gathers"], plain_peer.seen[rank]["gathers"])
        if ours != theirs or not set(ours) <= after:
            return f" of rank {rank}: evaluation changes micro-steps {ours} of ours, {theirs} of DeepSpeed's", {}
        changed = ours
    return "", {"micro-steps after it gather less": len(changed)} if changed else {}


def differing(ours, theirs):
    return [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b] + ([-1] if len(ours) != len(theirs) else [])
