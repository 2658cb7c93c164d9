"""Memory by category: tensors of the framework, each storage counted once, and on a device the allocator's figures.

Each model has a source. `fixed(add, count)` counts tensors that stay from step to step (shards, master weights,
optimizer states); `slots` are temporary ones (gathered parameters, gradients, buffers of collectives).

A full sample reads the size of every storage: at the ends of phases in the first FULL_STEPS steps, later within a share
FULL_SHARE of the time. A quick sample checks which slots are filled and uses the known sizes; it is taken at the same
places, and when a framework's hook reports a change. Tensors that have come and gone together are looked at in three places,
and after sixteen such times in all (src/held_tensors.h, src/memory_slots.h). Samples never wait and never touch a tensor's data.
"""
import time
import weakref

from shardscope import _core, _kinds as k, _say, torch_helper
from shardscope._switched import Switched

PARAM_SHARD, PARAM_GATHERED, PARAM_SECONDARY, GRAD_FULL, GRAD_SHARD, MASTER_WEIGHT, MOMENTUM, VARIANCE, REDUCE_BUCKET, \
    GATHER_BUFFER, SWAP_BUFFER, QUANTIZATION, ACTIVATION, INPUT, TEMPORARY, OTHER = range(16)
DEVICE, HOST, PINNED = range(3)

SUB_GROUP = -1  # a phase: quick samples only
FULL_STEPS = 3  # number of first steps in which every sample is a full one
FULL_SHARE = 0.0002  # largest share of the time that later full samples may take
OUTSIDE_S = 0.25  # seconds between two reads of the driver's counters, as in zero_train
STATES = {"exp_avg": MOMENTUM, "momentum_buffer": MOMENTUM, "exp_avg_sq": VARIANCE, "max_exp_avg_sq": VARIANCE,
          "square_avg": VARIANCE, "sum": VARIANCE}


Slot = _core.Slot  # tensors of a category that exist temporarily; Slot.kept: bytes counted by a hook


class Source:
    """`on_host()`: ids of parameters whose optimizer states torch allocates in host memory because of offloading."""

    def __init__(self, fixed, slots=(), on_host=frozenset):
        self.fixed, self.slots, self.on_host = fixed, list(slots), on_host


class StorageCount:
    """Bytes by category; each storage is counted once."""

    def __init__(self, device):
        self.device, self.seen, self.sums = device, set(), {}

    def add(self, category, tensor, host=False):
        """`host`: count as host memory because the framework offloads it, though the training's device is the CPU.
        Returns the bytes that had not been counted before."""
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


class Memory(Switched):
    """`on` while memory is recorded; slots read its switch."""

    def __init__(self):
        super().__init__()
        self.device = "cpu"
        self.sources = {}  # id(model) -> Source
        self.slots, self.together = [], self.slots_of([])  # of all sources, each slot once
        self.optimizers = []  # weak references to optimizers that have stepped
        self.fixed = {}  # (pool, category) -> bytes, of the last full sample
        self.began, self.spent, self.steps = time.perf_counter(), 0.0, 0
        self.levels = {}  # (pool, category) -> reported level
        self.peak = None  # the allocator's, when it was last read
        self.above_now = None  # torch_helper.peaks()
        self.driver_asked = None  # time of the last read of the driver's counters
        self.failed = False
        self.not_recorded = None  # called with the reason if counting fails
        self.at_failure = set()  # also called then: by hooks that report levels themselves

    def watch(self, model, source_of, device):
        """Counts the memory of this model from now on, as source_of() describes it, until the model is freed."""
        if self.failed or id(model) in self.sources:
            return
        try:
            self.sources[id(model)] = source_of()
            self._gather_slots()
            self.device = device
            if device == "cuda" and self.peak is None:
                self.peak, self.above_now = allocator_peak(), torch_helper.peaks()
                from shardscope import _out_of_memory
                _out_of_memory.watch(self)
            self.on = True
            weakref.finalize(model, self._forget, id(model)).atexit = False
        except Exception as error:
            self._failed(error)

    def _forget(self, key):
        self.sources.pop(key, None)
        self._gather_slots()

    def _gather_slots(self):
        self.slots = list({id(slot): slot for source in list(self.sources.values()) for slot in source.slots}.values())
        self.together = self.slots_of(self.slots)

    def slots_of(self, slots):
        """Slots that change together: a hook that causes the change calls their changed()."""
        return _core.Slots(list(slots), self.level, self.switch, self._failed)

    def optimizer(self, optimizer):
        if all(known() is not optimizer for known in self.optimizers):
            self.optimizers.append(weakref.ref(optimizer))

    # ---- sampling -------------------------------------------------------------------------------------

    def sample(self, phase):
        """At the end of a phase (k.FORWARD, ...) or a step (None); before an optimizer's sub-group (SUB_GROUP)."""
        if not self.on or not _core.enabled(k.PARAMS):
            return
        try:
            began = time.perf_counter()
            if phase != SUB_GROUP and (self.steps < FULL_STEPS or self.spent < FULL_SHARE * (began - self.began)):
                self._full()
                self.spent += time.perf_counter() - began
            else:
                self.together.refresh()
            self._emit(phase)
            if phase is None:
                self.steps += 1
        except Exception as error:
            self._failed(error)

    def level(self, *key):
        """(pool, category) -> the reported level; a framework's hooks may change it too."""
        known = self.levels.get(key)
        if known is None:
            known = self.levels[key] = _core.MemoryLevel(*key)
        return known

    def _failed(self, error):
        self.on, self.failed = False, True
        for stop in self.at_failure:
            stop()
        why = f"{type(error).__name__}: {error}"
        _say.warning(f"memory: {why}; it is not counted any more, training is as before")
        if self.not_recorded is not None:
            self.not_recorded(f"counting stopped ({why}); what was recorded before holds until then")

    def _full(self):
        fixed = StorageCount(self.device)
        for source in list(self.sources.values()):
            source.fixed(fixed.add, fixed.count)
        on_host = frozenset().union(*(source.on_host() for source in self.sources.values()))
        for held in self.optimizers:
            if held() is not None:
                states_of(held(), fixed.add, on_host=on_host)
        self.fixed, fixed.sums = fixed.sums, {}
        for slot in self.slots:
            slot.now = slot.count(fixed.add)

    # ---- emitting -------------------------------------------------------------------------------------

    def _emit(self, phase):
        levels = self.together.with_fixed(self.fixed)
        if self.device == "cuda":
            self._allocator(levels, phase)
            peak = self._new_peak()
        for key in levels.keys() - self.levels.keys():
            self.level(*key)
        _core.set_levels(self.levels, levels)
        if self.device == "cuda" and peak:
            self._emit_peak(peak)

    def _new_peak(self):
        """The allocator's peak since the last call; 0 if it is not above the present level. Without torch_helper it is
        torch.cuda.max_memory_allocated, if that is another one than before. Only the script resets it: a peak equal to the
        last one cannot be distinguished from it, and a lower one follows a reset."""
        if self.above_now is not None:
            import torch
            above = self.above_now(torch.cuda.current_device())
            return torch.cuda.memory_allocated() + above if above else 0
        before, self.peak = self.peak, allocator_peak()
        return self.peak if before is not None and self.peak != before else 0

    def _emit_peak(self, peak):
        """Within a backward, say: the bytes above what is there now are temporary, for no time."""
        above = peak - sum(level.bytes for (pool, _), level in self.levels.items() if pool == DEVICE)
        if above > 0:
            temporary = self.level(DEVICE, TEMPORARY)
            level = temporary.bytes
            temporary.set(level + above)
            temporary.set(level)

    def _allocator(self, levels, phase):
        """Allocated bytes without a known category: at the end of a forward these are activations."""
        import torch
        if torch.cuda.is_current_stream_capturing():
            return
        stats = torch.cuda.memory_stats_as_nested_dict()
        allocated = stats["allocated_bytes"]["all"]["current"]
        rest = max(allocated - sum(size for (pool, _), size in levels.items() if pool == DEVICE), 0)
        levels[DEVICE, ACTIVATION] = rest if phase == k.FORWARD else 0
        levels[DEVICE, OTHER] = levels.get((DEVICE, OTHER), 0) + (0 if phase == k.FORWARD else rest)
        _core.events.allocator_state(DEVICE, stats["reserved_bytes"]["all"]["current"], stats["inactive_split_bytes"]["all"]["current"],
                                     stats["num_alloc_retries"], stats["num_ooms"])

    def between_steps(self):
        """Memory without a category. On a CPU it is only known if categories are counted."""
        if not self.on:
            return
        try:
            if self.device == "cuda" and _core.enabled(k.PHASES):
                self._of_driver()
            elif self.device != "cuda" and _core.enabled(k.PARAMS):
                self._of_process()
        except Exception as error:
            self._failed(error)

    def _of_driver(self):
        """The device's memory outside this process's allocator: context, kernels, NCCL, other processes. The call does
        not wait for the device, but takes the driver's lock: it is not made in each of many short steps."""
        import torch
        now = time.perf_counter()
        if self.driver_asked is not None and now - self.driver_asked < OUTSIDE_S or torch.cuda.is_current_stream_capturing():
            return
        self.driver_asked = now
        free, total = torch.cuda.mem_get_info()
        reserved = torch.cuda.memory_reserved()
        _core.events.outside_memory(DEVICE, max(total - free - reserved, 0), total - free)

    def _of_process(self):
        """Host memory of Python, libraries and data, and of tensors within a step, such as activations."""
        resident = _core.resident_bytes()
        known = sum(level.bytes for level in self.levels.values())
        _core.events.outside_memory(DEVICE, max(resident - known, 0), resident)


def allocator_peak():
    import torch
    return torch.cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["peak"]


def states_of(optimizer, add, host=False, on_host=frozenset()):
    """Counts the states of any torch optimizer, by the names of the states. `host`: states of all parameters,
    `on_host`: states of parameters with these ids are in host memory because the framework offloads them."""
    for param, state in optimizer.state.items():
        if not isinstance(state, dict):
            continue
        for name, value in state.items():
            if hasattr(value, "untyped_storage"):
                add(STATES.get(name, OTHER), value, host or id(param) in on_host)


def part_of_whole(add, count, tensor, ranks):
    """A parameter that every rank has whole, but of which it owns one of `ranks` equal parts: that part counts as its
    shard, the rest as gathered."""
    size = add(PARAM_SHARD, tensor)
    others = size - size // ranks
    count(PARAM_SHARD, -others)
    count(PARAM_GATHERED, others)


def plain_source(model, buckets=lambda: 0):
    """Source of a model with whole parameters on every rank: parameters, gradients and buffers. `buckets()`: bytes of
    the framework's reduction buckets, which no tensor shows."""
    held = weakref.ref(model)

    def fixed(add, count):
        model = held()
        if model is not None:
            for param in model.parameters():
                add(PARAM_SHARD, param)
            for buffer in model.buffers():
                add(OTHER, buffer)
            count(REDUCE_BUCKET, buckets())

    return Source(fixed, [gradient_slot([param for param in model.parameters() if param.requires_grad], GRAD_FULL)])


def gradient_slot(params, category, host=False):
    """A slot of the gradients of these parameters, where they exist."""
    return Slot(category, True, _core.HeldTensors(list(params), "grad"), host)
