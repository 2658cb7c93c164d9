// The matrix products of a context: cuBLASLt's handle, and for each shape the algorithm it was found to be
// best with, so that the heuristic is asked once.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "kernels/cuda/context.h"

namespace shardscope::kernels::cuda {

struct Context::Products {
  Products();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Sizes, transpositions, types, epilogue and alignments of a product.
  /// All that the heuristic's answer depends on; packed by linear.cpp.
  using Key = std::array<std::int64_t, 9>;
  /// False: cuBLASLt has no algorithm for it, and the second member says nothing. Not locked: a context, like
  /// its stream, is used by one thread at a time.
  std::map<Key, std::pair<bool, cublasLtMatmulAlgo_t>> chosen;
  cublasLtHandle_t handle = nullptr;
};

}  // namespace shardscope::kernels::cuda
