// Table lookup and its gradient. The gradient of a row is the sum over the positions that read it, in their
// order, in fp32 and rounded once: a stable counting sort first groups the positions by row. Adding each row
// of dy directly would round a 16-bit table once per position.
#include <algorithm>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/workspace.h"

namespace shardscope::kernels::cpu {

void embedding_forward(Ptr y, ConstPtr table, const std::int32_t* index, std::int64_t N, std::int64_t C,
                       Write write) {
  const VectorKernels& kernels = vector_kernels();
  for (std::int64_t i = 0; i < N; ++i) {
    void* to = at(y.data, size_of(y.type), i * C);
    const void* row = at(table.data, size_of(table.type), index[i] * C);
    if (write == Write::set) {
      kernels.cast(to, y.type, row, table.type, C);
    } else {
      kernels.add(to, y.type, to, y.type, row, table.type, C);
    }
  }
}

void embedding_backward(Ptr dtable, ConstPtr dy, const std::int32_t* index, std::int64_t N, std::int64_t rows,
                        std::int64_t C, Write write) {
  const VectorKernels& kernels = vector_kernels();
  if (write == Write::set) fill_zero(dtable.data, static_cast<std::size_t>(rows * C) * size_of(dtable.type));
  // int64: start[rows + 1], position[N].
  auto* start = static_cast<std::int64_t*>(
      workspace(Slot::index, static_cast<std::size_t>(rows + 1 + N) * sizeof(std::int64_t)));
  std::int64_t* position = start + rows + 1;
  std::fill_n(start, rows + 1, 0);
  // start[r + 1] counts row r, then the prefix sum makes start[r] the first place of row r.
  for (std::int64_t i = 0; i < N; ++i) ++start[index[i] + 1];
  for (std::int64_t r = 0; r < rows; ++r) start[r + 1] += start[r];
  // Ascending i keeps the positions of a row in order (stable).
  for (std::int64_t i = 0; i < N; ++i) position[start[index[i]]++] = i;  // start[r] ends as the end of row r

  // A 16-bit row is summed here, an fp32 row in the table itself; both start from the row's old value.
  float* sum = workspace_floats(Slot::row, C);
  std::int64_t next = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t end = start[r];
    // No position reads this row: its gradient is unchanged.
    if (next == end) continue;
    void* to = at(dtable.data, size_of(dtable.type), r * C);
    float* total = dtable.type == DType::f32 ? static_cast<float*>(to) : sum;
    if (dtable.type != DType::f32) kernels.cast(sum, DType::f32, to, dtable.type, C);
    for (; next < end; ++next) {
      kernels.add(total, DType::f32, total, DType::f32, at(dy.data, size_of(dy.type), position[next] * C),
                  dy.type, C);
    }
    if (dtable.type != DType::f32) kernels.cast(to, dtable.type, sum, DType::f32, C);
  }
}

}  // namespace shardscope::kernels::cpu
