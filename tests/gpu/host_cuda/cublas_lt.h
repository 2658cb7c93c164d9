// What tests ask of the cuBLASLt of host_cuda (cublas_lt.cpp).
#pragma once

#include <cublasLt.h>

#include <atomic>
#include <cstdint>

namespace shardscope::host_cuda {

/// Products with this epilogue that were queued so far.
[[nodiscard]] std::int64_t products_with(cublasLtEpilogue_t epilogue);
/// Number of queries so far for products that the manual forbids.
[[nodiscard]] std::int64_t forbidden_products();

/// While set, the heuristic finds no algorithm for epilogues with a GELU, as for types that have none.
inline std::atomic<bool> no_gelu_algorithm = false;

}  // namespace shardscope::host_cuda
