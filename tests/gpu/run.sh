#!/usr/bin/env bash
# Runs everything that needs a GPU, on a machine that has one, without a network. Each part takes 10 minutes at most:
#   tests/gpu/run.sh                     the checks: every test of every program in a process of its own
#   tests/gpu/run.sh --sanitize          the kernels under compute-sanitizer
#   tests/gpu/run.sh --bench [MODELS]    speed beside PyTorch where it is installed (124m 350m), AdamW, GELU
# Programs built elsewhere are taken along in one file:
#   tests/gpu/run.sh --pack FILE.tar.gz          on the machine that built them (build/cuda/bin)
#   tests/gpu/run.sh --built FILE.tar.gz ...     on the machine with the GPU; --built FOLDER for a build folder's bin
# --limit SECONDS: nothing new is begun after that (570). --only PATTERN: names that match (a bash pattern).
# Exits with 0 if all went well, 1 if anything failed or was not run, 2 where there is no GPU or too old a driver.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
programs=(nvtx_test gpu_kernels_test gpu_device_test gpu_activity_test gpu_collectives_test gpu_engine_test)
benches=(bench_gpu_adamw bench_gpu_gelu)
built="" part=checks models=() limit=570 only="*" pack=""
usage() { sed -n '2,10p' "${BASH_SOURCE[0]}" >&2; exit 2; }
while [[ $# -gt 0 ]]; do
  case $1 in
    --built|--pack|--limit|--only) [[ $# -ge 2 ]] || usage; declare "${1#--}=$2"; shift 2 ;;
    --sanitize) part=sanitize; shift ;;
    --bench) part=bench; shift; while [[ $# -gt 0 && $1 != --* ]]; do models+=("$1"); shift; done ;;
    *) usage ;;
  esac
done

# ---- programs to take along -------------------------------------------------------------------------------------
if [[ -n $pack ]]; then
  from=${built:-build/cuda/bin}
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder/bin" "$folder/lib"
  for program in "${programs[@]}" "${benches[@]}" shardscope zero_train; do
    [[ -x $from/$program ]] || { echo "tests/gpu/run.sh: $from/$program is not built; cmake --build build/cuda --target gpu_tests ${benches[*]} shardscope zero_train" >&2; exit 1; }
    strip -o "$folder/bin/$program" "$from/$program"
    # What a machine with CUDA has anyway stays here: the C and C++ libraries, the driver's and the toolkit's.
    ldd "$from/$program" | awk '$3 ~ /^\// {print $3}'
  done | grep -vE '/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libcuda|libcudart|libcublas|libcublasLt|libnccl)[.-]' |
    sort -u | while read -r library; do cp -L "$library" "$folder/lib/"; done
  strip -o "$folder/bin/libnvtx_recorder.so" "$from/../tests/gpu/libnvtx_recorder.so"
  tar -C "$folder" -czf "$pack" bin lib
  echo "$pack: $(( $(stat -c %s "$pack") >> 20 )) MiB; run it with tests/gpu/run.sh --built $pack"
  exit 0
fi

# ---- the machine ------------------------------------------------------------------------------------------------
if ! nvidia-smi -L; then
  echo "tests/gpu/run.sh: no GPU here (nvidia-smi finds none); see docs/gpu-checks.md" >&2
  exit 2
fi
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
if [[ ${driver%%.*} -lt 580 ]]; then
  echo "tests/gpu/run.sh: the driver is $driver; CUDA 13 needs 580 or newer" >&2
  exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $built in
  "") bin=build/cuda/bin
    if [[ ! -x $bin/gpu_kernels_test ]]; then
      cmake --preset cuda && cmake --build build/cuda --target gpu_tests "${benches[@]}" programs -j || exit 1
    fi ;;
  *.tar.gz)
    tar -C "$work" -xzf "$built" || exit 1
    bin=$work/bin
    export LD_LIBRARY_PATH=$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NVTX_RECORDER=$bin/libnvtx_recorder.so ;;
  *) bin=$built
    [[ ! -e $bin/libnvtx_recorder.so ]] || export NVTX_RECORDER=$bin/libnvtx_recorder.so ;;
esac
# CUDA's libraries: where the linker looks, else in the toolkit, else in Python's packages.
places=(/usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib /usr/local/cuda/extras/CUPTI/lib64)
while read -r place; do places+=("$place"); done < <(python3 - 2>/dev/null <<'PYTHON'
import glob, sys
for folder in sys.path:
    for place in sorted(glob.glob(folder + "/nvidia/*/lib")):
        print(place)
PYTHON
)
missing=0
for library in libcudart.so.13 libcublasLt.so.13 libnccl.so.2 libcupti.so.13 libcudnn.so.9; do
  at=""
  IFS=: read -r -a ours <<<"${LD_LIBRARY_PATH:-}"
  for place in "${ours[@]}"; do [[ -z $at && -e $place/$library ]] && at=$place/$library; done
  [[ -z $at ]] && at=$(ldconfig -p | awk -v name="$library" '$1 == name {print $NF; exit}')
  if [[ -z $at ]]; then
    for place in "${places[@]}"; do
      [[ -e $place/$library ]] || continue
      at=$place/$library
      export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$place
      break
    done
  fi
  printf '%-20s %s\n' "$library" "${at:-MISSING}"
  [[ -n $at ]] || missing=1
done
[[ -e $bin/gpu_kernels_test ]] || { echo "tests/gpu/run.sh: $bin/gpu_kernels_test is not there" >&2; exit 1; }
for program in "$bin"/*; do
  [[ -x $program && ! -d $program ]] || continue
  lost=$(ldd "$program" 2>&1 | grep -E 'not found' | awk '{print $1 == "" ? $0 : $1}' | sort -u | tr '\n' ' ')
  [[ -z $lost ]] || { echo "$(basename "$program") cannot start, the machine lacks: $lost"; missing=1; }
done
[[ $missing == 0 ]] || echo "tests/gpu/run.sh: put what is missing where LD_LIBRARY_PATH points; going on with the rest"
echo "driver $driver, $(nproc) cores"

# Streams of ranks that share a process must not share the GPU's queues: one that waits would hold up another.
export CUDA_DEVICE_MAX_CONNECTIONS=32
export SHARDSCOPE_NEEDS_GPU=1  # a test that finds no GPU fails instead of being skipped
began=$SECONDS failed=0 table=()

# check NAME SECONDS COMMAND...: runs it for so long at most; a line for the table, its output where it fails, which is
# also what it returns.
check() {
  local name=$1 longest=$2 from=$SECONDS result=ok code=0
  shift 2
  # shellcheck disable=SC2254
  case $name in $only) ;; *) return 1 ;; esac
  local left=$((limit - (SECONDS - began)))
  if [[ $left -le 0 ]]; then
    result="not run"
  else
    timeout -k 5 $((left < longest ? left : longest)) "$@" >"$work/log" 2>&1
    code=$?
    if [[ $code == 124 || $code == 137 ]]; then
      result="TIMEOUT"
    elif [[ $code != 0 ]]; then
      result="FAILED ($code)"
    elif grep -q '^\[  SKIPPED \] [1-9]' "$work/log"; then
      result="SKIPPED"
    fi
  fi
  [[ $result == ok ]] || failed=$((failed + 1))
  table+=("$(printf '%-72s %-14s %5d s' "$name" "$result" $((SECONDS - from)))")
  echo "${table[-1]}"
  [[ $result == ok || $result == "not run" ]] || tail -n 30 "$work/log" | cut -c 1-300 | sed 's/^/    /'
  [[ $result == ok ]]
}

# tests_of PROGRAM: its tests' names, one a line.
tests_of() {
  timeout 60 "$bin/$1" --gtest_list_tests 2>/dev/null |
    awk '/^[^ ].*\.$|^[^ ].*\.  #/ {suite = $1} /^  / {print suite $1}'
}

case $part in
  checks)
    for program in "${programs[@]}"; do
      names=$(tests_of "$program")
      [[ -n $names ]] || check "$program" 60 "$bin/$program" --gtest_list_tests
      # A process each: after a kernel's fault nothing of the process's CUDA works any more.
      for name in $names; do
        loading=LAZY
        # Loading a kernel may wait for the whole GPU, which waits for a rank of the same process.
        [[ $program == gpu_collectives_test || $program == gpu_engine_test ]] && loading=EAGER
        check "$program $name" 120 env CUDA_MODULE_LOADING=$loading "$bin/$program" --gtest_filter="$name"
      done
    done ;;
  sanitize)
    if ! command -v compute-sanitizer >/dev/null; then
      echo "tests/gpu/run.sh: compute-sanitizer is not installed here" >&2
      exit 1
    fi
    # Products are the library's kernels, not ours.
    for tool in memcheck racecheck synccheck initcheck; do
      for name in $(tests_of gpu_kernels_test | grep -vE 'Linear|Product|Cudnn'); do
        check "$tool $name" 150 compute-sanitizer --tool "$tool" --error-exitcode 1 "$bin/gpu_kernels_test" \
          --gtest_filter="$name"
      done
    done ;;
  bench)
    for bench in "${benches[@]}"; do check "$bench" 120 "$bin/$bench" && cat "$work/log"; done
    for model in "${models[@]:-124m}"; do
      check "gpu_training $model" "$limit" python3 tests/bench/gpu_training.py --bin "$bin" --models "$model" \
        --limit $((limit - (SECONDS - began) - 20)) && cat "$work/log"
    done ;;
esac
echo
echo "check, result, time"
printf '%s\n' "${table[@]}"
echo "$((${#table[@]} - failed)) of ${#table[@]} well, in $((SECONDS - began)) s"
[[ $failed == 0 && ${#table[@]} -gt 0 ]]
