#include "kernels/cpu/gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <atomic>
#include <cstring>
#include <string>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/workspace.h"
#include "kernels/error.h"
#include "kernels/precision.h"

namespace shardscope::kernels::cpu {
namespace {

/// oneDNN's BLAS call rather than its matmul primitive: for fp32 it packs its operands, which is 3 to 10 %
/// faster at the shapes of a transformer than the primitive's blocked kernel, and there is no shape to
/// prepare.
void packed_product(const Gemm& g, const float* a, const float* b, float* c, const float* bias) {
  // The thread count of the calling thread; oneDNN starts no parallel region if it is 1.
  if (omp_get_max_threads() != g.threads) omp_set_num_threads(g.threads);
  bool add = g.add;
  if (bias != nullptr) {
    // Written before the product, which is added to it: the call has no bias argument.
    if (add) {
      vector_kernels().add_bias(c, bias, g.m, g.n, g.ldc);
    } else {
      for (std::int64_t i = 0; i < g.m; ++i) {
        std::memcpy(c + i * g.ldc, bias, static_cast<std::size_t>(g.n) * sizeof(float));
      }
      add = true;
    }
  }
  const dnnl_status_t status =
      dnnl_sgemm(g.trans_a == Trans::no ? 'N' : 'T', g.trans_b == Trans::no ? 'N' : 'T', g.m, g.n, g.k, 1.0F,
                 a, g.lda, b, g.ldb, add ? 1.0F : 0.0F, c, g.ldc);
  if (status != dnnl_success) {
    throw_bad_argument("gemm", "oneDNN refuses it (status " + std::to_string(status) +
                                   ") for m=" + std::to_string(g.m) + " n=" + std::to_string(g.n) +
                                   " k=" + std::to_string(g.k));
  }
}

/// Unit of rows per thread: a strip of a transposed operand (simd/gemm.cpp).
constexpr std::int64_t kRowUnit = 64;

// Set before the first product (precision.h), so no memory ordering is needed.
std::atomic<bool> g_sum_in_double{false};

// MatmulPrecision::highest: each element in double, k in ascending order, added to c's old value, the bias
// and the added operand; rounded once. Two elements of op(A) are a_row or a_col floats apart, so
// transposition only changes strides.
void sum_in_double(const Gemm& g, const float* a, const float* b, float* c, const float* bias) {
  const std::int64_t a_row = g.trans_a == Trans::no ? g.lda : 1;
  const std::int64_t a_col = g.trans_a == Trans::no ? 1 : g.lda;
  const std::int64_t b_row = g.trans_b == Trans::no ? g.ldb : 1;
  const std::int64_t b_col = g.trans_b == Trans::no ? 1 : g.ldb;
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.n; ++j) {
      float& out = c[i * g.ldc + j];
      double sum = g.add ? static_cast<double>(out) : 0.0;
      if (bias != nullptr) sum += static_cast<double>(bias[j]);
      if (g.finish == Finish::add) sum += static_cast<double>(g.operand[i * g.ld_beside + j]);
      for (std::int64_t k = 0; k < g.k; ++k) {
        sum += static_cast<double>(a[i * a_row + k * a_col]) * static_cast<double>(b[k * b_row + j * b_col]);
      }
      out = static_cast<float>(sum);
    }
  }
}

/// Applies `finish` to sums that are already in c.
void finish_rows(const Gemm& g, float* c) {
  const VectorKernels& kernels = vector_kernels();
  for (std::int64_t i = 0; i < g.m; ++i) {
    float* row = c + i * g.ldc;
    switch (g.finish) {
      case Finish::none:
        return;
      case Finish::add:
        kernels.add(row, DType::f32, row, DType::f32, g.operand + i * g.ld_beside, DType::f32, g.n);
        break;
      case Finish::multiply:
        kernels.multiply(row, row, g.operand + i * g.ld_beside, g.n);
        break;
      case Finish::gelu:
        // A single row, so its leading dimension does not matter.
        kernels.gelu_rows_slope(g.activation + i * g.ld_beside, 0, row, 0, 1, g.n);
        break;
    }
  }
}

}  // namespace

void gemm(const Gemm& shape, const float* a, const float* b, float* c, const float* bias) {
  if (sums_in_double()) {
    sum_in_double(shape, a, b, c, bias);
    // The added operand is in the sum already.
    if (shape.finish != Finish::add) finish_rows(shape, c);
    return;
  }
  const VectorKernels& kernels = vector_kernels();
  // The vector kernel requires m, n and k above 0 (isa.h).
  if (kernels.gemm == nullptr || shape.m <= 0 || shape.n <= 0 || shape.k <= 0) {
    packed_product(shape, a, b, c, bias);
    finish_rows(shape, c);
    return;
  }
  // Parallel over rows; the order of an element's sum does not depend on its part. Each thread packs B in its
  // own workspace: no barrier within a product.
  parallel_ranges(shape.threads, shape.m, kRowUnit, kRowUnit, [&](std::int64_t begin, std::int64_t end, int) {
    // Rows [begin, end) of op(A), C and the operands of C's shape.
    Gemm part = shape;
    part.m = end - begin;
    if (shape.row_sums != nullptr) part.row_sums = shape.row_sums + begin;
    if (shape.operand != nullptr) part.operand = shape.operand + begin * shape.ld_beside;
    if (shape.activation != nullptr) part.activation = shape.activation + begin * shape.ld_beside;
    kernels.gemm(part, a + begin * (shape.trans_a == Trans::no ? shape.lda : 1), b, c + begin * shape.ldc,
                 bias, workspace_floats(Slot::packed, kernels.gemm_scratch_floats()));
  });
}

bool gemm_adds_row_sums() noexcept { return vector_kernels().gemm != nullptr && !sums_in_double(); }

bool sums_in_double() noexcept { return g_sum_in_double.load(std::memory_order_relaxed); }

}  // namespace shardscope::kernels::cpu

namespace shardscope::kernels {

void set_matmul_precision(MatmulPrecision precision) noexcept {
  cpu::g_sum_in_double.store(precision == MatmulPrecision::highest);
}

}  // namespace shardscope::kernels
