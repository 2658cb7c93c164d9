"""How two accounts of the same run differ."""


def deviation(ours, theirs):
    """Largest relative difference of two lists of numbers; infinite if one is shorter."""
    if len(ours) != len(theirs):
        return float("inf")
    return max((abs(a - b) / max(abs(b), 1e-12) for a, b in zip(ours, theirs)), default=0.0)


def first_difference(ours, theirs):
    """'' or where two lists differ first."""
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            inner = first_difference(a, b) if isinstance(a, list) and isinstance(b, list) else ""
            return f"[{i}]{inner}" if inner else f"[{i}]: ours {str(a)[:90]}, DeepSpeed's {str(b)[:90]}"
    if len(ours) != len(theirs):
        return f": ours has {len(ours)}, DeepSpeed's {len(theirs)}"
    return ""
