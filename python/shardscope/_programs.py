"""The command `shardscope` of the installed package: the program that lies in it, in place of this Python."""
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def main():
    program = os.path.join(FOLDER, "shardscope")
    if not os.access(program, os.X_OK):
        sys.exit(f"shardscope: {program}: not in this package, which was made without the programs; "
                 "use ./shardscope of the sources")
    # `attach` of this package: the Python that trains is mostly the one that was asked.
    os.execv(program, ["shardscope", *sys.argv[1:]])
