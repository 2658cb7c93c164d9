// What kernels do, as a cost model sees it: arithmetic and the memory it needs. With Backend::cost every
// operation of ops.h checks its arguments and then adds its work to the WorkMeter of `exec`, in place of
// computing.
#pragma once

#include "kernels/types.h"

namespace shardscope::kernels {

/// A matrix product [rows, depth] x [depth, columns]; all 0: none, or a fused attention's.
struct ProductShape {
  double rows = 0, columns = 0, depth = 0;
};

/// One kernel. `bytes`: what must pass between memory and processor at least once, every operand read and
/// every result written; a kernel that reads an operand twice moves more.
struct Work {
  double matrix_flops = 0;  ///< of matrix products, 2 for each multiply-add
  double bytes = 0;
  DType type = DType::f32;  ///< of the products' operands
  bool attention = false;   ///< products of a fused attention, which reach another part of the peak
  ProductShape product{};
};

class WorkMeter {
 public:
  virtual ~WorkMeter() = default;
  virtual void add(const Work& work) = 0;
};

}  // namespace shardscope::kernels
