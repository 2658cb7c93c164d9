"""Rewrites a CUDA source for a host's compiler: launches become calls of host_cuda::launch_kernel, shared memory
of a size known at the launch becomes a pointer. Everything else is left as it is.

Usage: launches.py SOURCE.cu RESULT.cpp"""
import re
import sys

SHARED = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];")
# A kernel's name, with template arguments or without, before <<<.
KERNEL = re.compile(r"(\w+(?:<[^<>;()]*>)?)\s*$")


def closing(text: str, at: int) -> int:
    """Where the parenthesis closes that opens at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("a parenthesis does not close")


def split_top(text: str) -> list[str]:
    """At the commas that lie in no parenthesis."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return parts + [text[begin:].strip()]


def rewritten(text: str) -> str:
    text = SHARED.sub(r"auto* \2 = static_cast<\1*>(::shardscope::host_cuda::dynamic_shared_memory());", text)
    out, done = [], 0
    while (at := text.find("<<<", done)) >= 0:
        kernel = KERNEL.search(text, done, at)
        end = text.index(">>>", at)
        arguments = text.index("(", end)
        last = closing(text, arguments)
        configuration = split_top(text[at + 3:end])
        if kernel is None or len(configuration) != 4:
            raise ValueError("a launch in a form that is not known: " + text[at - 40:end + 3])
        name = kernel.group(1)
        function = "nullptr" if configuration[2] == "0" else f"reinterpret_cast<const void*>(&{name})"
        out.append(text[done:kernel.start()])
        out.append(f"::shardscope::host_cuda::launch_kernel(::shardscope::host_cuda::Launch({', '.join(configuration)}), "
                   f"{function}, \"{name}\", [=] {{ {name}{text[arguments:last + 1]}; }})")
        done = last + 1
    return "".join(out) + text[done:]


def main() -> None:
    source, result = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = rewritten(file.read())
    with open(result, "w", encoding="utf-8") as file:
        file.write(f'#line 1 "{source}"\n{text}')


if __name__ == "__main__":
    main()
