#!/usr/bin/env bash
# Installs the C interface into an empty folder and builds the example against that, as a stranger would.
#   install_test.sh CMAKE BUILD_FOLDER C_COMPILER EXAMPLE
set -euo pipefail

cmake=$1 build=$2 compiler=$3 example=$4
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
"$cmake" --install "$build" --component c_api --prefix "$prefix" >/dev/null
library=$(find "$prefix" -name 'libshardscope.so')
[[ -n $library && -f $prefix/include/shardscope/shardscope.h ]] || { find "$prefix"; exit 1; }
packages=$(dirname "$(find "$prefix" -name shardscope.pc)")
flags=(-I"$prefix/include" -L"$(dirname "$library")" -lshardscope)
if command -v pkg-config >/dev/null; then
  read -ra flags <<<"$(PKG_CONFIG_PATH=$packages pkg-config --cflags --libs shardscope)"
fi
"$compiler" -std=c99 -pedantic -Wall -Wextra -Werror "$example" "${flags[@]}" -o "$prefix/example"
# Without a collector: it plays to the end and nothing waits for anybody.
LD_LIBRARY_PATH=$(dirname "$library") "$prefix/example" 0 1 ipc:///nowhere/that/exists 1 | grep -q '^0 events dropped, 0 invalid'
echo installed, built and run
