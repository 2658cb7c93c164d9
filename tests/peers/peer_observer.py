"""Watches what DeepSpeed does from outside: collectives, layouts, gathers. Nothing of it is changed.

Names are those of DeepSpeed 0.19 (deepspeed/runtime/zero).
"""
# Norms, overflow flags and sanity checks travel in reductions and broadcasts of integers or of a few numbers, which
# zero_train sends past its accounting as well. All-gathers are of parameters, however small.
CONTROL_ELEMS = 8


class Observer:
    def __init__(self, active, group=None):
        """`group`: the data-parallel group of this rank; None: all ranks."""
        self.active = active
        self.group = group
        self.collectives = []  # by micro-step: [op, elements of the whole tensor]
        self.gathers = []  # by micro-step: parameters of one gather, each a list of ds_ids
        self.evaluations = []  # each by batch: the same two, and losses
        self.layout = {}
        self.gradients = []  # stages 1 and 2, by step: bytes of live storages of gradients (see _watch_gradients)

        self._now = None  # where collectives and gathers go: of the present micro-step or batch of an evaluation

    def start(self, engine):
        if not self.active:
            return
        import deepspeed.comm.comm as comm
        self._watch_collectives(comm.cdb)
        if engine.zero_optimization_stage() == 3:
            self._watch_gathers()
            self.layout = self._stage3_layout(engine)
        elif engine.zero_optimization_stage() > 0:
            self.layout = self._stage12_layout(engine)
            self._watch_gradients(engine.optimizer)

    def micro_step(self):
        if self.active:
            self.collectives.append([])
            self.gathers.append([])
            self._now = (self.collectives[-1], self.gathers[-1])

    def evaluation(self):
        self.evaluations.append({"collectives": [], "gathers": [], "losses": []})

    def evaluation_batch(self):
        if self.active:
            of = self.evaluations[-1]
            of["collectives"].append([])
            of["gathers"].append([])
            self._now = (of["collectives"][-1], of["gathers"][-1])

    def evaluated(self, loss):
        self.evaluations[-1]["losses"].append(loss)

    def report(self):
        return {"collectives": self.collectives, "gathers": self.gathers, "layout": self.layout,
                "gradients": self.gradients, "evaluations": self.evaluations}

    def _note(self, op, tensor):
        control = op != "all_gather" and tensor.numel() <= CONTROL_ELEMS
        if self._now and not control and tensor.is_floating_point():
            self._now[0].append([op, tensor.numel()])

    def _watch_collectives(self, backend):
        # By the tensor that is whole: the input of a reduction, the output of a gather.
        whole = {"all_reduce": (0, "tensor"), "reduce": (0, "tensor"), "broadcast": (0, "tensor"),
                 "all_gather_into_tensor": (0, "output_tensor"), "reduce_scatter_tensor": (1, "input_tensor")}
        names = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter"}

        def watch(method):
            inner = getattr(backend, method)
            position, keyword = whole[method]

            def outer(*args, **kwargs):
                tensor = kwargs[keyword] if keyword in kwargs else args[position]
                self._note(names.get(method, method), tensor)
                return inner(*args, **kwargs)

            setattr(backend, method, outer)

        for method in whole:
            watch(method)

    def _watch_gathers(self):
        from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator
        name = "_PartitionedParameterCoordinator__all_gather_params_"
        inner = getattr(PartitionedParameterCoordinator, name)

        def outer(coordinator, params, *args, **kwargs):
            gathered = sorted(p.ds_id for p in params if p.ds_status.name == "NOT_AVAILABLE")
            if gathered and self._now:
                self._now[1].append(gathered)
            return inner(coordinator, params, *args, **kwargs)

        setattr(PartitionedParameterCoordinator, name, outer)

    def _watch_gradients(self, optimizer):
        """Of one parameter group: "bucket": the buffers of a backward; "owned": what the partition's gradients lie in when
        the norm is taken; "copies": the fp32 gradients that the optimizer gets, "beside" them the others that are live
        then; "after": those that are live when the step is over."""
        import torch

        def storages(tensors):
            found = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors
                     if torch.is_tensor(t) and t.numel() > 0}
            return sum(found.values())

        def held():
            for part in optimizer.averaged_gradients.values():
                yield from part or []
            for group in optimizer.bit16_groups:
                for param in group:
                    yield param.grad
                    yield getattr(param, "grad_accum", None)

        def watch(name, before=None, after=None):
            inner = getattr(optimizer, name)

            def outer(*args, **kwargs):
                if before:
                    before()
                result = inner(*args, **kwargs)
                if after:
                    after()
                return result

            setattr(optimizer, name, outer)

        now = {}
        partitions = optimizer.single_partition_of_fp32_groups

        def reduced():
            # Emptied by the end of the backward, so before the buckets are let go.
            now["bucket"] = storages(b for bucket in optimizer.ipg_buckets.values() for b in bucket.buffer)

        def cast():
            now.update(copies=storages(p.grad for p in partitions), beside=storages(held()))

        def stepped():
            self.gradients.append({**now, "after": storages([*held(), *(p.grad for p in partitions)])})

        watch("_release_ipg_buffers", before=reduced)
        watch("scaled_global_norm", before=lambda: now.update(owned=storages(held())))
        watch("_optimizer_step", before=cast)
        watch("step", after=stepped)

    def _stage12_layout(self, engine):
        """Slices [param, offset in it, elements] of this rank's partition, group after group, and sizes of the flat
        buffers together."""
        optimizer = engine.optimizer
        import deepspeed.comm as dist
        position = {id(p): i for i, p in enumerate(engine.module.parameters())}
        slices = []
        for group, params in enumerate(optimizer.params_in_partition):
            left = int(optimizer.partition_size[group])
            offset = int(optimizer.first_offset[group])
            for param in params:
                elems = min(param.numel() - offset, left)
                slices.append([position[id(param)], offset, elems])
                left -= elems
                offset = 0
        last = dist.get_rank(self.group) == dist.get_world_size(self.group) - 1
        return {"flat": sum(flat.numel() for flat in optimizer.bit16_groups_flat),
                "partition": sum(map(int, optimizer.partition_size)), "slices": slices,
                "padding": sum(map(int, optimizer.groups_padding)) if last else 0}

    def _stage3_layout(self, engine):
        """By parameter: elements of the shard, and how many of the last rank's are padding."""
        import deepspeed.comm as dist
        world = dist.get_world_size(self.group)
        return {"shards": [[p.ds_tensor.ds_numel, p.ds_tensor.ds_numel * world - p.ds_numel]
                           for p in sorted(engine.module.parameters(), key=lambda p: p.ds_id)]}
