# Runs first in every Python process that finds the folder on PYTHONPATH, before an installed wheel's entry point could:
# also where a launcher hands on no other variable than PYTHONPATH. Chains a `sitecustomize` of the user's that it hides.
import os, sys
_here = os.path.dirname(os.path.abspath(__file__))
os.environ["SHARDSCOPE_ATTACH"] = _here


def _user_sitecustomize():
    import importlib.machinery
    path = [p for p in sys.path if os.path.abspath(p or ".") != _here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        import importlib.util
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _arm():
    if "RANK" not in os.environ and "OMPI_COMM_WORLD_RANK" not in os.environ:
        return  # a launcher, or a single process: `import torch` arms the latter
    try:
        from shardscope import _arm
    except ImportError as error:
        print(f"shardscope: this Python ({sys.executable}) has no package `shardscope` ({error}): "
              "its training is not recorded; pip install it", file=sys.stderr)
        return
    try:
        _arm.arm_from(_here)
    except Exception as error:
        print(f"shardscope: not attached: {type(error).__name__}: {error}", file=sys.stderr)


_arm()
_user_sitecustomize()
