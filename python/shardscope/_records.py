"""Capabilities of each framework's hooks, and reasons for the missing ones: views then say "not recorded" and why."""
from shardscope import _core, _nccl

NAMES = ("steps micro_steps phases modules param_status layout fetch_waits prefetches prefetch_reasons release_reasons trace "
         "fetch_counters collectives collective_ends collective_parts groups buckets flush_reasons reduce_waits memory "
         "allocator transfers optimizer loss grad_norm learning_rate loss_scale tokens data_waits gates kernels nccl "
         "not_finite_gradients").split()
BITS = {name: 1 << index for index, name in enumerate(NAMES)}
ALWAYS = "steps micro_steps phases optimizer loss grad_norm learning_rate data_waits gates collectives collective_ends groups memory"
SHARDED = "modules param_status layout fetch_waits prefetches release_reasons collective_parts buckets flush_reasons"
BY_FRAMEWORK = {
    "zero3": SHARDED + " prefetch_reasons trace fetch_counters loss_scale transfers",
    "zero12": "modules layout buckets flush_reasons collective_parts loss_scale transfers",
    "zero0": "modules collective_parts buckets flush_reasons loss_scale",
    "fsdp1": "modules param_status layout prefetches release_reasons collective_parts buckets flush_reasons loss_scale",
    "fsdp2": SHARDED + " loss_scale transfers",
    "ddp": "modules collective_parts buckets flush_reasons loss_scale",
    "megatron": "modules layout fetch_waits collective_parts buckets flush_reasons loss_scale",
    "colossalai": "modules layout collective_parts buckets flush_reasons loss_scale",
}
# Frameworks whose gradients are checked after an overflow, in runs on a CPU.
LOOKED_AT = ("zero3", "zero12")
# Reasons by framework; "" applies to all.
WHY = {
    "": {"allocator": "on a CPU torch's allocator keeps no figures",
         "transfers reduce_waits": "attached runs do not record it yet",
         "tokens": "a PyTorch script does not say how many tokens a batch has"},
    "zero12": {"param_status fetch_waits prefetches prefetch_reasons release_reasons trace fetch_counters":
               "parameters stay whole in stages 1 and 2"},
    "zero0": {"layout": "every rank has all of every parameter",
              "param_status fetch_waits prefetches prefetch_reasons release_reasons trace fetch_counters":
              "parameters stay whole in stage 0"},
    "fsdp1": {"fetch_waits": "FSDP1 lets its streams wait for one another, which a hook does not see",
              "prefetch_reasons trace fetch_counters": "FSDP1 prefetches by the order of modules: it keeps no trace"},
    "fsdp2": {"prefetch_reasons trace fetch_counters": "FSDP2 prefetches by the order of groups: it keeps no trace",
              "reduce_waits": "on a GPU a stream waits for the input buffer of a reduction; on a CPU each reduction has ended by then"},
    "ddp": {"layout": "every rank has all of every parameter",
            "param_status fetch_waits prefetches prefetch_reasons release_reasons trace fetch_counters":
            "parameters stay whole"},
    "colossalai": {"param_status fetch_waits prefetches prefetch_reasons release_reasons trace fetch_counters":
                   "parameters stay whole: only their updated values are gathered"},
    "megatron": {"param_status prefetches prefetch_reasons release_reasons trace fetch_counters":
                 "parameters stay whole: only their updated values are gathered"},
}


def bits(names):
    return sum(BITS[name] for name in names.split())


def recorded(kind, device="cpu"):
    """Mask of the capabilities of a framework's hooks."""
    mask = bits(ALWAYS) | bits(BY_FRAMEWORK[kind])
    if device.startswith("cuda"):
        return mask & ~bits("fetch_waits collective_ends") | bits("allocator") | (0 if _core.gpu_library_missing() else bits("kernels")) | \
            (0 if _nccl.missing() else bits("nccl"))
    return mask | (bits("reduce_waits") if kind in ("zero12", "megatron") else 0) | \
        (bits("not_finite_gradients") if kind in LOOKED_AT else 0)


def reasons(kind, device="cpu"):
    """(mask, reason) for all capabilities that they lack."""
    if device.startswith("cuda"):
        of_device = {"kernels": _core.gpu_library_missing(), "fetch_waits": "on a GPU a stream waits for a gather, which no hook sees",
                     "collective_ends": "on a GPU a Work is done when its operation has been queued: recorded ends are later than the real ones",
                     "nccl": _nccl.missing()}
    else:
        of_device = {"kernels nccl": "this run has no GPU"}
    of_device["not_finite_gradients"] = "in a run on a GPU no gradient is looked at, for which the host would wait" \
        if kind in LOOKED_AT else "only gradients of DeepSpeed's stages 1 to 3 are looked at after an overflow"
    tables = (WHY.get(kind, {}), WHY[""], of_device)
    seen, lacks = 0, []
    for table in tables:
        for names, why in table.items():
            mask = bits(names) & ~recorded(kind, device) & ~seen
            seen |= mask
            if mask:
                lacks.append((mask, why))
    return lacks
