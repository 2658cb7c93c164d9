"""Pairs of runs, plain and attached, that the tests share: each case is trained once in a test run."""
import os
import pathlib
import struct
import tempfile
import unittest

import runs

TRAIN = runs.HERE / "train.py"
BLOCKS = 3
QUICK = os.environ.get("SHARDSCOPE_ATTACH_QUICK") == "1"
QUICK_CASES = [("ddp", "accumulate=2"), ("fsdp2",), ("zero2", "accumulate=2"), ("zero3",)]
# The optimizer with two parameter groups.
GROUPS = [(framework, "groups=1") for framework in ("zero2", "zero3", "fsdp2")]
CASES = [*QUICK_CASES, *GROUPS] if QUICK else [
    *QUICK_CASES, *GROUPS, ("fsdp2", "reshard=0"), ("fsdp2", "accumulate=2", "checkpoint=1"), ("fsdp2", "dtype=bf16"), ("zero0",), ("zero1",),
    ("zero3", "accumulate=2", "checkpoint=1"),
    ("zero3", "accumulate=2", "evaluate=1"), ("zero3", "dtype=bf16", "offload=1"), ("zero2", "dtype=bf16", "offload=1"),
    ("ddp", "checkpoint=1"), ("fsdp1",), ("fsdp1", "accumulate=2")]
# Of runs to which something is done while they train.
LONG = [(framework, "steps=40") for framework in ("zero3", "fsdp2", "ddp")]
slow = unittest.skipIf(QUICK, "not in the quick part")


def as_double(bits):
    return struct.unpack("<d", struct.pack("<q", int(bits)))[0]


class Shared:
    folder = None  # of every run of this process's tests
    plain = set()  # (DeepSpeed, torch) of which the plain runs have been made


def folder():
    if Shared.folder is None:
        runs.build_package()
        Shared.temporary = tempfile.TemporaryDirectory(prefix="shardscope-attach-")
        Shared.folder = pathlib.Path(Shared.temporary.name)
    return Shared.folder


def name_of(case, deepspeed=runs.DEEPSPEED, torch=None):
    return "_".join(case).replace("=", "") + "-" + deepspeed + (f"-torch{torch}" if torch else "")


def plain(case, deepspeed=runs.DEEPSPEED, torch=None):
    """What the script writes where nothing is attached. All cases are trained in one process, one after the other."""
    if (deepspeed, torch) not in Shared.plain:
        cases = QUICK_CASES if torch else [*CASES, *LONG] if deepspeed == runs.DEEPSPEED else [("zero3",)]
        arguments = []
        for each in cases:
            arguments += ["--", each[0], folder() / f"{name_of(each, deepspeed, torch)}.plain", *each[1:]]
        runs.finish(runs.start(runs.torchrun(TRAIN, *arguments[1:]), deepspeed=deepspeed, torch=torch))
        Shared.plain.add((deepspeed, torch))
    return runs.results(folder() / f"{name_of(case, deepspeed, torch)}.plain")


class Runs(unittest.TestCase):
    """One attached run for each case, which all tests share."""

    def attached(self, *case, deepspeed=runs.DEEPSPEED, torch=None):
        """(results, recording, output) of a case; made once."""
        name = name_of(case, deepspeed, torch)
        made, out, output = (folder() / f"{name}.{end}" for end in ("zscope", "attached", "log"))
        if not output.exists():
            output.write_text(runs.finish(runs.start(runs.attach(made) + runs.torchrun(TRAIN, case[0], out, *case[1:]),
                                                     deepspeed=deepspeed, torch=torch)), encoding="utf-8")
        return runs.results(out), made, output.read_text(encoding="utf-8")

    def recording(self, *case):
        return runs.read(self.attached(*case)[1])
