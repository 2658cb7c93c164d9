#include <cstring>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace shardscope::kernels::cpu {
namespace {

/// Elements below which a second thread does not pay off, and the unit of partitioning (whole cache
/// lines).
constexpr std::int64_t kLeast = 1 << 16;
constexpr std::int64_t kUnit = 1024;

void* at(Ptr p, std::int64_t i) { return cpu::at(p.data, size_of(p.type), i); }
const void* at(ConstPtr p, std::int64_t i) { return cpu::at(p.data, size_of(p.type), i); }

// body(first element, elements) on each thread's part. An element's result does not depend on its part
// ([Note: body and tail] in simd/vec.h).
template <class Body>
void ranges(int threads, std::int64_t n, const Body& body) {
  parallel_ranges(threads, n, kUnit, kLeast,
                  [&](std::int64_t begin, std::int64_t end, int) { body(begin, end - begin); });
}

}  // namespace

// In all of these `at` offsets each array to the part's first element, by its element size.
void gelu_forward(int threads, Ptr y, ConstPtr x, std::int64_t n) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t count) {
    vector_kernels().gelu_forward(at(y, i), y.type, at(x, i), x.type, count);
  });
}

void gelu_backward(int threads, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t count) {
    vector_kernels().gelu_backward(at(dx, i), dx.type, at(dy, i), dy.type, at(x, i), x.type, count);
  });
}

void gelu_backward_slope(int threads, Ptr dx, ConstPtr dy, ConstPtr slope, std::int64_t n) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t count) {
    // Forward kept the slope: fp32 only (dispatch.cpp).
    vector_kernels().multiply(static_cast<float*>(dx.data) + i, static_cast<const float*>(dy.data) + i,
                              static_cast<const float*>(slope.data) + i, count);
  });
}

void relu_forward(int threads, Ptr y, ConstPtr x, std::int64_t n) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t count) {
    vector_kernels().relu_forward(at(y, i), y.type, at(x, i), x.type, count);
  });
}

void relu_backward(int threads, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t count) {
    vector_kernels().relu_backward(at(dx, i), dx.type, at(dy, i), dy.type, at(x, i), x.type, count);
  });
}

void add(int threads, Ptr y, ConstPtr a, ConstPtr b, std::int64_t n) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t count) {
    vector_kernels().add(at(y, i), y.type, at(a, i), a.type, at(b, i), b.type, count);
  });
}

void cast(int threads, Ptr dst, ConstPtr src, std::int64_t n) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t count) {
    vector_kernels().cast(at(dst, i), dst.type, at(src, i), src.type, count);
  });
}

void fill_zero(void* data, std::size_t bytes) {
  if (bytes != 0) std::memset(data, 0, bytes);
}

void scale(int threads, Ptr x, float factor, std::int64_t n) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t count) {
    vector_kernels().scale(at(x, i), x.type, factor, count);
  });
}

// In place on the first operand: each element is read before it is written.
void accumulate(int threads, Ptr dst, ConstPtr src, std::int64_t n) { add(threads, dst, dst, src, n); }

void reduce_sum(int threads, Ptr out, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t n, float factor) {
  ranges(threads, n, [&](std::int64_t i, std::int64_t part) {
    // Parallel over elements, not inputs: each sum keeps its order of inputs.
    vector_kernels().reduce_sum(at(out, i), out.type, inputs, count, type, i, part, factor);
  });
}

}  // namespace shardscope::kernels::cpu
