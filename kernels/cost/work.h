// The work of each operation of ops.h: flops and bytes from shapes. Element-wise arithmetic is not counted:
// it always takes less time than its memory traffic.
#pragma once

#include "kernels/columns.h"
#include "kernels/cost.h"
#include "kernels/ops.h"

namespace shardscope::kernels::cost {

[[nodiscard]] inline double bytes_of(DType type, double elems) noexcept {
  return elems * static_cast<double>(size_of(type));
}
/// Bytes of a result of `elems`; with Write::add it is read first.
[[nodiscard]] inline double result_bytes(DType type, double elems, Write write) noexcept {
  return bytes_of(type, elems) * (write == Write::add ? 2 : 1);
}

[[nodiscard]] inline Work linear_forward(DType type, double N, double in, double out, bool bias,
                                         Write write) noexcept {
  return {2 * N * in * out,
          bytes_of(type, N * in + in * out + (bias ? out : 0)) + result_bytes(type, N * out, write),
          type,
          false,
          {N, out, in}};
}
[[nodiscard]] inline Work linear_backward_input(DType type, double N, double in, double out,
                                                Write write) noexcept {
  return {2 * N * in * out,
          bytes_of(type, N * out + in * out) + result_bytes(type, N * in, write),
          type,
          false,
          {N, in, out}};
}
[[nodiscard]] inline Work linear_backward_weight(DType type, DType gradient, double N, double in, double out,
                                                 bool bias, Write write) noexcept {
  return {2 * N * in * out,
          bytes_of(type, N * in + N * out) + result_bytes(gradient, in * out + (bias ? out : 0), write),
          type,
          false,
          {out, in, N}};
}
/// Causal: half of the T x T scores. Forward has two products of B*T*T*C multiply-adds before that half.
[[nodiscard]] inline Work attention_forward(DType type, double B, double T, double C, double H) noexcept {
  return {2 * B * T * T * C, bytes_of(type, 4 * B * T * C) + 4 * B * H * T, type, true};
}
/// Five products: the scores recomputed, and the gradients of probabilities, values, queries and keys.
[[nodiscard]] inline Work attention_backward(DType type, double B, double T, double C, double H) noexcept {
  return {5 * B * T * T * C, bytes_of(type, 8 * B * T * C) + 4 * B * H * T, type, true};
}
[[nodiscard]] inline Work memory_only(double bytes) noexcept { return {0, bytes, DType::f32}; }

/// Work of copying `count` columns and their indices; in a part of incomplete rows a column may have one
/// element more or less.
[[nodiscard]] inline Work moved_columns(DType type, const MatrixPart& part, double count) noexcept {
  const double elems = static_cast<double>(part.elems) * count / static_cast<double>(part.columns);
  return memory_only(bytes_of(type, 2 * elems) + 4 * count);
}

/// Adds `work` to the meter if `exec` is Backend::cost, where `exec.meter` is not null. True: the caller
/// returns without computing.
[[nodiscard]] inline bool metered(const Exec& exec, const Work& work) {
  if (exec.backend != Backend::cost) return false;
  exec.meter->add(work);
  return true;
}

}  // namespace shardscope::kernels::cost
