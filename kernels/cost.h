// Cost model of kernels: their arithmetic and memory traffic. With Backend::cost every operation
// of ops.h checks its arguments and adds its work to the WorkMeter of `exec` instead of
// computing.
#pragma once

#include "kernels/types.h"

namespace shardscope::kernels {

/// A matrix product [rows, depth] x [depth, columns]; all 0: no product, or fused attention.
struct ProductShape {
  double rows = 0, columns = 0, depth = 0;
};

/// One kernel. `bytes`: lower bound of the traffic between memory and processor: every operand read once and
/// every result written once; a kernel that reads an operand twice transfers more.
struct Work {
  double matrix_flops = 0;  ///< of matrix products, 2 per multiply-add
  double bytes = 0;
  DType type = DType::f32;  ///< of the products' operands
  bool attention = false;   ///< products of fused attention, which reach a different fraction of the peak
  ProductShape product{};
};

class WorkMeter {
 public:
  virtual ~WorkMeter() = default;
  virtual void add(const Work& work) = 0;
};

}  // namespace shardscope::kernels
