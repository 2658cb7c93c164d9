// The CUDA backend's operations, done by the CPU's on the streams of host_cuda.
#include <omp.h>

#include <cstring>
#include <tuple>
#include <vector>

#include "kernels/cpu/ops.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/ops.h"
#include "tests/gpu/host_cuda/runtime.h"

namespace shardscope::kernels::cuda {

struct Context::Products {};
struct Context::CudnnAttention {};
Context::Context(void* stream, void* workspace) : stream_(stream), workspace_(workspace) {}
Context::~Context() = default;

namespace {

/// Arguments as the device sees them.
struct Seen {
  const char* kernel;
  Ptr operator()(Ptr p) const { return {host_cuda::seen_by_device(p.data, kernel), p.type}; }
  ConstPtr operator()(ConstPtr p) const { return {host_cuda::seen_by_device(p.data, kernel), p.type}; }
  template <class T>
  T* operator()(T* p) const {
    return static_cast<T*>(host_cuda::seen_by_device(p, kernel));
  }
  ErrorFeedback operator()(ErrorFeedback e) const { return {(*this)(e.values), (*this)(e.scales), e.beta}; }
  std::vector<const void*> operator()(std::vector<const void*> pointers) const {
    for (const void*& p : pointers) p = (*this)(p);
    return pointers;
  }
  std::vector<Int4Source> operator()(std::vector<Int4Source> sources) const {
    for (Int4Source& source : sources) source = {(*this)(source.values), (*this)(source.scales)};
    return sources;
  }
  template <class T>
  T operator()(T value) const requires(std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                                       std::is_same_v<T, AdamW> || std::is_same_v<T, MatrixPart>) {
    return value;
  }
};

template <class F, class... A>
void queue(const Context& on, const char* kernel, F f, A... arguments) {
  const Seen seen{kernel};
  host_cuda::launch(static_cast<cudaStream_t>(on.stream()), kernel,
                    [f, all = std::tuple(seen(arguments)...)] {
                      omp_set_num_threads(1);
                      std::apply(f, all);
                    });
  check_launch(kernel);
}

}  // namespace

/// The CPU's `operation`, whose first arguments may be a number of threads.
#define SHARDSCOPE_QUEUE(operation, ...) \
  queue(                                 \
      on, #operation, [](const auto&... arguments) { cpu::operation(arguments...); }, __VA_ARGS__)

using i64 = std::int64_t;

void linear_forward(const Context& on, Ptr y, ConstPtr x, ConstPtr w, ConstPtr bias, i64 N, i64 in, i64 out,
                    ConstPtr onto) {
  SHARDSCOPE_QUEUE(linear_forward, 1, y, x, w, bias, N, in, out, onto);
}
void linear_backward_input(const Context& on, Ptr dx, ConstPtr dy, ConstPtr w, i64 N, i64 in, i64 out,
                           Write write) {
  SHARDSCOPE_QUEUE(linear_backward_input, 1, dx, dy, w, N, in, out, write);
}
void linear_backward_weight(const Context& on, Ptr dw, Ptr dbias, ConstPtr dy, ConstPtr x, i64 N, i64 in,
                            i64 out, Write write) {
  SHARDSCOPE_QUEUE(linear_backward_weight, 1, dw, dbias, dy, x, N, in, out, write);
}
void layer_norm_forward(const Context& on, Ptr y, float* mean, float* rstd, ConstPtr x, ConstPtr weight,
                        ConstPtr bias, i64 N, i64 C, float epsilon) {
  SHARDSCOPE_QUEUE(layer_norm_forward, 1, y, mean, rstd, x, weight, bias, N, C, epsilon);
}
void layer_norm_backward(const Context& on, Ptr dx, Ptr dweight, Ptr dbias, ConstPtr dy, ConstPtr x,
                         ConstPtr weight, const float* mean, const float* rstd, i64 N, i64 C, Write write_dx,
                         Write write_params) {
  SHARDSCOPE_QUEUE(layer_norm_backward, dx, dweight, dbias, dy, x, weight, mean, rstd, N, C, write_dx,
                   write_params);
}
void gelu_forward(const Context& on, Ptr y, ConstPtr x, i64 n) { SHARDSCOPE_QUEUE(gelu_forward, 1, y, x, n); }
void gelu_backward(const Context& on, Ptr dx, ConstPtr dy, ConstPtr x, i64 n) {
  SHARDSCOPE_QUEUE(gelu_backward, 1, dx, dy, x, n);
}
void linear_gelu_forward(const Context& on, Ptr y, Ptr kept, ConstPtr x, ConstPtr w, ConstPtr bias, i64 N,
                         i64 in, i64 out) {
  linear_forward(on, kept, x, w, bias, N, in, out, {});
  gelu_forward(on, y, kept, N * out);
}
void linear_gelu_backward_input(const Context& on, Ptr dx, ConstPtr dy, ConstPtr w, ConstPtr kept, i64 N,
                                i64 in, i64 out) {
  linear_backward_input(on, dx, dy, w, N, in, out, Write::set);
  gelu_backward(on, dx, dx, kept, N * in);
}
void relu_forward(const Context& on, Ptr y, ConstPtr x, i64 n) { SHARDSCOPE_QUEUE(relu_forward, 1, y, x, n); }
void relu_backward(const Context& on, Ptr dx, ConstPtr dy, ConstPtr x, i64 n) {
  SHARDSCOPE_QUEUE(relu_backward, 1, dx, dy, x, n);
}
void add(const Context& on, Ptr y, ConstPtr a, ConstPtr b, i64 n) { SHARDSCOPE_QUEUE(add, 1, y, a, b, n); }
void embedding_forward(const Context& on, Ptr y, ConstPtr table, const std::int32_t* index, i64 N, i64 C,
                       Write write) {
  SHARDSCOPE_QUEUE(embedding_forward, y, table, index, N, C, write);
}
void embedding_backward(const Context& on, Ptr dtable, ConstPtr dy, const std::int32_t* index, i64 N,
                        i64 rows, i64 C, Write write) {
  SHARDSCOPE_QUEUE(embedding_backward, dtable, dy, index, N, rows, C, write);
}

// The two backends ask for different scratch memory: the CPU's is made here.
void attention_forward(const Context& on, Ptr out, float* logsumexp, ConstPtr qkv, i64 B, i64 T, i64 C, i64 H,
                       void* /*scratch*/) {
  const auto run = [](const auto&... a) {
    const auto& [o, l, in, b, t, c, h] = std::tie(a...);
    std::vector<std::byte> room(cpu::attention_scratch_bytes(1, b, t, c, h));
    cpu::attention_forward(1, a..., room.data());
  };
  queue(on, "attention_forward", run, out, logsumexp, qkv, B, T, C, H);
}
void attention_backward(const Context& on, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                        const float* logsumexp, i64 B, i64 T, i64 C, i64 H, void* scratch) {
  const auto run = [](auto* ours, const auto&... a) {
    const auto& [to, g, o, in, l, b, t, c, h] = std::tie(a...);
    std::memset(ours, 0, static_cast<std::size_t>(b * h * t) * sizeof(float));  // all of it is there
    std::vector<std::byte> room(cpu::attention_scratch_bytes(1, b, t, c, h));
    cpu::attention_backward(1, a..., room.data());
  };
  queue(on, "attention_backward", run, static_cast<float*>(scratch), dqkv, dout, out, qkv, logsumexp, B, T, C,
        H);
}
std::size_t attention_scratch_bytes(const Context&, DType, i64 B, i64 T, i64, i64 H) {
  return static_cast<std::size_t>(B * H * T) * sizeof(float);
}

void cross_entropy(const Context& on, float* loss, Ptr logits, const std::int32_t* target, i64 N, i64 V,
                   float grad_scale, i64 ignored) {
  SHARDSCOPE_QUEUE(cross_entropy, loss, logits, target, N, V, grad_scale, ignored);
}
void mse(const Context& on, float* loss, Ptr dx, ConstPtr x, const float* target, i64 n, float grad_scale) {
  SHARDSCOPE_QUEUE(mse, loss, dx, x, target, n, grad_scale);
}
void adamw_step(const Context& on, float* master, float* m, float* v, Ptr param16, ConstPtr grad, i64 n,
                const AdamW& settings) {
  SHARDSCOPE_QUEUE(adamw_step, 1, master, m, v, param16, grad, n, settings);
}
void squared_norm(const Context& on, double* sum, std::uint32_t* bad, ConstPtr x, i64 n) {
  SHARDSCOPE_QUEUE(squared_norm, sum, bad, x, n);
}
void count_not_finite(const Context& on, NotFiniteCount* counts, ConstPtr x, i64 n) {
  SHARDSCOPE_QUEUE(count_not_finite, counts, x, n);
}
void cast(const Context& on, Ptr dst, ConstPtr src, i64 n) { SHARDSCOPE_QUEUE(cast, 1, dst, src, n); }
void fill_zero(const Context& on, void* data, std::size_t bytes) { SHARDSCOPE_QUEUE(fill_zero, data, bytes); }
void scale(const Context& on, Ptr x, float factor, i64 n) { SHARDSCOPE_QUEUE(scale, 1, x, factor, n); }
void accumulate(const Context& on, Ptr dst, ConstPtr src, i64 n) {
  SHARDSCOPE_QUEUE(accumulate, 1, dst, src, n);
}
void reduce_sum(const Context& on, Ptr out, const void* const* inputs, std::uint32_t count, DType type, i64 n,
                float factor) {
  const auto run = [](Ptr to, const std::vector<const void*>& from, DType t, i64 elems, float f) {
    cpu::reduce_sum(1, to, from.data(), static_cast<std::uint32_t>(from.size()), t, elems, f);
  };
  queue(on, "reduce_sum", run, out, std::vector<const void*>(inputs, inputs + count), type, n, factor);
}
void quantize_int8(const Context& on, std::int8_t* values, float* scales, ConstPtr x, i64 n,
                   i64 group_elems) {
  SHARDSCOPE_QUEUE(quantize_int8, 1, values, scales, x, n, group_elems);
}
void dequantize_int8(const Context& on, Ptr x, const std::int8_t* values, const float* scales, i64 n,
                     i64 group_elems) {
  SHARDSCOPE_QUEUE(dequantize_int8, 1, x, values, scales, n, group_elems);
}
void quantize_int4(const Context& on, std::uint8_t* values, float* scales, ConstPtr x, i64 n, i64 group_elems,
                   const ErrorFeedback& error) {
  SHARDSCOPE_QUEUE(quantize_int4, 1, values, scales, x, n, group_elems, error);
}
void requantize_int4(const Context& on, std::uint8_t* values, float* scales, const Int4Source* sources,
                     std::uint32_t count, i64 n, i64 group_elems, float factor, const ErrorFeedback& error) {
  const auto run = [](std::uint8_t* v, float* s, const std::vector<Int4Source>& from, i64 elems, i64 group,
                      float f, const ErrorFeedback& e) {
    cpu::requantize_int4(1, v, s, from.data(), static_cast<std::uint32_t>(from.size()), elems, group, f, e);
  };
  queue(on, "requantize_int4", run, values, scales, std::vector<Int4Source>(sources, sources + count), n,
        group_elems, factor, error);
}
void dequantize_sum_int4(const Context& on, Ptr x, const Int4Source* sources, std::uint32_t count, i64 n,
                         i64 group_elems, float factor) {
  const auto run = [](Ptr to, const std::vector<Int4Source>& from, i64 elems, i64 group, float f) {
    cpu::dequantize_sum_int4(1, to, from.data(), static_cast<std::uint32_t>(from.size()), elems, group, f);
  };
  queue(on, "dequantize_sum_int4", run, x, std::vector<Int4Source>(sources, sources + count), n, group_elems,
        factor);
}
void column_abs_sums(const Context& on, float* sums, ConstPtr x, const MatrixPart& part) {
  SHARDSCOPE_QUEUE(column_abs_sums, 1, sums, x, part);
}
void take_columns(const Context& on, Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  i64 count) {
  SHARDSCOPE_QUEUE(take_columns, dst, x, part, chosen, count);
}
void put_columns(const Context& on, Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 i64 count) {
  SHARDSCOPE_QUEUE(put_columns, x, src, part, chosen, count);
}

}  // namespace shardscope::kernels::cuda
