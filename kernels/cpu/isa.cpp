#include "kernels/cpu/isa.h"

#include <atomic>

#include "kernels/error.h"

namespace shardscope::kernels::cpu {
namespace {

const VectorKernels& table_of(Isa isa) noexcept {
  switch (isa) {
    case Isa::baseline:
      return baseline::kTable;
    case Isa::avx2:
      return avx2::kTable;
    case Isa::avx512:
      return avx512::kTable;
  }
  return baseline::kTable;
}

std::atomic<const VectorKernels*>& chosen() noexcept {
  // Relaxed order suffices: the tables are constants, complete before any thread starts.
  static std::atomic<const VectorKernels*> table{&table_of(best_isa())};
  return table;
}

}  // namespace

bool isa_supported(Isa isa) noexcept {
  // Both checks include that the operating system saves the registers. The flags match
  // kernels/CMakeLists.txt.
  __builtin_cpu_init();
  switch (isa) {
    case Isa::baseline:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
    case Isa::avx512:
      return isa_supported(Isa::avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq");
  }
  return false;
}

Isa best_isa() noexcept {
  if (isa_supported(Isa::avx512)) return Isa::avx512;
  if (isa_supported(Isa::avx2)) return Isa::avx2;
  return Isa::baseline;
}

// Called by every operation: one load.
const VectorKernels& vector_kernels() noexcept { return *chosen().load(std::memory_order_relaxed); }

void force_isa(Isa isa) {
  if (!isa_supported(isa)) {
    throw_bad_argument(
        "force_isa", std::string("this CPU cannot run ") + table_of(isa).name + "; ask isa_supported first");
  }
  chosen().store(&table_of(isa), std::memory_order_relaxed);
}

}  // namespace shardscope::kernels::cpu
