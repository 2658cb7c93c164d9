"""What each framework's hooks record, and why the rest is not: so that a view says "not recorded" with its reason."""
NAMES = ("steps micro_steps phases modules param_status layout fetch_waits prefetches prefetch_reasons release_reasons trace "
         "fetch_counters collectives collective_ends collective_parts groups buckets flush_reasons reduce_waits memory "
         "allocator transfers optimizer loss grad_norm learning_rate loss_scale tokens data_waits gates kernels nccl").split()
BITS = {name: 1 << index for index, name in enumerate(NAMES)}
ALWAYS = "steps micro_steps phases optimizer loss grad_norm learning_rate data_waits gates collectives collective_ends groups"
SHARDED = "modules param_status layout fetch_waits prefetches release_reasons collective_parts buckets flush_reasons"
BY_FRAMEWORK = {
    "zero3": SHARDED + " prefetch_reasons trace fetch_counters",
    "zero12": "layout buckets flush_reasons collective_parts",
    "zero0": "",
    "fsdp2": SHARDED,
    "ddp": "",
}
# Reasons by framework; "" for all.
WHY = {
    "": {"memory": "attached runs do not count memory yet",
         "allocator transfers kernels nccl reduce_waits": "attached runs do not record it yet",
         "tokens": "a PyTorch script does not say how many tokens a batch has",
         "loss_scale": "it is not read from the framework yet"},
    "zero12": {"modules param_status fetch_waits prefetches prefetch_reasons release_reasons trace fetch_counters":
               "parameters stay whole in stages 1 and 2, and DeepSpeed has no hooks of modules there"},
    "zero0": {"layout": "every rank has all of every parameter",
              "buckets flush_reasons collective_parts": "DeepSpeed reduces all gradients of stage 0 together",
              "modules param_status layout fetch_waits prefetches prefetch_reasons release_reasons trace fetch_counters":
              "parameters stay whole in stage 0, and DeepSpeed has no hooks of modules there"},
    "fsdp2": {"prefetch_reasons trace fetch_counters": "FSDP2 prefetches by the order of groups: it keeps no trace"},
    "ddp": {"layout": "every rank has all of every parameter",
            "buckets flush_reasons collective_parts": "DistributedDataParallel fills and reduces its buckets in C++",
            "modules param_status layout fetch_waits prefetches prefetch_reasons release_reasons trace fetch_counters":
            "parameters stay whole, and DistributedDataParallel has no hooks of modules"},
}


def bits(names):
    return sum(BITS[name] for name in names.split())


def recorded(kind):
    """The mask of what the hooks of a framework record."""
    return bits(ALWAYS) | bits(BY_FRAMEWORK[kind])


def reasons(kind):
    """(mask, why) of everything that they do not."""
    return [(bits(names), why) for table in (WHY[""], WHY.get(kind, {})) for names, why in table.items()]
