#!/usr/bin/env bash
# Runs everything that needs a GPU, on a machine that has one. Builds first unless --built says where the programs are:
#   tests/gpu/run.sh [--built FOLDER] [--quick] [--bench]
# --quick leaves out compute-sanitizer; --bench runs the benchmarks instead of the checks. Prints a line for each check
# and exits with 1 if any failed, with 2 where there is no GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=build/cuda/bin
quick=0
bench=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --built) bin=$2; shift 2 ;;
    --quick) quick=1; shift ;;
    --bench) bench=1; shift ;;
    *) echo "usage: tests/gpu/run.sh [--built FOLDER] [--quick] [--bench]" >&2; exit 2 ;;
  esac
done
if ! nvidia-smi -L; then
  echo "tests/gpu/run.sh: no GPU here (nvidia-smi finds none); see docs/gpu-checks.md" >&2
  exit 2
fi
if [[ ! -x $bin/gpu_kernels_test ]]; then
  cmake --preset cuda && cmake --build build/cuda --target gpu_tests -j || exit 1
fi
if [[ $bench == 1 ]]; then
  cmake --preset cuda && cmake --build build/cuda --target bench_gpu_adamw programs -j || exit 1
  failed=0
  build/cuda/bin/bench_gpu_adamw || failed=1
  python3 tests/bench/gpu_training.py --build build/cuda || failed=1
  exit $failed
fi
# Streams of ranks that share a process must not share the GPU's queues: one that waits would hold up another.
export CUDA_DEVICE_MAX_CONNECTIONS=32
failed=0
check() {
  local name=$1
  shift
  if "$@" >"/tmp/gpu_check_$name.log" 2>&1; then
    echo "ok      $name"
  else
    failed=1
    echo "FAILED  $name"
    tail -n 40 "/tmp/gpu_check_$name.log"
  fi
}
check nvtx "$bin/nvtx_test"
check kernels "$bin/gpu_kernels_test"
check device "$bin/gpu_device_test"
check activity "$bin/gpu_activity_test"
check collectives "$bin/gpu_collectives_test"
check engine "$bin/gpu_engine_test"
if [[ $quick == 0 ]] && command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck synccheck; do
    check "sanitizer_$tool" compute-sanitizer --tool "$tool" --error-exitcode 1 "$bin/gpu_kernels_test"
  done
fi
exit $failed
