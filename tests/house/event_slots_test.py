#!/usr/bin/env python3
"""Only the transport, the recording's codec and what keeps spans touch an event's slots (a, b, c, v0, v1); all other
code reads and writes fields by the names of instrumentation/event_kinds.def (as<kind>, make<kind>).

usage: event_slots_test.py REPOSITORY"""

import pathlib
import re
import sys

SLOT = re.compile(r"\b(?:event|events\[\w+\]|e|span|one|part|submitted|collective|a|b)(?:\.|->)(a|b|c|v0|v1)\b(?!\()")
VALUES = re.compile(r"[\w)\]](?:\.|->)(v0|v1)\b(?!\()")
CODE = re.compile(r"\bstatic_cast<(?!char\b|int\b|(?:std::)?u?int\d+_t\b)[\w:]+>\(\s*\w+(?:\[\w+\])?(?:\.|->)code\b")
FILLED = re.compile(r"(?:\bEvent(?: \w+)?|\bpush\()\{[^;]*?\.(a|b|c|v0|v1) = ", re.S)

# Carries slots as they are, whatever a kind keeps in them.
CARRIES = {
    "instrumentation/event_fields.h": "the accessors",
    "instrumentation/event_table.cpp": "the table as data",
    "instrumentation/ring.h": "records of the ring",
    "instrumentation/shedding.cpp": "the watermark of a pool",
    "instrumentation/nvtx_ranges.cpp": "ids of begin and end",
    "instrumentation/c_api/events.cpp": "the C structure",
    "instrumentation/include/shardscope/events.h": "the C structure",
    "instrumentation/nccl_profiler/sink.cpp": "the C structure",
    "runtime/profile/attached/gpu.cpp": "the C structure",
    "app/store/chunk_columns.cpp": "columns",
    "app/store/column_decoder.cpp": "columns",
    "app/store/event_columns.h": "columns",
    "app/store/keyframe_section.cpp": "open spans",
    "app/store/lane.cpp": "spans from begins and ends",
    "app/store/pauses.h": "the length of a pause, which the store keeps in v0",
    "app/store/sums_section.cpp": "notable events",
    "app/arrow/event_columns.cpp": "a span's begin as an event",
    "app/arrow/long_tables.cpp": "the slots as columns where kinds are mixed",
    "app/export/csv.cpp": "events.csv and spans.csv have the slots as columns",
}


def uses(text):
    """Lines that touch a slot, comments left out."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    lines = {code.count("\n", 0, m.start()) + 1 for pattern in (SLOT, VALUES, CODE, FILLED) for m in pattern.finditer(code)}
    return sorted(lines)


def check(root):
    problems = []
    for folder in ("instrumentation", "runtime", "app"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in (".h", ".cpp", ".cu") or name in CARRIES:
                continue
            problems += [f"{name}:{line}: an event's slot; use its field's name" for line in uses(path.read_text())]
    for name in CARRIES:
        if not (root / name).exists():
            problems.append(f"{name}: is listed here and gone")
        elif not uses((root / name).read_text()):
            problems.append(f"{name}: is listed here and touches no slot; take it from CARRIES")
    return problems


def self_test():
    assert uses("x = event.a;") == [1]
    assert uses("\nspan.v0 = 1;") == [2]
    assert uses("return a.a == b.a;") == [1]
    assert uses("Event event{.kind = k,\n .a = 1};") == [1]
    assert uses("x = record.v0;\ny = waits[i]->v1;") == [1, 2]
    assert uses("notable_.back().v0 = 1;\nkept[i].rows[2].v1 = 2;") == [1, 2]
    assert uses("ring.push({.kind = k, .a = n, .v0 = 1});") == [1]
    assert uses("auto pass = static_cast<ev::Pass>(node.code);") == [1]
    assert uses("auto cause =\n    static_cast<ev::StatusCause>(changes[i].code >> 4);") == [2]
    assert uses("// event.a\n/* span.v0 */ d.a; step.b; event.code; static_cast<int>(exit.code_of())") == []


def main():
    self_test()
    problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) if problems else "events are read and written by the names of their fields")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
