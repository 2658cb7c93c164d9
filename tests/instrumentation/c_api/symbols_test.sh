#!/usr/bin/env bash
# The shared library exports exactly what its headers declare, every symbol with its version, under a file
# name that carries the interface's version.
#   symbols_test.sh LIBRARY HEADER_FOLDER
set -euo pipefail

library=$1 headers=$2
fail() { echo "symbols_test: $*" >&2; exit 1; }

exported=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sort)
[[ -n $exported ]] || fail "$library exports nothing"
unversioned=$(grep -v '@@SHARDSCOPE_[0-9]' <<<"$exported" || true)
[[ -z $unversioned ]] || fail "exported without a version: $unversioned"

# A version that was released is closed: what is added has a version of its own.
[[ $(grep -c '@@SHARDSCOPE_1$' <<<"$exported") == 20 ]] || fail "SHARDSCOPE_1 is not the 20 symbols it was"

declared=$(sed -n 's/^SHARDSCOPE_API .*\b\(shardscope_[a-z_]*\)(.*/\1/p' "$headers"/*.h | sort)
names=$(sed 's/@@.*//' <<<"$exported")
diff <(echo "$declared") <(echo "$names") || fail "declared (<) and exported (>) differ"

readelf -d "$library" | grep -q 'SONAME.*\[libshardscope\.so\.1\]' || fail "the SONAME is not libshardscope.so.1"
echo "$(wc -l <<<"$names") symbols, all versioned"
