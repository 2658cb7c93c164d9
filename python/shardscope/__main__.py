"""`python -m shardscope [--endpoint E] [--detail D] SCRIPT|-m MODULE [ARGUMENTS]`: runs a script and records it."""
import argparse
import os
import runpy
import sys

import shardscope
from shardscope._arm import DETAILS


def main():
    parser = argparse.ArgumentParser(prog="python -m shardscope", description="Runs a training script attached.")
    parser.add_argument("--endpoint", help="collector to publish to (default: SHARDSCOPE_ENDPOINT)")
    parser.add_argument("--detail", default="params", choices=DETAILS)
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.module and not os.path.exists(options.script):
        parser.error(f"{options.script}: no such file")
    shardscope.attach(endpoint=options.endpoint, detail=options.detail)
    sys.argv = [options.script, *options.arguments]
    if options.module:
        sys.path[0] = os.getcwd()
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(options.script))
        runpy.run_path(options.script, run_name="__main__")


if __name__ == "__main__":
    main()
