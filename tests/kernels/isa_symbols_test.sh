#!/bin/sh
# Objects compiled for one instruction set must define no shared (weak or unique) symbol: the linker keeps one copy of
# such a function for the whole program, and if it kept this one, a CPU without the instructions would crash.
set -eu
symbols=$(nm -C "$@") || { echo "nm failed on: $*"; exit 2; }
if printf '%s\n' "$symbols" | grep -E ' [WVu] '; then
  echo "shared symbols above; make those functions static or always inlined"
  exit 1
fi
printf '%s\n' "$symbols" | grep -q ' T ' || { echo "no code in: $*"; exit 2; }
