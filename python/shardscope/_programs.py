"""The command `shardscope` of the installed package: the program that lies in it or beside which it was made, in place of
this Python."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def folder():
    """In this package or, of one that was made where Shardscope is installed, where that is."""
    try:
        with open(os.path.join(HERE, "program-folder.txt"), encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        return os.path.join(HERE, "bin")


FOLDER = folder()


def main():
    program = os.path.join(FOLDER, "shardscope")
    if not os.access(program, os.X_OK):
        sys.exit(f"shardscope: {program}: not there: this package was made without the programs, or they were removed; "
                 "use ./shardscope of the sources")
    # `attach` of this package: the Python that trains is mostly the one that was asked.
    os.execv(program, ["shardscope", *sys.argv[1:]])
