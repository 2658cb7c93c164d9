"""The run of this process: its identity, its tables, and its position in training (step, micro-step, phase, spans).

There is one instance, `session`. Adapters describe a model to it and report calls; it emits the events.
"""
import json
import math
import os
import threading
import weakref

from shardscope import _core, _kinds as k, _memory, _nodes, _records, _say, _stacks
from shardscope._step_values import NO_ID, StepValues, events  # F401: hooks import them from here


def in_json(value):
    """A configuration as JSON values. JSON has no infinity, which accelerate sets for `steps_per_print`."""
    if isinstance(value, dict):
        return {str(name): in_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [in_json(each) for each in value]
    if value is None or isinstance(value, (bool, int, str)) or isinstance(value, float) and math.isfinite(value):
        return value
    return str(value)


def wait_for_device():
    """Where the run is held, which a viewer has asked for, and only there: nothing is in progress then. Every rank has queued
    the same collectives before the gate, so they end."""
    import torch
    if not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize()


class Session(StepValues):
    """Attributes that hooks read are in SessionState (src/session.h): started, step, modules, params, purpose, ..."""

    def __init__(self):
        super().__init__()
        self.settings = None
        self.run = None
        self.forked = False
        self.plain = False  # no engine: backward, step and norm are hooked in torch itself
        self.plain_backward = False  # at least the backward is torch's
        self.waiting = {}  # id(model) -> (weak reference, describe, then, info) of models that no run has yet
        self.models = {}  # id(model) -> number, like modules and params
        self.name_ids = {}  # name of a span -> its number
        self.names, self.model_number = [], 0  # names of the models; number of the one being described
        self.alive = []  # weak references that remove an object's number when it is freed
        self.param_owner = []
        self.in_step = False
        self.thread = None  # thread that begins the micro-steps
        # Ids of data sets: read since the latest micro-step, read before it, and never used by a step.
        self.came, self.trains_on, self.other_data = set(), set(), set()
        self.trained = None  # weak reference to the first model
        self.within_phase = False  # evaluation, generation, checkpoint (phases.py)
        self.waits_for = None  # number of the next micro-step, if its data is requested before this one has ended
        self.kind = ""  # of the framework, as in _records
        self.at_description = []  # f(run) for tables besides the model's: process groups
        self.groups = 0  # process groups with a number
        self.ended = False  # the run has ended; no other one follows
        self.at_finish = []  # f() at the end, while the run still accepts events
        self.answerer = None
        self.gpu_recorded = False  # CUPTI records while the detail level includes kernels
        self.memory = _memory.Memory()
        self.watch_memory()
        self.exit_code, self.exit_message = 0, ""

    def watch_memory(self):
        self.memory.not_recorded = lambda why: self.started and self.not_recorded("memory", why)

    # ---- before the run -----------------------------------------------------------------------------

    def keep(self):
        """Keeps the collectives from now on until the first model that is trained starts the run, which sends them: the
        first 65536 events of each thread."""
        if self.keeping or self.started or self.ended or self.forked or self.settings is None:
            return
        try:
            _core.keep(self.settings.get("detail", k.PARAMS))
            self.keeping = True
        except ValueError as error:  # the program itself has a run
            _say.info(f"{error}; collectives from before the run's start are not recorded")

    def forget_kept(self):
        if not self.keeping:
            return
        self.keeping = False
        _core.keep(-1)
        if self.sequence and os.environ.get("RANK", "0") == "0":
            _say.warning(f"no model was trained that Shardscope knows, so no run has started: {self.sequence} collectives of all ranks "
                         "are in no recording")

    # ---- describing ---------------------------------------------------------------------------------

    def describe(self, model, describe, trained=True, then=None, **info):
        """Adds a model to the run: describe(run) fills in its tables, then() is called afterwards. The first model that
        is trained creates and starts the run, with its settings. A model that is not trained yet (a reference, whose
        engine is often made first) waits for it."""
        if self.forked or self.settings is None or id(model) in self.models or id(model) in self.waiting:
            return
        self.waiting[id(model)] = weakref.ref(model, lambda _, key=id(model): self.waiting.pop(key, None)), describe, then, info
        if trained or self.run is not None:
            self.trains(model)

    def watches(self, model):
        return self.started and id(model) in self.models

    def trains(self, model):
        """Records waiting models from now on, this one first."""
        if id(model) not in self.waiting:
            return
        order = [id(model), *(key for key in self.waiting if key != id(model))]
        for key in order:
            of, describe, then, info = self.waiting.pop(key)
            if of() is not None:
                self._describe(of(), describe, info)
                if then is not None:
                    then()

    def _describe(self, model, describe, info):
        name = type(model).__name__
        if self.run is not None:
            if len(self.names) == 1:
                self.run.add_model(self.names[0])
            self.names.append(name)
            self.models_described += 1
            self.model_number = self.run.add_model(name)
            self._number(self.models, model, self.model_number)
            describe(self.run)
            self.run.publish()
            _say.info(f"model {self.model_number} of this process is {name}; the run's stage and configuration are those of "
                      f"{self.names[0]}")
            return
        settings = self.settings
        world = int(os.environ.get("WORLD_SIZE", "1"))
        rank = int(os.environ.get("RANK", "0"))
        if info.get("ranks"):
            rank, world = info["ranks"]
        config = info.get("config", {})
        run = _core.Run(run_id=settings["run_id"], model=name, device=info.get("device", ""), hardware="",
                        versions=info["framework"], config_json=json.dumps(in_json(config)), rank=rank, world=world,
                        local_world=_nodes.local_world(world), stage=info["stage"], param_bytes=info.get("param_bytes", 4),
                        grad_bytes=info.get("grad_bytes", 4), master_bytes=info.get("master_bytes", 0),
                        framework=info["framework"], records=_records.recorded(info["kind"], info.get("device", "")))
        self.run, self.plain = run, info.get("plain", False)
        self.plain_backward = info.get("plain_backward", self.plain)
        self.on_device, self.kind = info.get("device", "").startswith("cuda"), info["kind"]
        try:
            self._number(self.models, model, 0)
            self.trained = weakref.ref(model)
            describe(run)
            for what, why in _records.reasons(info["kind"], info.get("device", "")):
                run.not_recorded(what, why)
            for described in self.at_description:
                described(run)
            run.start(endpoint=settings["endpoint"], detail=settings.get("detail", k.PARAMS),
                      key_file=settings.get("key_file", ""), linger_s=settings.get("linger_s", 5.0))
        except Exception:
            self.run = None
            self.models.clear()
            raise
        self.started, self.keeping = not self.forked, False
        self.names.append(name)
        self.models_described += 1
        _say.flush_to(self._message)
        if self.on_device:
            run.call_on_hold(wait_for_device)
            self._record_gpu(run)
        try:
            self.answerer = _stacks.Answerer(run)
        except Exception as error:
            _say.warning(f"stacks: {type(error).__name__}: {error}; requests are not answered")

    def _record_gpu(self, run):
        import torch
        from shardscope import gpu
        try:
            run.record_gpu(torch.cuda.current_stream().cuda_stream)
            self.gpu_recorded = True
            gpu.suspend()
        except Exception as error:
            _say.warning(f"kernels: {error}; they are not recorded")

        try:
            run.sample_gpu(gpu.pci_bus_id(torch.cuda.get_device_properties(torch.cuda.current_device())))
        except Exception as error:
            _say.info(f"energy and clocks of the GPU: {error}; they are not recorded")

    def counter(self, name, value, unit, accumulated):
        """A value of a counter of the program."""
        if self.started and _core.enabled(k.PHASES):
            events.counter(accumulated, self.name_id(name), self.name_id(unit) if unit else NO_ID, value)

    def _message(self, severity, text):
        if self.started:
            self.run.message(severity, text)

    def not_recorded(self, names, why):
        """Marks capabilities as not recorded from now on, although the run started with them."""
        self.run.not_recorded(_records.bits(names), why)
        self.run.publish()

    def name_id(self, name):
        """Id of the name of a span or a counter."""
        if name not in self.name_ids:
            self.name_ids[name] = self.run.name_id(name)
        return self.name_ids[name]

    def add_module(self, module, parent, path, hooks=True):
        number = self.run.add_module(parent=parent, path=path, type=type(module).__name__, hooks=hooks,
                                     model=self.model_number)
        self._number(self.modules, module, number)
        return number

    def add_modules(self, model):
        """Adds the whole module tree, parents first."""
        numbers = {}
        for path, module in model.named_modules():
            parent = numbers.get(path.rpartition(".")[0], NO_ID) if path else NO_ID
            numbers[path] = self.add_module(module, parent, path)
        return numbers

    def add_param(self, param, name, shape, elems, shard_elems=0, padding=0, persistent=False, trained=True, dtype=None):
        number = self.run.add_param(name=name, dtype=k.DTYPE_NAMES.get(str(dtype), str(dtype).replace("torch.", "")),
                                    shape=list(shape), shard_elems=shard_elems, padding_elems=padding,
                                    persistent=persistent, trained=trained)
        self._number(self.params, param, number)
        self.param_elems.append(elems)
        self.param_owner.append(NO_ID)
        return number

    def add_equal_slices(self, param, ranks, shard_elems, elems):
        """Slices of a parameter (by its number) of `elems` elements: one shard of `shard_elems` for each of `ranks`;
        the last ones padded."""
        for index, rank in enumerate(ranks):
            begin = min(index * shard_elems, elems)
            end = min(begin + shard_elems, elems)
            self.run.add_slice(param, rank, begin, 0, end - begin, shard_elems - (end - begin))

    def use_params(self, model, numbers):
        """Links every module to its own parameters. `numbers`: the result of add_modules()."""
        for path, module in model.named_modules():
            for param in module.parameters(recurse=False):
                self.use_param(numbers[path], self.params[id(param)])

    def use_param(self, module, param):
        self.run.use_param(module, param)
        if self.param_owner[param] == NO_ID:
            self.param_owner[param] = module

    def _number(self, table, thing, number):
        key = id(thing)
        table[key] = number
        self.alive.append(weakref.ref(thing, lambda _: table.pop(key, None)))

    # ---- progress of training ---------------------------------------------------------------------------

    def begin_step(self):
        """Begins a step if none is open: called at its first micro-step, or earlier when it waits for its data."""
        if not self.in_step:
            _core.gate(k.GATE_STEP, self.step)
            events.step_begin(self.step)
            self.in_step, self.micro_step = True, 0

    @property
    def step_trains(self):
        """Whether a micro-step of the open step has begun."""
        return self.in_step and (self.in_micro_step or self.micro_step > 0)

    def evaluating(self):
        """Whether the run's model is in evaluation mode."""
        model = self.trained() if self.trained is not None else None
        return model is not None and not getattr(model, "training", True)

    def begin_micro_step(self):
        """Begins a micro-step (a forward with gradients), and its step if none is open: gates, events, phase."""
        self.end_micro_step()
        self.begin_step()
        if self.came:  # a prefetching loader reads none between two micro-steps
            self.trains_on, self.came = self.came, set()
        _core.gate(k.GATE_MICRO_STEP, self.micro_step)
        events.micro_step_begin(self.micro_step, self.step)
        self.in_micro_step = True
        self.thread, self.waits_for = threading.get_ident(), None
        self.begin_phase(k.FORWARD)

    def end_micro_step(self):
        self.end_phase()
        if self.in_micro_step:
            events.micro_step_end(self.micro_step, self.step)
            self.micro_step += 1
            self.in_micro_step = False

    def begin_phase(self, phase):
        if self.phase == phase:
            return
        self.end_phase()
        self.phase = phase
        events.phase_begin(k.COMPUTE, phase, self.step, self.micro_step)

    def end_phase(self):
        self.poll()
        self.spans.end_all(self.micro_step)
        if self.phase is not None:
            events.phase_end(k.COMPUTE, self.phase, self.step, self.micro_step)
            if self.phase != k.OPTIMIZER:
                self.memory.sample(self.phase)
            self.phase = None

    def begin_backward(self):
        if self.in_micro_step:
            self.begin_phase(k.BACKWARD)

    def begin_optimizer(self):
        self.end_micro_step()
        if self.step_trains and self.phase != k.OPTIMIZER:
            _core.gate(k.GATE_OPTIMIZER, self.step)
            self.begin_phase(k.OPTIMIZER)

    def end_step(self, skipped=False):
        self.end_micro_step()
        if self.step_trains:  # without a micro-step the step only waited for its first batch
            self.memory.sample(None)
            events.step_end(self.step, int(skipped), tokens=0)
            self.in_step = False
            self.step += 1
            self.memory.between_steps()

    # ---- spans of modules -----------------------------------------------------------------------------

    @staticmethod
    def forward_pass():
        """Pass of a forward: inside a backward it is a recomputation."""
        import torch
        return k.PASS_RECOMPUTE if torch._C._current_graph_task_id() != -1 else k.PASS_FORWARD

    # ---- the end --------------------------------------------------------------------------------------

    def finish(self):
        """Called by detach(), or at exit if the script did not call it."""
        if not self.started:
            return self.forget_kept()
        try:
            self.poll()  # ends completed collectives; the others stay open
            for last in self.at_finish:
                last()
        finally:
            self.end_run()

    def end_run(self):
        if self.gpu_recorded:
            self.gpu_recorded = False
            _core.stop_gpu()
        run, self.run, self.started, self.ended = self.run, None, False, True
        _say.sink = None
        if self.answerer is not None:
            self.answerer.end()
        try:
            run.finish(self.exit_code, self.exit_message or ("done" if self.exit_code == 0 else f"exit code {self.exit_code}"))
        finally:
            run.close()

    def after_fork(self):
        """In a forked child: its threads do not exist here. Nothing may be emitted, joined or freed."""
        self.forked, self.started, self.keeping = True, False, False
        if self.run is not None:
            self.run.abandon()


session = Session()
