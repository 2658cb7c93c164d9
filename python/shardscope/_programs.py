"""The command `shardscope` of the installed package: replaces this Python by the program in the package or beside its
installation."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def folder():
    """Folder of the programs: in this package, or in the installation of Shardscope that the package was made for."""
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
    # `attach` of this package: the training usually runs in the Python that was called.
    os.execv(program, ["shardscope", *sys.argv[1:]])
