"""FSDP2's settings as the groups have them when the first forward begins: what `fully_shard` was given, or a later call.

| attribute | setting |
|---|---|
| FSDPParamGroup.mesh_info, post_forward_mesh_info | reshard_after_forward: true, false, or to how many ranks |
| FSDPParam.param_dtype, reduce_dtype | mp_policy; absent: that of the parameters |
| FSDPParam.offload_to_cpu, pin_memory | offload_policy |
| FSDPState._states_to_forward_prefetch, _states_to_backward_prefetch | at how many modules the script names what to prefetch |

They are compared and shown. Of reshard_after_forward and the explicit prefetches what-if reads whether it can replay the run; where
model states are follows from offload_policy.
"""
import collections


def config_of(fsdp_state, groups):
    """{"fully_shard": {...}}. Where groups differ, the number of groups by value. The root's own group stands apart:
    FSDP2 does not reshard it by default."""
    if not groups:
        return {}
    states = fsdp_state._state_ctx.all_states
    of_root = {id(group) for group in groups_at(fsdp_state)}
    others = [group for group in groups if id(group) not in of_root] or groups
    settings = {"groups": len(groups), **together([of_group(group) for group in others])}
    root = [group for group in groups if id(group) in of_root]
    if root and len(root) < len(groups):
        settings["root_reshard_after_forward"] = reshards(root[0])
    for direction in ("forward", "backward"):
        explicit = sum(1 for state in states if getattr(state, f"_states_to_{direction}_prefetch", None))
        if explicit:
            settings[f"modules_with_explicit_{direction}_prefetch"] = explicit
    params = [param for group in groups for param in group.fsdp_params]
    if params and all(getattr(param, "offload_to_cpu", False) for param in params):
        settings.update(offload_policy="CPUOffloadPolicy", pin_memory=bool(getattr(params[0], "pin_memory", False)))
    return {"fully_shard": settings}


def groups_at(fsdp_state):
    """A state has a list of groups; in older PyTorch (2.11) one group or none."""
    groups = getattr(fsdp_state, "_fsdp_param_groups", None) or [getattr(fsdp_state, "_fsdp_param_group", None)]
    return [group for group in groups if group is not None]


def of_group(group):
    settings = {"reshard_after_forward": reshards(group)}
    for key in ("param_dtype", "reduce_dtype"):
        dtypes = {getattr(param, key, None) for param in group.fsdp_params} - {None}
        if dtypes:
            settings[key] = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
    return settings


def reshards(group):
    after = getattr(group, "post_forward_mesh_info", None)
    if after is None or after is group.mesh_info:
        return after is not None
    return getattr(after, "shard_mesh_size", True)


def together(of_groups):
    """Each setting's value, or the number of groups by value where they differ."""
    out = {}
    for key in dict.fromkeys(key for settings in of_groups for key in settings):
        values = collections.Counter(str(settings.get(key)).lower() for settings in of_groups)
        out[key] = next(settings[key] for settings in of_groups if key in settings) if len(values) == 1 else dict(values)
    return out
