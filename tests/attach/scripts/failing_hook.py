"""train.py with one of Shardscope's hooks replaced by one that raises: failing_hook.py SYMBOL FRAMEWORK OUT [name=value ...]"""
import pathlib
import runpy
import sys

from shardscope import _hooks

symbol = sys.argv.pop(1)
inner = _hooks.Table.wrap


def fails(*args, **kwargs):
    raise RuntimeError("on purpose")


def wrap(table, name, parameters, before=None, after=None, raised=None):
    inner(table, name, parameters, fails if name == symbol else before, after, raised)


_hooks.Table.wrap = wrap
train = pathlib.Path(__file__).resolve().parents[1] / "train.py"
sys.argv[0] = str(train)
runpy.run_path(str(train), run_name="__main__")
