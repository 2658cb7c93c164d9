"""What the package holds of others' tables: numbers of the C interface, and where FSDP2 cuts a tensor."""
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
        for kind in _records.BY_FRAMEWORK:
            without = 0
            for mask, _ in _records.reasons(kind):
                without |= mask
            self.assertEqual(_records.recorded(kind) & without, 0, kind)
            self.assertEqual(_records.recorded(kind) | without, (1 << len(_records.NAMES)) - 1, kind)


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
