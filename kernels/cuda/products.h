// The matrix products of a context: cuBLASLt's handle, and the best algorithm found for each shape, so that
// the heuristic is called once per shape.
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

  /// Sizes, transpositions, types, epilogue and alignments of a product: all inputs of the heuristic; packed
  /// by linear.cpp.
  using Key = std::array<std::int64_t, 9>;
  /// False: cuBLASLt has no algorithm for it, and the second member is unset. Not locked: a context, like its
  /// stream, is used by one thread at a time.
  std::map<Key, std::pair<bool, cublasLtMatmulAlgo_t>> chosen;
  cublasLtHandle_t handle = nullptr;
};

}  // namespace shardscope::kernels::cuda
