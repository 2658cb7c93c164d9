"""Memory by category: what the framework holds, each storage counted once, and on a device what its allocator says.

Each model has a source. `fixed(add, count)` gives what stays from step to step (shards, master weights, optimizer states);
`slots` are what comes and goes (gathered parameters, gradients, buffers of collectives).

A full look asks every storage for its size and is taken at the ends of phases: in the first steps, later as often as it
costs little. A quick look asks only which slots are filled, whose sizes are known by then; it is taken at the same
places and where a framework's hook knows that one has changed. Nothing is waited for, no tensor is touched.
"""
import time
import weakref

from shardscope import _core, _kinds as k, _say

PARAM_SHARD, PARAM_GATHERED, PARAM_SECONDARY, GRAD_FULL, GRAD_SHARD, MASTER_WEIGHT, MOMENTUM, VARIANCE, REDUCE_BUCKET, \
    GATHER_BUFFER, SWAP_BUFFER, QUANTIZATION, ACTIVATION, INPUT, TEMPORARY, OTHER = range(16)
DEVICE, HOST, PINNED = range(3)

SUB_GROUP = -1  # a place: quick looks only
FULL_STEPS = 3  # steps in which every look is a full one
FULL_SHARE = 0.0005  # of the time, at most, that full looks may take afterwards
STATES = {"exp_avg": MOMENTUM, "momentum_buffer": MOMENTUM, "exp_avg_sq": VARIANCE, "max_exp_avg_sq": VARIANCE,
          "square_avg": VARIANCE, "sum": VARIANCE}


class Slot:
    """Tensors that are there at times. `filled()`: whether they are; `tensors()`: they. `bytes`: what was counted for them
    when they were last seen in full; with `varies` they are measured each time; without `tensors` a hook keeps it. `now`: what is told of them."""
    __slots__ = ("category", "filled", "tensors", "host", "varies", "bytes", "now")

    def __init__(self, category, filled, tensors, host=False, varies=False):
        self.category, self.filled, self.tensors, self.host, self.varies = category, filled, tensors, host, varies
        self.bytes, self.now = None, 0

    def key(self):
        return (HOST if self.host else DEVICE), self.category

    def quickly(self, device):
        if not self.filled():
            return 0
        if self.bytes is None or self.varies:
            alone = Look(device)
            self.bytes = sum(alone.add(self.category, each, self.host) for each in self.tensors())
        return self.bytes


class Source:
    def __init__(self, fixed, slots=()):
        self.fixed, self.slots = fixed, list(slots)


class Look:
    """Sums of one full look."""

    def __init__(self, device):
        self.device, self.seen, self.sums = device, set(), {}

    def add(self, category, tensor, host=False):
        """`host`: kept in host memory because the framework offloads it, though the training's device is the CPU. Returns
        the bytes that had not been counted before."""
        if tensor is None:
            return 0
        tensor = getattr(tensor, "_local_tensor", tensor)
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        where = storage.data_ptr()
        if size == 0 or where in self.seen:
            return 0
        self.seen.add(where)
        self.count(category, size, host or (self.device != "cpu" and tensor.device.type == "cpu"))
        return size

    def count(self, category, size, host=False):
        if size == 0:
            return
        key = HOST if host else DEVICE, category
        self.sums[key] = self.sums.get(key, 0) + size


class Memory:
    def __init__(self):
        self.device = "cpu"
        self.sources = {}  # id(model) -> Source
        self.slots = []  # of all sources, each once
        self.optimizers = []  # weak references to those that have stepped
        self.fixed = {}  # (pool, category) -> bytes, of the last full look
        self.moving = {}  # the same of the slots, as of now
        self.began, self.spent, self.steps = time.perf_counter(), 0.0, 0
        self.told = {}  # (pool, category) -> bytes
        self.on = False

    def watch(self, model, source_of, device):
        """From now on what source_of() says of this model is counted, until there is no model."""
        try:
            self.sources[id(model)] = source_of()
            self._gather_slots()
            self.device = device
            self.on = True
            weakref.finalize(model, self._forget, id(model)).atexit = False
        except Exception as error:
            self._failed(error)

    def _forget(self, key):
        self.sources.pop(key, None)
        self._gather_slots()

    def _gather_slots(self):
        self.slots = list({id(slot): slot for source in self.sources.values() for slot in source.slots}.values())

    def optimizer(self, optimizer):
        if all(known() is not optimizer for known in self.optimizers):
            self.optimizers.append(weakref.ref(optimizer))

    # ---- looking --------------------------------------------------------------------------------------

    def look(self, place):
        """At the end of a phase (`place`: k.FORWARD, ...) or of a step (None); between sub-groups of the optimizer."""
        if not self.on or not _core.enabled(k.PARAMS):
            return
        try:
            began = time.perf_counter()
            if place != SUB_GROUP and (self.steps < FULL_STEPS or self.spent < FULL_SHARE * (began - self.began)):
                self._full()
                self.spent += time.perf_counter() - began
            else:
                self._quick()
            self._emit(place)
            if place is None:
                self.steps += 1
        except Exception as error:
            self._failed(error)

    def changed(self, *slots):
        """Where a hook knows that these have."""
        if not self.on or not _core.enabled(k.PARAMS):
            return
        try:
            for slot in slots:
                size = slot.quickly(self.device)
                if size != slot.now:
                    key = slot.key()
                    self.moving[key] = self.moving.get(key, 0) + size - slot.now
                    slot.now = size
                    self.told[key] = self.fixed.get(key, 0) + self.moving[key]
                    _core.memory_level(*key, self.told[key])
        except Exception as error:
            self._failed(error)

    def _failed(self, error):
        self.on = False
        _say.warning(f"memory: {type(error).__name__}: {error}; it is not counted any more, training is as before")

    def _full(self):
        fixed = Look(self.device)
        for source in list(self.sources.values()):
            source.fixed(fixed.add, fixed.count)
        for held in self.optimizers:
            if held() is not None:
                states_of(held(), fixed.add)
        self.fixed, fixed.sums = fixed.sums, {}
        for slot in self.slots:
            slot.now = 0
            if slot.filled():
                slot.now = slot.bytes if slot.tensors is None else \
                    sum(fixed.add(slot.category, each, slot.host) for each in slot.tensors())
                slot.bytes = slot.now
        self._sum_up()

    def _quick(self):
        for slot in self.slots:
            slot.now = slot.quickly(self.device)
        self._sum_up()

    def _sum_up(self):
        self.moving = {}
        for slot in self.slots:
            if slot.now:
                self.moving[slot.key()] = self.moving.get(slot.key(), 0) + slot.now

    # ---- telling --------------------------------------------------------------------------------------

    def _emit(self, place):
        levels = dict(self.fixed)
        for key, size in self.moving.items():
            levels[key] = levels.get(key, 0) + size
        if self.device == "cuda":
            self._allocator(levels, place)
        elif place is None:
            self._resident(sum(levels.values()))
        # What shrinks first: the total is never told higher than it was.
        for key in sorted(self.told.keys() | levels.keys(), key=lambda each: levels.get(each, 0) - self.told.get(each, 0)):
            self.told[key] = levels.get(key, 0)
            _core.memory_level(*key, self.told[key])

    def _allocator(self, levels, place):
        """What is allocated beyond what is known: at the end of a forward, activations."""
        import torch
        if torch.cuda.is_current_stream_capturing():
            return
        stats = torch.cuda.memory_stats_as_nested_dict()
        allocated = stats["allocated_bytes"]["all"]["current"]
        rest = max(allocated - sum(size for (pool, _), size in levels.items() if pool == DEVICE), 0)
        levels[DEVICE, ACTIVATION] = rest if place == k.FORWARD else 0
        levels[DEVICE, OTHER] = levels.get((DEVICE, OTHER), 0) + (0 if place == k.FORWARD else rest)
        _core.emit(k.ALLOCATOR_STATE, k.HOST, DEVICE, stats["num_alloc_retries"], stats["num_ooms"], k.NO_ID,
                   stats["reserved_bytes"]["all"]["current"], stats["inactive_split_bytes"]["all"]["current"])

    @staticmethod
    def _resident(known):
        """Of this process: Python, libraries, data, and what lives within a step, as activations do."""
        with open("/proc/self/statm", "rb") as file:
            resident = int(file.read().split()[1]) * PAGE
        _core.emit(k.OUTSIDE_MEMORY, k.HOST, DEVICE, k.NO_ID, k.NO_ID, k.NO_ID, max(resident - known, 0), resident)


def page_size():
    import resource
    return resource.getpagesize()


PAGE = page_size()


def states_of(optimizer, add, host=False):
    """Of any torch optimizer: what its states are called says what they are."""
    for state in optimizer.state.values():
        if not isinstance(state, dict):
            continue
        for name, value in state.items():
            if hasattr(value, "untyped_storage"):
                add(STATES.get(name, OTHER), value, host)


def plain_source(model, buckets=lambda: 0):
    """Parameters that every rank has whole, their gradients, and the model's buffers. `buckets()`: bytes of those that the
    framework reduces in and that no tensor shows."""
    held = weakref.ref(model)

    def fixed(add, count):
        model = held()
        if model is not None:
            for param in model.parameters():
                add(PARAM_SHARD, param)
            for buffer in model.buffers():
                add(OTHER, buffer)
            count(REDUCE_BUCKET, buckets())

    return Source(fixed, [gradient_slot(param, GRAD_FULL) for param in model.parameters()])


def gradient_slot(param, category, host=False):
    held = weakref.ref(param)

    def gradient():
        param = held()
        return None if param is None else param.grad

    return Slot(category, lambda: gradient() is not None, lambda: (gradient(),), host)
