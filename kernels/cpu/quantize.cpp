#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace shardscope::kernels::cpu {
namespace {

constexpr std::int64_t kLeast = 1 << 15;  // elements worth a thread

/// Gives whole groups to each thread: body(first element, elements, first group). A group has one scale, and
/// with int4 an even number of elements, so no two threads write one byte.
template <class Body>
void group_ranges(int threads, std::int64_t n, std::int64_t group_elems, const Body& body) {
  parallel_ranges(threads, n, group_elems, kLeast, [&](std::int64_t begin, std::int64_t end, int) {
    body(begin, end - begin, begin / group_elems);
  });
}

// The error arrays at a thread's part.
ErrorFeedback advanced(const ErrorFeedback& error, std::int64_t elems, std::int64_t groups) {
  if (error.values == nullptr) return error;
  return {error.values + elems, error.scales + groups, error.beta};
}

}  // namespace

void quantize_int8(int threads, std::int8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems) {
  group_ranges(threads, n, group_elems, [&](std::int64_t at, std::int64_t count, std::int64_t group) {
    vector_kernels().quantize_int8(values + at, scales + group, cpu::at(x.data, size_of(x.type), at), x.type,
                                   count, group_elems);
  });
}

void dequantize_int8(int threads, Ptr x, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems) {
  group_ranges(threads, n, group_elems, [&](std::int64_t at, std::int64_t count, std::int64_t group) {
    vector_kernels().dequantize_int8(cpu::at(x.data, size_of(x.type), at), x.type, values + at,
                                     scales + group, count, group_elems);
  });
}

void quantize_int4(int threads, std::uint8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error) {
  group_ranges(threads, n, group_elems, [&](std::int64_t at, std::int64_t count, std::int64_t group) {
    // Two values in a byte; `at` is a multiple of group_elems, which is even.
    vector_kernels().quantize_int4(values + at / 2, scales + group, cpu::at(x.data, size_of(x.type), at),
                                   x.type, count, group_elems, advanced(error, at, group));
  });
}

void requantize_int4(int threads, std::uint8_t* values, float* scales, const Int4Source* sources,
                     std::uint32_t count, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error) {
  group_ranges(threads, n, group_elems, [&](std::int64_t at, std::int64_t elems, std::int64_t group) {
    // The sources are whole arrays, so the kernel receives `at` as an offset into them.
    vector_kernels().requantize_int4(values + at / 2, scales + group, sources, count, at, elems, group_elems,
                                     factor, advanced(error, at, group));
  });
}

void dequantize_sum_int4(int threads, Ptr x, const Int4Source* sources, std::uint32_t count, std::int64_t n,
                         std::int64_t group_elems, float factor) {
  group_ranges(threads, n, group_elems, [&](std::int64_t at, std::int64_t elems, std::int64_t) {
    vector_kernels().dequantize_sum_int4(cpu::at(x.data, size_of(x.type), at), x.type, sources, count, at,
                                         elems, group_elems, factor);
  });
}

}  // namespace shardscope::kernels::cpu
