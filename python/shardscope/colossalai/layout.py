"""Tables of a LowLevelZeroOptimizer: modules, parameters, and which rank owns which elements."""
from shardscope import _records
from shardscope._session import session

SEVERAL = "parameters are cut among the ranks of several process groups at once"


def describe(run, model, optimizer):
    """Each parameter is cut into as many equal parts as its group has ranks, the last ones padded. Returns {id(the
    whole padded parameter): (number, elements)}."""
    import torch.distributed as dist
    numbers = session.add_modules(model)
    padded = {}
    for name, param in model.named_parameters():
        group, elems = optimizer.param_to_pg.get(param), param.numel()
        if group is None or isinstance(group, tuple) or not param.requires_grad:
            session.add_param(param, name, param.shape, elems, trained=param.requires_grad, dtype=param.dtype)
            continue
        ranks = dist.get_process_group_ranks(group)
        whole = optimizer._working_param_to_padded_working_param[param]
        shard = whole.numel() // len(ranks)
        number = session.add_param(param, name, param.shape, elems, shard_elems=shard, padding=whole.numel() - elems,
                                   dtype=param.dtype)
        padded[id(whole)] = number, elems
        session.add_equal_slices(number, ranks, shard, elems)
    session.use_params(model, numbers)
    if any(isinstance(group, tuple) for group in optimizer.param_to_pg.values()):
        run.not_recorded(_records.bits("layout"), SEVERAL)
    return padded
