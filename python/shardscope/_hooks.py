"""Wraps methods of a framework: class attributes, replaced after their module has been imported.

An adapter's table lists symbols and their expected parameters. If a symbol is missing or its parameters differ, no
symbol of that adapter is wrapped: a message is emitted once and the framework runs unchanged. A hook that raises is
turned off with one message; its exception never reaches the user.
"""
import functools
import importlib.abc
import importlib.util
import inspect
import sys
import types

from shardscope import _core, _say
from shardscope._switched import Switched

_adapters_of = {}  # module name -> [adapter]
_undo = []  # calls of detach(), in reverse order
_at_turn_off = []  # cleanups that adapters registered


class Differs(Exception):
    """A symbol differs from the table; the message says which and how."""


class Adapter(Switched):
    """A framework's hook table. The first hook that raises, or a symbol that differs, clears `on`."""

    def __init__(self, name, module, install):
        self.name, self.module, self.install = name, module, install
        super().__init__()  # wrappers read the switch
        self.on = True

    def installed(self, module):
        if not self.on:
            return
        pending = Table(self, module)
        try:
            self.install(pending)
        except Differs as why:
            return self.turn_off(f"{why}; this part is not recorded")
        except Exception as error:  # an error in our code: the user's import continues
            return self.turn_off(f"{type(error).__name__}: {error}; this part is not recorded")
        pending.apply()

    def turn_off(self, why):
        if self.on:
            self.on = False
            _say.warning(f"{self.name}: {why}")

    def failed(self, symbol, error):
        self.turn_off(f"the hook of {symbol} failed ({type(error).__name__}: {error}) and is off; training is as before")


class Table:
    """Collects an adapter's wrappers; apply() installs them only if all symbols exist."""

    def __init__(self, adapter, module):
        self.adapter, self.module, self.wraps = adapter, module, []

    def owner(self, path):
        """The object at `path` in the module ("Class", or "" for the module itself)."""
        owner = self.module
        for part in filter(None, path.split(".")):
            if not hasattr(owner, part):
                raise Differs(f"{self.module.__name__}.{path} is not there")
            owner = getattr(owner, part)
        return owner

    def wrap(self, symbol, parameters, before=None, after=None, raised=None):
        """`symbol`: "Class.method" or "function". `parameters`: names of its first parameters, separated by spaces.

        before(*arguments) runs before the original; its result is passed to after(token, result, *arguments), which
        runs when the original has returned; raised(token) runs if the original raised.
        """
        path, _, name = symbol.rpartition(".")
        owner = self.owner(path)
        original = inspect.getattr_static(owner, name, None)
        if original is None:
            raise Differs(f"{self.module.__name__}.{symbol} is not there")
        inner = original.__func__ if isinstance(original, staticmethod) else original
        check_parameters(f"{self.module.__name__}.{symbol}", inner, parameters)
        outer = wrapped(self.adapter, symbol, inner, before, after, raised)
        self.wraps.append((owner, name, staticmethod(outer) if isinstance(original, staticmethod) else outer))

    def has(self, symbol):
        path, _, name = symbol.rpartition(".")
        return hasattr(self.owner(path), name)

    def replace(self, owner, name, value):
        self.wraps.append((owner, name, value))

    def apply(self):
        for owner, name, value in self.wraps:
            own = name in vars(owner)
            before = vars(owner).get(name)
            setattr(owner, name, value)
            _undo.append((owner, name, own, before))


def check_parameters(symbol, function, parameters):
    """Raises Differs unless the function's first parameters have these names ("self a b")."""
    expected = parameters.split()
    known = plain_parameters(function)
    if known is None:
        try:
            known = list(inspect.signature(undecorated(function)).parameters)
        except (TypeError, ValueError):
            return
    if known[:len(expected)] != expected:
        raise Differs(f"{symbol} takes ({', '.join(known)}), not ({', '.join(expected)}, ...)")


def plain_parameters(function):
    """Names of a plain function's parameters, in order; None if it is decorated, or not a function. inspect.signature()
    takes 30 times as long, and a rank's start needs a hundred of them."""
    if type(function) is not types.FunctionType or not vars(function).keys().isdisjoint(("__wrapped__", "__signature__")):
        return None
    code = function.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    return list(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])


def undecorated(function):
    """The function inside a decorator without functools.wraps (*args, **kwargs), like DeepSpeed's instrument_w_nvtx."""
    catch_all = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    while tuple(p.kind for p in inspect.signature(function).parameters.values()) == catch_all:
        held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        inner = [value for value in held if inspect.isfunction(value)]
        if len(inner) != 1:
            break
        function = inner[0]
    return function


def wrapped(adapter, symbol, inner, before, after, raised=None):
    """Makes the wrapper, in C: the call overhead is small compared to the hooks."""
    def failed(error):
        adapter.failed(symbol, error)

    outer = _core.Wrapper(inner, before, after, raised, failed, adapter.switch)
    if getattr(inner, "_torchdynamo_disable", False):
        return _hidden_from_dynamo(outer, inner)
    return functools.update_wrapper(outer, inner)


def _hidden_from_dynamo(wrapper, inner):
    """Keeps excluded functions excluded from dynamo, which would otherwise trace the hooks."""
    import torch

    def outer(*args, **kwargs):
        return wrapper(*args, **kwargs)

    return torch.compiler.disable(functools.update_wrapper(outer, inner))


def turn_off_all():
    """Restores every wrapped class."""
    while _undo:
        owner, name, own, value = _undo.pop()
        if own:
            setattr(owner, name, value)
        else:
            delattr(owner, name)
    while _at_turn_off:
        _at_turn_off.pop()()
    for adapters in _adapters_of.values():
        for adapter in adapters:
            adapter.on = False


def at_turn_off(undo):
    _at_turn_off.append(undo)


def watch(adapter):
    """Installs the adapter when its module has been imported: now, if it already has."""
    _adapters_of.setdefault(adapter.module, []).append(adapter)
    module = sys.modules.get(adapter.module)
    # The finder no longer sees a module that is being imported right now: `spec._initializing` is set.
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        adapter.installed(module)
    elif not any(isinstance(finder, AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, AfterImport())


def install_now():
    """Installs adapters whose modules were being imported at the time of watch()."""
    for name, adapters in _adapters_of.items():
        module = sys.modules.get(name)
        if module is None:
            continue
        for adapter in adapters:
            if not getattr(adapter, "done", False):
                adapter.done = True
                adapter.installed(module)


class AfterImport(importlib.abc.MetaPathFinder):
    """Import hook that installs the adapters of a module right after it has been executed."""

    def find_spec(self, name, path=None, target=None):
        adapters = _adapters_of.get(name)
        if not adapters:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader, adapters)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, inner, adapters):
        self.inner, self.adapters = inner, adapters

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self.inner
        module.__loader__ = self.inner
        self.inner.exec_module(module)
        for adapter in self.adapters:
            adapter.done = True
            adapter.installed(module)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def forget():
    """Call after turn_off_all(): the next attach() makes new adapters."""
    _adapters_of.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, AfterImport)]
