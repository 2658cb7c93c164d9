"""FSDP2's offloading (CPUOffloadPolicy): shards to the device for each gather, reduced gradients to the host.

| symbol | event |
|---|---|
| _fsdp_collectives._get_param_all_gather_inputs | a group's shards to the device |
| _fsdp_collectives._cast_and_view_sharded_grads, after, until foreach_reduce returns | its gradients to the host |

A span is the time of the calls; it has the group's first offloaded parameter and the bytes of all of them. On a GPU
copies from and to pinned memory continue after it; their end is not recorded.

The functions are wrapped with the first model that has an offloaded group: others would run the wrappers, 35 calls in a
step of nine groups, for nothing.
"""
from shardscope import _core, _hooks, _kinds as k
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

events = _core.events
TO_DEVICE, TO_HOST = range(2)


class Leaving:
    span = None  # of gradients being copied to the host
    watched = False


def watch(package, groups):
    """Records copies from now on, if a group is offloaded."""
    if Leaving.watched or not any(getattr(param, "offload_to_cpu", False) for group in groups for param in group.fsdp_params):
        return
    Leaving.watched = True
    _hooks.at_turn_off(forget)
    _hooks.watch(Adapter("FSDP2, offloading", package + "_fsdp_collectives", install_copies))
    # Groups call foreach_reduce through this module's reference.
    _hooks.watch(Adapter("FSDP2, end of offloading", package + "_fsdp_param_group", install_end))


def forget():
    Leaving.watched = False


def install_copies(table):
    table.wrap("_get_param_all_gather_inputs", "fsdp_params", before=shards_leave, after=arrived, raised=arrived)
    if table.has("_cast_and_view_sharded_grads"):
        table.wrap("_cast_and_view_sharded_grads", "reduce_output fsdp_params", after=gradients_leave)


def install_end(table):
    table.wrap("foreach_reduce", "fsdp_params unsharded_grads", after=gradients_arrived, raised=gradients_arrived)


def begin(kind, sizes):
    """`sizes`: [(FSDPParam, bytes)] of offloaded tensors."""
    if not sizes:
        return None
    param = session.params.get(id(sizes[0][0]), NO_ID)
    span = k.COPY, kind, param, NO_ID, 0, sum(size for _, size in sizes), 0
    events.transfer_begin(*span)
    return span


def arrived(span, *_, **__):
    if span is not None:
        events.transfer_end(*span)


def shards_leave(fsdp_params):
    if session.started:
        # Shards resharded to fewer ranks are on the device.
        return begin(TO_DEVICE, [(param, param._sharded_param_data.nbytes) for param in fsdp_params
                                 if param.offload_to_cpu and param.sharded_state.name == "SHARDED"])


def gradients_leave(_, gradients, reduce_output, fsdp_params, *args, **kwargs):
    if session.started:
        Leaving.span = begin(TO_HOST, [(param, gradient.nbytes) for param, gradient in zip(fsdp_params, gradients)
                                       if param.offload_to_cpu])


def gradients_arrived(*_, **__):
    span, Leaving.span = Leaving.span, None
    arrived(span)
