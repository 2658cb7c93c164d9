"""What the package holds of others' tables: numbers of the C interface, and where FSDP2 cuts a tensor."""
import ast
import itertools
import math
import random
import re
import subprocess
import sys
import types
import unittest
from unittest import mock

import runs

HEADERS = [runs.ROOT / "instrumentation" / "include" / "shardscope" / name for name in ("event_codes.h", "shardscope.h")]
CONSTANT = r"(?:#define )?\b(SHARDSCOPE_[A-Z0-9_]+) (?:= |\(?UINT64_C|0x|[0-9])"


def setUpModule():
    runs.build_package()
    sys.path.insert(0, str(runs.PACKAGE))  # this process is not under SHARDSCOPE_ATTACH: nothing is armed


def constants():
    """Name -> number of every constant of the headers, as the compiler sees it."""
    names = sorted({name for header in HEADERS for name in re.findall(CONSTANT, header.read_text(encoding="utf-8"))})
    lines = "".join(f'  printf("{name} %lld\\n", (long long)({name}));\n' for name in names)
    program = runs.BUILD / "attach-constants"
    subprocess.run(["cc", "-x", "c", "-o", program, "-I", HEADERS[0].parents[1], "-"], check=True, text=True,
                   input=f"#include <stdio.h>\n#include <shardscope/shardscope.h>\nint main(void) {{\n{lines}}}\n")
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


class Signatures(unittest.TestCase):
    """What a table compares with: plain functions are read without inspect.signature, which takes 30 times as long."""

    def test_parameters_of_a_plain_function_are_those_of_its_signature(self):
        import functools
        import inspect
        from shardscope import _hooks

        def plain(self, a, b=1, /, c=2, *, d, e=3):
            local = a
            return local

        @functools.wraps(plain)
        def wrapper(*args, **kwargs):
            return plain(*args, **kwargs)

        def some(a, *rest):
            return rest

        def shown(a):
            return a

        shown.__signature__ = inspect.signature(plain)
        for function in (plain, unittest.TestCase.assertEqual, inspect.signature, _hooks.Table.wrap, lambda: None):
            self.assertEqual(_hooks.plain_parameters(function), list(inspect.signature(function).parameters), function)
        for function in (wrapper, some, shown, len, functools.partial(plain)):
            self.assertIsNone(_hooks.plain_parameters(function), function)
        _hooks.check_parameters("plain", plain, "self a b")
        for function, expected in ((plain, "self b"), (wrapper, "self a c"), (shown, "a"), (some, "a b")):
            with self.assertRaisesRegex(_hooks.Differs, "takes"):
                _hooks.check_parameters("f", function, expected)


class Identities(unittest.TestCase):
    """The table of objects' numbers that hooks look in: as a dict, in any order of what comes and goes."""

    def test_is_a_dict_of_numbers(self):
        from shardscope import _core
        random.seed(5)
        table, known = _core.SessionState().modules, {}
        # Few addresses, close together as an allocator's are, and some far away: long runs of neighbours in the table.
        keys = [0x7F0000000000 + 16 * i for i in range(150)] + [random.getrandbits(46) << 4 | 16 for _ in range(50)]
        for turn in range(20_000):
            key = random.choice(keys)
            if random.random() < (0.7 if turn // 2000 % 2 else 0.4):
                table[key] = known[key] = turn
            else:
                table.pop(key, None)
                known.pop(key, None)
            if turn % 50 == 0:
                self.assertEqual([table.get(each) for each in keys], [known.get(each) for each in keys])
                self.assertEqual(len(table), len(known))
        self.assertRaises(KeyError, lambda: table[1])
        self.assertNotIn(1, table)


class Purposes(unittest.TestCase):
    """What a process group is for, by its name."""

    def test_by_the_words_of_names(self):
        from shardscope import _kinds as k
        from shardscope.collectives import purpose_of
        for name, purpose in {"dp_shard": k.GROUP_SHARD, "dp_shard_cp": k.GROUP_SHARD, "dp_replicate": k.GROUP_REPLICA, "tp": k.GROUP_TENSOR,
                              "mesh_dp": k.GROUP_DATA, "dp_cp": k.GROUP_OTHER, "default": k.GROUP_OTHER,
                              "TENSOR_MODEL_PARALLEL_GROUP": k.GROUP_TENSOR, "PIPELINE_MODEL_PARALLEL_GROUP": k.GROUP_PIPELINE,
                              "DATA_PARALLEL_GROUP_WITH_CP": k.GROUP_DATA, "MODEL_PARALLEL_GROUP": k.GROUP_OTHER,
                              "EXPERT_DATA_PARALLEL_GROUP": k.GROUP_OTHER, "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP": k.GROUP_OTHER}.items():
            with self.subTest(name=name):
                self.assertEqual(purpose_of(name.lower().split("_")), purpose)


class Nodes(unittest.TestCase):
    def test_ranks_of_a_node_by_each_launcher_s_variables(self):
        from shardscope import _nodes
        torchrun = {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}
        step = {"SLURM_STEP_NUM_TASKS": "10", "SLURM_STEP_TASKS_PER_NODE": "4(x2),2", "SLURM_NTASKS": "10"}
        for variables, world, expected in (
                ({}, 8, 8), (torchrun, 8, 4), ({"WORLD_SIZE": "8", "LOCAL_SIZE": "2"}, 8, 2),
                ({"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, 8, 4),
                ({"PMI_SIZE": "6", "MPI_LOCALNRANKS": "3"}, 6, 3),
                ({"SLURM_NTASKS": "8", "SLURM_NTASKS_PER_NODE": "4"}, 8, 4), (step, 10, 4), ({**step, "SLURM_NODEID": "2"}, 10, 2),
                # torchrun under srun: one task for each node.
                ({**torchrun, "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_NTASKS": "2"}, 8, 4),
                # mp.spawn in one process, alone or in a task of Slurm.
                ({"WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}, 4, 4),
                ({"SLURM_NTASKS": "1", "SLURM_NTASKS_PER_NODE": "1", "SLURM_STEP_TASKS_PER_NODE": "1"}, 4, 4),
                ({"SLURM_NTASKS": "8", "SLURM_TASKS_PER_NODE": "many"}, 8, 8)):
            with self.subTest(variables=variables):
                self.assertEqual(_nodes.local_world(world, variables), expected)


class Numbers(unittest.TestCase):
    """_kinds.py and _records.py repeat numbers of the C interface."""

    def test_every_constant_is_that_of_the_header(self):
        from shardscope import _kinds
        known = constants()
        candidates = ("SHARDSCOPE_EVENT_{}", "SHARDSCOPE_LANE_{}", "SHARDSCOPE_DETAIL_{}", "SHARDSCOPE_PHASE_{}",
                      "SHARDSCOPE_CAUSE_{}", "SHARDSCOPE_FLUSH_{}", "SHARDSCOPE_{}")
        checked = 0
        for name, value in vars(_kinds).items():
            if not name.isupper() or not isinstance(value, int) or name == "NO_ID":
                continue
            plain = name.removeprefix("OP_").replace("STOP_", "PREFETCH_")
            found = {known[form.format(plain)] for form in candidates if form.format(plain) in known}
            self.assertIn(value, found, name)
            checked += 1
        self.assertGreater(checked, 80)

    def test_records(self):
        from shardscope import _records
        known = constants()
        for name, bit in _records.BITS.items():
            self.assertEqual(bit, known[f"SHARDSCOPE_RECORDS_{name.upper()}"], name)

    def test_what_is_not_recorded_has_a_reason_and_what_is_has_none(self):
        from shardscope import _records
        for kind, device in itertools.product(_records.BY_FRAMEWORK, ("cpu", "cuda:0")):
            with self.subTest(kind=kind, device=device):
                without = 0
                for mask, _ in _records.reasons(kind, device):
                    without |= mask
                self.assertEqual(_records.recorded(kind, device) & without, 0)
                self.assertEqual(_records.recorded(kind, device) | without, (1 << len(_records.NAMES)) - 1)

    def test_ends_of_collectives_are_measured_on_a_cpu_only(self):
        from shardscope import _records
        for kind in _records.BY_FRAMEWORK:
            self.assertTrue(_records.recorded(kind) & _records.BITS["collective_ends"], kind)
            self.assertFalse(_records.recorded(kind, "cuda:1") & _records.BITS["collective_ends"], kind)
            self.assertIn("queued", dict(_records.reasons(kind, "cuda:1"))[_records.BITS["collective_ends"]], kind)


# In place of the library's gates: every gate holds for a moment, and notes how many threads are in one.
GATES = """
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
static atomic_int inside, most;
int32_t shardscope_enabled(int32_t detail) { (void)detail; return 1; }
static void enter(void) {
  int now = atomic_fetch_add(&inside, 1) + 1, before = atomic_load(&most);
  while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) {}
}
int32_t shardscope_gate_pass(int32_t kind, uint32_t id, uint64_t* ticket) { (void)kind, (void)id; *ticket = 1; enter(); return 1; }
static void (*on_hold)(void*);
static void* of_hold;
int32_t shardscope_set_on_hold(void* run, void (*f)(void*), void* context) { (void)run; on_hold = f; of_hold = context; return 0; }
int32_t shardscope_gate_wait(int32_t kind, uint32_t id, uint64_t ticket) {
  (void)kind, (void)id, (void)ticket;
  if (on_hold) on_hold(of_hold);
  usleep(2000);
  atomic_fetch_sub(&inside, 1);
  return 0;
}
int most_inside(void) { return atomic_load(&most); }
"""
THREADS = """
import ctypes, threading, time
from shardscope import _core
ran = []
def passes():
    for number in range(10):
        _core.gate(0, number)
def runs_meanwhile():
    while len(ran) < 5:
        ran.append(time.sleep(0.001))
threads = [threading.Thread(target=each) for each in (passes, passes, passes, runs_meanwhile)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(ctypes.CDLL(None).most_inside(), len(ran))
"""


# A device that there is not: a gate that holds waits for it, but not where a CUDA graph is being captured.
ON_HOLD = """
import torch
from shardscope import _core, _session
waits, capturing = [], False
torch.cuda.synchronize = lambda: waits.append(1)
torch.cuda.is_current_stream_capturing = lambda: capturing
session = _session.session
session.settings = {"run_id": "x", "endpoint": "", "key_file": "none"}
model = torch.nn.Linear(2, 2)
session.describe(model, lambda run: session.add_modules(model), stage=0, kind="ddp", framework="DDP", device="cuda:0", ranks=(0, 1))
_core.gate(0, 1)
capturing = True
_core.gate(0, 2)
capturing = False
def broken():
    raise RuntimeError("no device")
torch.cuda.synchronize = broken
_core.gate(0, 3)
print("waits", len(waits))
"""


class Gates(unittest.TestCase):
    def test_a_gate_that_holds_waits_for_the_device(self):
        library = self.library()
        output = runs.finish(runs.start([runs.PYTHON, "-c", ON_HOLD], LD_PRELOAD=str(library)))
        self.assertIn("waits 1", output)
        self.assertIn("no device", output)

    @staticmethod
    def library():
        library = runs.BUILD / "attach-gates.so"
        subprocess.run(["cc", "-x", "c", "-shared", "-fPIC", "-o", library, "-"], check=True, text=True, input=GATES)
        return library

    def test_one_thread_is_in_a_gate_at_a_time_and_others_run(self):
        output = runs.finish(runs.start([runs.PYTHON, "-c", THREADS], LD_PRELOAD=str(self.library())))
        self.assertEqual(output.split()[-2:], ["1", "5"], output)


class Unwrapping(unittest.TestCase):
    """TRL's trainers generate within unwrap_model_for_generation."""

    def test_it_is_a_phase_from_enter_to_exit_and_ends_after_an_exception(self):
        import contextlib
        from shardscope import phases

        def made(order):
            module = types.ModuleType("trl.models.utils")

            @contextlib.contextmanager
            def unwrap_model_for_generation(model, accelerator, gather_deepspeed3_params=True):
                order.append("gathered")
                try:
                    yield model
                finally:
                    order.append("released")

            module.unwrap_model_for_generation = unwrap_model_for_generation
            return module

        order = []
        module = made(order)
        adapter = next(each for each in phases.adapters() if each.module == module.__name__)
        with mock.patch.object(phases, "begin", lambda phase: order.append("begin") or phase), \
                mock.patch.object(phases, "end", lambda opened: order.append("end")):
            adapter.installed(module)
            with module.unwrap_model_for_generation("model", accelerator=None) as model:
                self.assertEqual(model, "model")
            with self.assertRaises(KeyError), module.unwrap_model_for_generation("model", None):
                raise KeyError
        self.assertEqual(order, ["begin", "gathered", "released", "end"] * 2)
        self.assertTrue(adapter.on)

        def fails(_):
            raise ValueError
        with mock.patch.object(phases, "begin", fails), module.unwrap_model_for_generation("model", None) as model:
            self.assertEqual(model, "model")
        self.assertFalse(adapter.on)


class Profilers(unittest.TestCase):
    """CUPTI is torch's while one of its profilers has it."""

    def setUp(self):
        from shardscope import gpu
        from shardscope._session import session
        self.gpu, self.calls = gpu, []
        for patch in (mock.patch.object(session, "gpu_recorded", True),
                      mock.patch.object(gpu._core, "suspend_gpu", lambda: self.calls.append("released")),
                      mock.patch.object(gpu._core, "resume_gpu", lambda: self.calls.append("acquired"))):
            patch.start()
            self.addCleanup(patch.stop)

    def test_cuspy_has_it_from_its_first_subscription_to_its_last(self):
        class Cuspy:
            _subscriber, refuses = None, False

            def _ensure_subscribed(self):
                if Cuspy.refuses:
                    raise RuntimeError("another has it")
                self._subscriber = self._subscriber or 7
                return self._subscriber

            def _release_subscriber_if_idle(self):
                self._subscriber = None

        module = types.ModuleType("torch.profiler._cuspy.core")
        module.Cuspy = Cuspy
        adapter = next(each for each in self.gpu.adapters() if each.module == module.__name__)
        adapter.installed(module)
        self.assertTrue(adapter.on)
        cuspy = Cuspy()
        cuspy._ensure_subscribed()
        cuspy._ensure_subscribed()
        self.assertEqual(self.gpu.recording, [cuspy])
        cuspy._release_subscriber_if_idle()
        self.assertEqual(self.calls[-1], "acquired")
        Cuspy.refuses = True
        with self.assertRaises(RuntimeError):
            cuspy._ensure_subscribed()
        self.assertEqual(self.calls, ["released", "acquired", "released", "acquired"])
        self.assertEqual(self.gpu.recording, [])

    def test_cuspy_s_symbols_are_those_of_torch(self):
        path = runs.ENVIRONMENT / "lib/python3.11/site-packages/torch/profiler/_cuspy/core.py"
        methods = {node.name: [argument.arg for argument in node.args.args] for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                   if isinstance(node, ast.FunctionDef)}
        for name in ("_ensure_subscribed", "_release_subscriber_if_idle"):
            self.assertEqual(methods[name], ["self"])
        self.assertIn("self._subscriber: int | None = None", path.read_text(encoding="utf-8"))


class NotFinite(unittest.TestCase):
    """The parameter that an overflow of DeepSpeed comes from, on optimizers that only look like its own."""
    SIZES = (6, 5, 7, 4)

    def setUp(self):
        import torch
        from shardscope.deepspeed import not_finite
        self.params = [torch.zeros(size) for size in self.SIZES]
        for number, param in enumerate(self.params):
            param.ds_numel, param.ds_process_group = param.numel(), None
            param.partition_numel = lambda elems=param.numel(): -(-elems // 2)
        self.emitted = []
        session = types.SimpleNamespace(in_step=True, on_device=False,
                                        params={id(param): number for number, param in enumerate(self.params)},
                                        gradient_not_finite=lambda *values: self.emitted.append(values))
        patched = mock.patch.object(not_finite, "session", session)
        patched.start()
        self.addCleanup(patched.stop)

    def found(self, gradients, optimizer, rank):
        from shardscope.deepspeed import not_finite
        with mock.patch("torch.distributed.get_rank", lambda group=None: rank):
            return not_finite.not_finite(gradients(types.SimpleNamespace(**optimizer)))

    def flat(self, begin, elems):
        """Of stages 1 and 2: what a partition of [begin, begin + elems) of all parameters one after the other has, by name."""
        params, places, starts, at = [], {}, {}, 0
        for param in self.params:
            if at < begin + elems and at + param.numel() > begin:
                params.append(param)
                places[id(param)], starts[id(param)] = max(at - begin, 0), max(begin - at, 0)
            at += param.numel()
        return {"params_in_partition": [params], "real_dp_process_group": [None], "get_param_id": id,
                "grad_partition_insertion_offset": [[{}, places]], "grad_start_offset": [[{}, starts]]}

    def test_stages_1_and_2_by_place(self):
        import torch
        from shardscope.deepspeed.not_finite import of_stages_1_and_2
        total = sum(self.SIZES)
        for begin, elems in ((0, total), (3, 10), (11, 11), (8, 20)):  # the last one ends in padding
            for offload in (False, True):
                for bad in range(begin, min(begin + elems, total)):
                    values = torch.ones(elems)
                    values[bad - begin] = float("nan") if bad % 2 else float("-inf")
                    made = self.flat(begin, elems)
                    places = sorted(made["grad_partition_insertion_offset"][0][1].values()) + [min(elems, total - begin), elems]
                    cut = [values[a:b] for a, b in itertools.pairwise(places)]
                    single = types.SimpleNamespace(grad=values)
                    found = self.found(of_stages_1_and_2, {**made, "cpu_offload": offload, "averaged_gradients": {} if offload else {0: cut},
                                                           "single_partition_of_fp32_groups": [single]}, 1)
                    owner = next(n for n, end in enumerate(itertools.accumulate(self.SIZES)) if bad < end)
                    self.assertEqual(found, {owner: [1 - bad % 2, bad % 2]}, (begin, elems, offload, bad))

    def test_stage_3_by_parameter_and_without_padding(self):
        import torch
        from shardscope.deepspeed.not_finite import of_stage_3
        shards = [param.partition_numel() for param in self.params]
        begins = [0, *itertools.accumulate(shards)]
        for rank in (0, 1):
            for offload in (False, True):
                for number, param in enumerate(self.params):
                    for index in range(shards[number]):
                        values = torch.zeros(sum(shards))
                        values[begins[number] + index] = float("inf")
                        for one in self.params:
                            one.requires_grad = True
                        positions = {id(one): [0, begins[n], shards[n]] for n, one in enumerate(self.params)}
                        optimizer = {"fp16_groups": [self.params], "offload_optimizer": offload, "get_param_id": id,
                                     "fp32_partitioned_groups_flat": [types.SimpleNamespace(grad=values)], "grad_position": positions,
                                     "averaged_gradients": {} if offload else {0: [values[a:b] for a, b in itertools.pairwise(begins)]}}
                        real = rank * shards[number] + index < param.ds_numel
                        self.assertEqual(self.found(of_stage_3, optimizer, rank), {number: [1, 0]} if real else {})

    def test_the_last_of_the_model_is_named_after_an_overflow_only(self):
        import torch
        from shardscope.deepspeed import not_finite
        gradients = [(self.params[0], torch.tensor([float("nan"), 1])), (self.params[2], torch.tensor([float("inf"), float("nan")])),
                     (self.params[1], torch.tensor([1.0])), (self.params[0], torch.tensor([float("inf")]))]
        not_finite.checked(types.SimpleNamespace(overflow=False), lambda _: gradients)
        self.assertEqual(self.emitted, [])
        not_finite.checked(types.SimpleNamespace(overflow=True), lambda _: gradients)
        self.assertEqual(self.emitted, [(2, 1, 1, 1)])
        not_finite.checked(types.SimpleNamespace(overflow=True), lambda _: [(p, g.to("meta")) for p, g in gradients])
        self.assertEqual(self.emitted, [(2, 1, 1, 1)], "a gradient that is not in host memory was looked at")
        # offload_optimizer: its gradients lie in host memory, and the run is on a GPU all the same.
        not_finite.session.on_device = True
        not_finite.checked(types.SimpleNamespace(overflow=True), lambda _: gradients)
        self.assertEqual(self.emitted, [(2, 1, 1, 1)], "a run on a GPU was looked at")


class Slices(unittest.TestCase):
    def test_torch_chunk_gives_the_same_elements(self):
        import torch
        from shardscope.fsdp2 import piece
        for shape in ((5,), (7, 3), (4, 6), (4, 6, 5), (1, 3)):
            whole = torch.arange(math.prod(shape)).reshape(shape)
            for dim, ranks in itertools.product(range(len(shape)), (1, 2, 3, 4)):
                chunks = torch.chunk(whole, ranks, dim)
                for index in range(ranks):
                    offset, _, elems, _, block, stride = piece(torch.Size(shape), dim, index, ranks)
                    if block == 0:
                        block, stride = max(elems, 1), 0
                    got = [offset + i // block * stride + i % block for i in range(elems)]
                    expected = chunks[index].flatten().tolist() if index < len(chunks) else []
                    self.assertEqual(got, expected, (shape, dim, index, ranks))


if __name__ == "__main__":
    unittest.main()
