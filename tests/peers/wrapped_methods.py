"""Watching a class of DeepSpeed from outside: its methods replaced by functions that are handed the original."""


def wrapper_of(cls):
    """Of `cls`, a decorator: @wrap("method") on a function f(self, inner, ...) makes it the method. f calls
    inner(self, ...) where it wants the original."""

    def wrap(name):
        def decorate(outer):
            inner = getattr(cls, name)
            setattr(cls, name, lambda self, *a, **k: outer(self, inner, *a, **k))
            return outer
        return decorate
    return wrap
