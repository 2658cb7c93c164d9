// Dense layers on fp32 products. CPUs without bf16 arithmetic compute bf16 products at a fifth of the fp32
// rate (oneDNN 2.6 emulates them, and does not support f16), so 16-bit operands are converted to fp32 block
// by block: the same products, accumulated in fp32, each result rounded once. If bf16_products_pay(),
// products of bf16 operands are computed without conversion.
#include <algorithm>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/workspace.h"

namespace shardscope::kernels::cpu {
namespace {

/// Rows of activations converted at a time, and the widest strip of a converted weight: bounds the scratch (a
/// vocabulary of 50 000 would otherwise need another copy of the table) and keeps each block in cache while
/// it is used.
constexpr std::int64_t kRowBlock = 512;
constexpr std::int64_t kWeightFloats = std::int64_t{1} << 21;

/// n floats from element `offset`: in place if stored as floats, else converted into the slot. The pointer
/// into the slot is valid until the slot's next use.
const float* floats(Slot slot, ConstPtr p, std::int64_t offset, std::int64_t n) {
  if (p.type == DType::f32) return static_cast<const float*>(p.data) + offset;
  float* buffer = workspace_floats(slot, n);
  vector_kernels().cast(buffer, DType::f32, at(p.data, size_of(p.type), offset), p.type, n);
  return buffer;
}

/// Whether op(a) op(b) into `to` is computed from bf16 operands directly. Depends on the types only, not on
/// the shape.
bool stays_bf16(ConstPtr a, ConstPtr b, Ptr to) {
  return a.type == DType::bf16 && b.type == DType::bf16 && to.type != DType::f16 && bf16_products_pay();
}

/// to[m,n] (+)= op(a)[m,k] op(b)[k,n] (+ bias[n]) on whole bf16 arrays. No conversion, no strips: the
/// operands take half the memory of floats.
void multiply_bf16(int threads, Ptr to, ConstPtr a, Trans trans_a, ConstPtr b, Trans trans_b, std::int64_t m,
                   std::int64_t n, std::int64_t k, bool add, const float* bias = nullptr) {
  const Gemm g{.trans_a = trans_a,
               .trans_b = trans_b,
               .m = m,
               .n = n,
               .k = k,
               .lda = trans_a == Trans::no ? k : m,
               .ldb = trans_b == Trans::no ? n : k,
               .ldc = n,
               .add = add,
               .threads = threads};
  gemm_bf16(g, static_cast<const std::uint16_t*>(a.data), static_cast<const std::uint16_t*>(b.data), to,
            bias);
}

/// Rows of a float block, plus those of `onto` if it has data, into a 16-bit array; both of leading dimension
/// `block` (rows, cols) is dense. The sum of both is fp32 and rounded once; `onto` may be `to`.
/// ld and from element `offset` on.
void put_rows(Ptr to, ConstPtr onto, std::int64_t offset, const float* block, std::int64_t rows,
              std::int64_t cols, std::int64_t ld) {
  const VectorKernels& kernels = vector_kernels();
  const std::size_t bytes = size_of(to.type);
  // Contiguous rows are one long row: one call.
  if (cols == ld) {
    cols *= rows;
    rows = 1;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    void* dst = at(to.data, bytes, offset + r * ld);
    if (onto.data == nullptr) {
      kernels.cast(dst, to.type, block + r * cols, DType::f32, cols);
    } else {
      kernels.add(dst, to.type, at(onto.data, size_of(onto.type), offset + r * ld), onto.type,
                  block + r * cols, DType::f32, cols);
    }
  }
}
/// Element `offset` of an array of floats, or null.
const float* at_float(ConstPtr p, std::int64_t offset) {
  return p.data == nullptr ? nullptr : static_cast<const float*>(p.data) + offset;
}

/// The operand to which a result is added.
ConstPtr before(Ptr to, Write write) { return write == Write::add ? ConstPtr(to) : ConstPtr(); }

/// dw; with row_sums also adds the column sums of dy to them (not if stays_bf16()).
void weight_gradient(int threads, Ptr dw, float* row_sums, ConstPtr dy, ConstPtr x, std::int64_t N,
                     std::int64_t in, std::int64_t out, Write write) {
  if (N != 0 && stays_bf16(dy, x, dw)) {
    multiply_bf16(threads, dw, dy, Trans::yes, x, Trans::no, out, in, N, write == Write::add);
    return;
  }
  // in_place: dw is fp32 and the product is added to it directly. direct: nothing is converted, so one
  // product covers all N rows.
  const bool in_place = dw.type == DType::f32;
  const bool direct = dy.type == DType::f32 && x.type == DType::f32;
  // Strips of `out` bound the fp32 block of a 16-bit dw; rows of activations are converted block by block and
  // summed in fp32, in order.
  const std::int64_t out_block =
      in_place ? out : std::min(out, std::max<std::int64_t>(kWeightFloats / in, 16));
  // Rows are this product's depth: up to 2048 are converted at a time.
  const std::int64_t row_block = direct ? N : std::min<std::int64_t>(N, 4 * kRowBlock);
  for (std::int64_t o = 0; o < out; o += out_block) {
    // result (rows_of_w, in) += grad (depth, rows_of_w)^T input (depth, in), row block by row block.
    const std::int64_t rows_of_w = std::min(out_block, out - o);
    float* result =
        in_place ? static_cast<float*>(dw.data) + o * in : workspace_floats(Slot::matrix_c, rows_of_w * in);
    // A sum over no rows is 0, which no product below sets.
    if (N == 0 && (!in_place || write == Write::set)) std::fill_n(result, rows_of_w * in, 0.0F);
    for (std::int64_t r = 0; r < N; r += row_block) {
      const std::int64_t depth = std::min(row_block, N - r);
      const float* grad = floats(Slot::matrix_a, dy, r * out, depth * out);
      const float* input = floats(Slot::matrix_b, x, r * in, depth * in);
      const Gemm g{.trans_a = Trans::yes,
                   .m = rows_of_w,
                   .n = in,
                   .k = depth,
                   .lda = out,
                   .ldb = in,
                   .ldc = in,
                   .add = r > 0 || (in_place && write == Write::add),
                   .threads = threads,
                   .row_sums = row_sums == nullptr ? nullptr : row_sums + o};
      gemm(g, grad + o, input, result, nullptr);
    }
    // The 16-bit result is rounded once, after all rows and dw's old value.
    if (!in_place) put_rows(dw, before(dw, write), o * in, result, rows_of_w, in, in);
  }
}

}  // namespace

void linear_forward(int threads, Ptr y, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                    std::int64_t in, std::int64_t out, ConstPtr onto) {
  if (N == 0 || out == 0) return;
  const float* b = bias.data == nullptr ? nullptr : floats(Slot::parameters, bias, 0, out);
  if (in != 0 && stays_bf16(x, w, y) && (onto.data == nullptr || onto.type == y.type)) {
    // oneDNN's sum adds to the result's old value: `onto` is copied there first.
    if (onto.data != nullptr && onto.data != y.data) {
      vector_kernels().cast(y.data, y.type, onto.data, onto.type, N * out);
    }
    multiply_bf16(threads, y, x, Trans::no, w, Trans::yes, N, out, in, onto.data != nullptr, b);
    return;
  }
  // x and y are floats: one block of all rows.
  const bool direct = x.type == DType::f32 && y.type == DType::f32;
  const std::int64_t row_block = direct ? N : std::min(N, kRowBlock);
  const std::int64_t out_block =
      w.type == DType::f32
          ? out
          : std::min(out, std::max<std::int64_t>(kWeightFloats / std::max<std::int64_t>(in, 1), 16));
  for (std::int64_t o = 0; o < out; o += out_block) {
    // A strip of `cols` outputs: its weights are converted once for all row blocks.
    const std::int64_t cols = std::min(out_block, out - o);
    const float* weight = floats(Slot::matrix_b, w, o * in, cols * in);
    for (std::int64_t r = 0; r < N; r += row_block) {
      // result (rows, cols) = input (rows, in) weight (cols, in)^T + bias. In place it is a part of y, with
      // leading dimension `out`; else it is dense and put_rows() rounds it.
      const std::int64_t rows = std::min(row_block, N - r);
      const float* input = floats(Slot::matrix_a, x, r * in, rows * in);
      const bool in_place = y.type == DType::f32;
      float* result = in_place ? static_cast<float*>(y.data) + r * out + o
                               : workspace_floats(Slot::matrix_c, rows * cols);
      const Gemm g{.trans_b = Trans::yes,
                   .m = rows,
                   .n = cols,
                   .k = in,
                   .lda = in,
                   .ldb = in,
                   .ldc = in_place ? out : cols,
                   .threads = threads,
                   .finish = in_place && onto.data != nullptr ? Finish::add : Finish::none,
                   .operand = in_place ? at_float(onto, r * out + o) : nullptr,
                   .ld_beside = out};
      gemm(g, input, weight, result, b == nullptr ? nullptr : b + o);
      if (!in_place) put_rows(y, onto, r * out + o, result, rows, cols, out);
    }
  }
}

void linear_backward_input(int threads, Ptr dx, ConstPtr dy, ConstPtr w, std::int64_t N, std::int64_t in,
                           std::int64_t out, Write write) {
  if (dx.data == nullptr || N == 0 || in == 0) return;
  if (out != 0 && stays_bf16(dy, w, dx)) {
    multiply_bf16(threads, dx, dy, Trans::no, w, Trans::no, N, in, out, write == Write::add);
    return;
  }
  // Adding: the fp32 product is added to dx directly; a 16-bit dx is added to the complete sum (put_rows).
  const bool in_place = dx.type == DType::f32;
  const std::int64_t row_block = in_place && dy.type == DType::f32 ? N : std::min(N, kRowBlock);
  // Strips of `out`, summed in order: fp32 partial sums, rounded at the end.
  const std::int64_t out_block =
      w.type == DType::f32 ? out : std::min(out, std::max<std::int64_t>(kWeightFloats / in, 16));
  // With several strips the converted weights are the larger operand, so rows go in one block unless they are
  // many.
  for (std::int64_t r = 0; r < N; r += row_block) {
    const std::int64_t rows = std::min(row_block, N - r);
    const float* grad = floats(Slot::matrix_a, dy, r * out, rows * out);
    float* result =
        in_place ? static_cast<float*>(dx.data) + r * in : workspace_floats(Slot::matrix_c, rows * in);
    for (std::int64_t o = 0; o < out; o += out_block) {
      const std::int64_t depth = std::min(out_block, out - o);
      // result (rows, in) += grad (rows, depth) weight (depth, in), strip by strip.
      const bool whole = out_block >= out;
      // A single strip is converted once for all row blocks.
      const float* weight = whole && r > 0 && w.type != DType::f32
                                ? workspace_floats(Slot::matrix_b, depth * in)
                                : floats(Slot::matrix_b, w, o * in, depth * in);
      const Gemm g{.m = rows,
                   .n = in,
                   .k = depth,
                   .lda = out,
                   .ldb = in,
                   .ldc = in,
                   .add = o > 0 || (in_place && write == Write::add),
                   .threads = threads};
      gemm(g, grad + o, weight, result, nullptr);
    }
    if (!in_place) put_rows(dx, before(dx, write), r * in, result, rows, in, in);
  }
}

// fp32 only (dispatch.cpp). slope[N,out] is the product's c: first the sums, then overwritten by the GELU's
// slope; y[N,out] is the activation.
void linear_gelu_forward(int threads, Ptr y, Ptr slope, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                         std::int64_t in, std::int64_t out) {
  if (N == 0) return;
  const Gemm g{.trans_b = Trans::yes,
               .m = N,
               .n = out,
               .k = in,
               .lda = in,
               .ldb = in,
               .ldc = out,
               .threads = threads,
               .finish = Finish::gelu,
               .activation = static_cast<float*>(y.data),
               .ld_beside = out};
  gemm(g, static_cast<const float*>(x.data), static_cast<const float*>(w.data),
       static_cast<float*>(slope.data), static_cast<const float*>(bias.data));
}

// dx = (dy w) * slope, element-wise while the sums are in cache. fp32 only.
void linear_gelu_backward_input(int threads, Ptr dx, ConstPtr dy, ConstPtr w, ConstPtr slope, std::int64_t N,
                                std::int64_t in, std::int64_t out) {
  if (N == 0) return;
  const Gemm g{.m = N,
               .n = in,
               .k = out,
               .lda = out,
               .ldb = in,
               .ldc = in,
               .threads = threads,
               .finish = Finish::multiply,
               .operand = static_cast<const float*>(slope.data),
               .ld_beside = in};
  gemm(g, static_cast<const float*>(dy.data), static_cast<const float*>(w.data), static_cast<float*>(dx.data),
       nullptr);
}

// dw (out, in) and dbias (out), sums over the N rows.
void linear_backward_weight(int threads, Ptr dw, Ptr dbias, ConstPtr dy, ConstPtr x, std::int64_t N,
                            std::int64_t in, std::int64_t out, Write write) {
  const VectorKernels& kernels = vector_kernels();
  const bool has_product = dw.data != nullptr && out != 0 && in != 0 && N != 0;
  // The product reads all of dy anyway, so it can add up its columns.
  const bool in_passing = has_product && gemm_adds_row_sums() && !stays_bf16(dy, x, dw);
  float* sums = dbias.data == nullptr ? nullptr : workspace_floats(Slot::columns, 3 * out);
  if (sums != nullptr) {
    // Three rows of `out` floats: the sums, a group's sums, a converted row of dy.
    std::fill_n(sums, out, 0.0F);
    if (!in_passing) kernels.column_sums(sums, sums + out, dy.data, dy.type, N, out, sums + 2 * out);
  }
  if (dw.data != nullptr && out != 0 && in != 0) {
    weight_gradient(threads, dw, in_passing ? sums : nullptr, dy, x, N, in, out, write);
  }
  if (sums != nullptr) put_rows(dbias, before(dbias, write), 0, sums, 1, out, out);
}

}  // namespace shardscope::kernels::cpu
