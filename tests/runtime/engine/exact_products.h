// Matrix products that are the same on every CPU while this lives; other tests of the program have the fast
// ones.
#pragma once

#include "kernels/precision.h"

namespace shardscope::engine::testing {

class ExactProducts {
 public:
  ExactProducts() { kernels::set_matmul_precision(kernels::MatmulPrecision::highest); }
  ~ExactProducts() { kernels::set_matmul_precision(kernels::MatmulPrecision::native); }
  ExactProducts(const ExactProducts&) = delete;
  ExactProducts& operator=(const ExactProducts&) = delete;
};

}  // namespace shardscope::engine::testing
