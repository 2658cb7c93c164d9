// The operations of ops.h: arguments that make no sense are refused, then the backend of `exec` runs.
//
// Every operation has the same steps, in this order:
//   1. sizes are checked, so that a modelled run (Backend::cost) refuses what a real one would;
//   2. Backend::cost adds the operation's work to the meter and returns, before any memory is touched;
//   3. CUDA launches on the context's stream and returns (SHARDSCOPE_ON_CUDA);
//   4. the CPU computes on the calling thread. cpu_threads() also refuses an unknown backend, and is
//      called for that where the operation takes no threads.
//
// Contents, for example indices, are the caller's to check.
#include <string>

#include "kernels/columns.h"
#include "kernels/cost/work.h"
#include "kernels/cpu/ops.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/ops.h"
#include "kernels/error.h"
#include "kernels/ops.h"

namespace shardscope::kernels {
namespace {

#if SHARDSCOPE_HAS_CUDA
constexpr bool kCudaBuilt = true;
#else
constexpr bool kCudaBuilt = false;
#endif

/// The context to launch on, if `exec` is CUDA and this build has it.
const cuda::Context* cuda_context(const Exec& exec, const char* kernel) {
  if (exec.backend != Backend::cuda) return nullptr;
  if (!kCudaBuilt) throw_no_cuda(kernel);
  if (exec.cuda == nullptr) throw_bad_argument(kernel, "a CUDA stream's Exec names no context");
  return exec.cuda;
}

/// Returns from the operation with cuda::call(context, ...) when `exec` is CUDA. Discarded in builds without
/// CUDA, which hold none of those functions.
#define SHARDSCOPE_ON_CUDA(operation, ...)                                       \
  if (const cuda::Context* on = cuda_context(exec, #operation); on != nullptr) { \
    if constexpr (kCudaBuilt) return cuda::operation(*on, __VA_ARGS__);          \
  }

/// Threads of the CPU backend.
int cpu_threads(const Exec& exec, const char* kernel) {
  switch (exec.backend) {
    case Backend::cpu:
      if (exec.threads < 1) {
        throw_bad_argument(kernel, "threads is " + std::to_string(exec.threads) + "; it must be at least 1");
      }
      return exec.threads;
    case Backend::cuda:
    case Backend::cost:  // metered before a backend is chosen
      break;
  }
  throw_bad_argument(kernel, "unknown backend " + std::to_string(static_cast<int>(exec.backend)));
}

// Work is counted in double: products of four sizes need not fit 64 bits.
double real(std::int64_t count) noexcept { return static_cast<double>(count); }

// `least`: 0 for numbers of rows or elements, which may be none, 1 for widths.
void check_size(const char* kernel, const char* name, std::int64_t value, std::int64_t least = 0) {
  if (value < least) {
    throw_bad_argument(kernel, std::string(name) + " is " + std::to_string(value) + "; it must be at least " +
                                   std::to_string(least));
  }
}

// B and T may be 0: an empty batch is no error.
void check_attention(const char* kernel, std::int64_t B, std::int64_t T, std::int64_t C, std::int64_t H) {
  check_size(kernel, "B", B);
  check_size(kernel, "T", T);
  check_size(kernel, "C", C, 1);
  check_size(kernel, "H", H, 1);
  if (C % H != 0) {
    throw_bad_argument(
        kernel, "width C=" + std::to_string(C) + " is not divisible by H=" + std::to_string(H) + " heads");
  }
}

/// Groups of quantized values; `unit`: values in a byte.
void check_groups(const char* kernel, std::int64_t n, std::int64_t group_elems, std::int64_t unit) {
  check_size(kernel, "n", n);
  check_size(kernel, "group_elems", group_elems, 1);
  if (n % unit == 0 && group_elems % unit == 0) return;
  throw_bad_argument(kernel, "n is " + std::to_string(n) + " and group_elems " + std::to_string(group_elems) +
                                 "; both must be even, two values share a byte");
}

// first_column is in [0, columns).
void check_part(const char* kernel, const MatrixPart& part) {
  if (part.elems < 0 || part.columns < 1 || part.first_column < 0 || part.first_column >= part.columns) {
    throw_bad_argument(kernel, std::to_string(part.elems) + " elements from column " +
                                   std::to_string(part.first_column) + " of " + std::to_string(part.columns) +
                                   "; the first column must be one of them");
  }
}

// Where a kernel is compiled for one type of all its tensors.
void check_same_type(const char* kernel, DType a, DType b) {
  if (a != b) throw_bad_argument(kernel, "its tensors must share one element type");
}

}  // namespace

void linear_forward(const Exec& exec, Ptr y, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                    std::int64_t in, std::int64_t out, ConstPtr onto) {
  check_size("linear_forward", "N", N);
  check_size("linear_forward", "in", in, 1);
  check_size("linear_forward", "out", out, 1);
  if (cost::metered(exec, cost::linear_forward(x.type, real(N), real(in), real(out), bias.data != nullptr,
                                               onto.data != nullptr ? Write::add : Write::set)))
    return;
  if (onto.data != nullptr) check_same_type("linear_forward", y.type, onto.type);
  SHARDSCOPE_ON_CUDA(linear_forward, y, x, w, bias, N, in, out, onto)
  cpu::linear_forward(cpu_threads(exec, "linear_forward"), y, x, w, bias, N, in, out, onto);
}

void linear_backward_input(const Exec& exec, Ptr dx, ConstPtr dy, ConstPtr w, std::int64_t N, std::int64_t in,
                           std::int64_t out, Write write) {
  check_size("linear_backward_input", "N", N);
  check_size("linear_backward_input", "in", in, 1);
  check_size("linear_backward_input", "out", out, 1);
  if (cost::metered(exec, cost::linear_backward_input(dy.type, real(N), real(in), real(out), write))) return;
  SHARDSCOPE_ON_CUDA(linear_backward_input, dx, dy, w, N, in, out, write)
  cpu::linear_backward_input(cpu_threads(exec, "linear_backward_input"), dx, dy, w, N, in, out, write);
}

void linear_backward_weight(const Exec& exec, Ptr dw, Ptr dbias, ConstPtr dy, ConstPtr x, std::int64_t N,
                            std::int64_t in, std::int64_t out, Write write) {
  check_size("linear_backward_weight", "N", N);
  check_size("linear_backward_weight", "in", in, 1);
  check_size("linear_backward_weight", "out", out, 1);
  // Without dw there is no product: dy is read once, for the bias.
  const auto work =
      dw.data == nullptr
          ? cost::memory_only(cost::bytes_of(dy.type, real(N) * real(out)) +
                              cost::result_bytes(dbias.type, dbias.data == nullptr ? 0 : real(out), write))
          : cost::linear_backward_weight(x.type, dw.type, real(N), real(in), real(out), dbias.data != nullptr,
                                         write);
  if (cost::metered(exec, work)) return;
  SHARDSCOPE_ON_CUDA(linear_backward_weight, dw, dbias, dy, x, N, in, out, write)
  cpu::linear_backward_weight(cpu_threads(exec, "linear_backward_weight"), dw, dbias, dy, x, N, in, out,
                              write);
}

void layer_norm_forward(const Exec& exec, Ptr y, float* mean, float* rstd, ConstPtr x, ConstPtr weight,
                        ConstPtr bias, std::int64_t N, std::int64_t C, float epsilon) {
  check_size("layer_norm_forward", "N", N);
  check_size("layer_norm_forward", "C", C, 1);
  // x and y, and mean and rstd of 4 bytes a row each.
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 2 * real(N) * real(C)) + 8 * real(N))))
    return;
  SHARDSCOPE_ON_CUDA(layer_norm_forward, y, mean, rstd, x, weight, bias, N, C, epsilon)
  cpu::layer_norm_forward(cpu_threads(exec, "layer_norm_forward"), y, mean, rstd, x, weight, bias, N, C,
                          epsilon);
}

void layer_norm_backward(const Exec& exec, Ptr dx, Ptr dweight, Ptr dbias, ConstPtr dy, ConstPtr x,
                         ConstPtr weight, const float* mean, const float* rstd, std::int64_t N,
                         std::int64_t C, Write write_dx, Write write_params) {
  check_size("layer_norm_backward", "N", N);
  check_size("layer_norm_backward", "C", C, 1);
  // dy, x and dx, and mean and rstd.
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 3 * real(N) * real(C)) + 8 * real(N))))
    return;
  SHARDSCOPE_ON_CUDA(layer_norm_backward, dx, dweight, dbias, dy, x, weight, mean, rstd, N, C, write_dx,
                     write_params)
  // One thread, so that sums over rows have one order (cpu/ops.h); an unknown backend is refused here.
  static_cast<void>(cpu_threads(exec, "layer_norm_backward"));
  cpu::layer_norm_backward(dx, dweight, dbias, dy, x, weight, mean, rstd, N, C, write_dx, write_params);
}

void gelu_forward(const Exec& exec, Ptr y, ConstPtr x, std::int64_t n) {
  check_size("gelu_forward", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 2 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(gelu_forward, y, x, n)
  cpu::gelu_forward(cpu_threads(exec, "gelu_forward"), y, x, n);
}

void gelu_backward(const Exec& exec, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n) {
  check_size("gelu_backward", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 3 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(gelu_backward, dx, dy, x, n)
  cpu::gelu_backward(cpu_threads(exec, "gelu_backward"), dx, dy, x, n);
}

namespace {
// Whether forward keeps the GELU's slope instead of its argument. It depends on backend and type alone, so
// that forward and backward, which only share `kept`, always agree.
bool keeps_slope(const Exec& exec, DType type) noexcept {
  return exec.backend == Backend::cpu && type == DType::f32;
}
}  // namespace

void linear_gelu_forward(const Exec& exec, Ptr y, Ptr kept, ConstPtr x, ConstPtr w, ConstPtr bias,
                         std::int64_t N, std::int64_t in, std::int64_t out) {
  constexpr const char* kName = "linear_gelu_forward";
  check_same_type(kName, y.type, kept.type);
  // The two operations check their sizes and meter their work themselves; so Backend::cost always comes here.
  if (exec.backend != Backend::cuda && !keeps_slope(exec, y.type)) {
    linear_forward(exec, kept, x, w, bias, N, in, out);
    gelu_forward(exec, y, kept, N * out);
    return;
  }
  check_size(kName, "N", N);
  check_size(kName, "in", in, 1);
  check_size(kName, "out", out, 1);
  SHARDSCOPE_ON_CUDA(linear_gelu_forward, y, kept, x, w, bias, N, in, out)
  // fp32 on the CPU: one product with the GELU in its finish, without conversions.
  for (const ConstPtr& operand : {x, w, bias.data == nullptr ? x : bias}) {
    check_same_type(kName, y.type, operand.type);
  }
  cpu::linear_gelu_forward(cpu_threads(exec, kName), y, kept, x, w, bias, N, in, out);
}

void gelu_backward_kept(const Exec& exec, Ptr dx, ConstPtr dy, ConstPtr kept, std::int64_t n) {
  constexpr const char* kName = "gelu_backward_kept";
  // `kept` is the argument: also on CUDA and for Backend::cost.
  if (!keeps_slope(exec, kept.type)) {
    gelu_backward(exec, dx, dy, kept, n);
    return;
  }
  check_size(kName, "n", n);
  check_same_type(kName, dx.type, kept.type);
  check_same_type(kName, dy.type, kept.type);
  cpu::gelu_backward_slope(cpu_threads(exec, kName), dx, dy, kept, n);
}

void linear_gelu_backward_input(const Exec& exec, Ptr dx, ConstPtr dy, ConstPtr w, ConstPtr kept,
                                std::int64_t N, std::int64_t in, std::int64_t out) {
  constexpr const char* kName = "linear_gelu_backward_input";
  if (exec.backend != Backend::cuda && !keeps_slope(exec, kept.type)) {
    linear_backward_input(exec, dx, dy, w, N, in, out, Write::set);
    // In place: dx holds dy w.
    gelu_backward(exec, dx, dx, kept, N * in);
    return;
  }
  check_size(kName, "N", N);
  check_size(kName, "in", in, 1);
  check_size(kName, "out", out, 1);
  SHARDSCOPE_ON_CUDA(linear_gelu_backward_input, dx, dy, w, kept, N, in, out)
  for (const ConstPtr& operand : {ConstPtr(dx), dy, w}) check_same_type(kName, kept.type, operand.type);
  cpu::linear_gelu_backward_input(cpu_threads(exec, kName), dx, dy, w, kept, N, in, out);
}

void relu_forward(const Exec& exec, Ptr y, ConstPtr x, std::int64_t n) {
  check_size("relu_forward", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 2 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(relu_forward, y, x, n)
  cpu::relu_forward(cpu_threads(exec, "relu_forward"), y, x, n);
}

void relu_backward(const Exec& exec, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n) {
  check_size("relu_backward", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 3 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(relu_backward, dx, dy, x, n)
  cpu::relu_backward(cpu_threads(exec, "relu_backward"), dx, dy, x, n);
}

void add(const Exec& exec, Ptr y, ConstPtr a, ConstPtr b, std::int64_t n) {
  check_size("add", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(y.type, 3 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(add, y, a, b, n)
  cpu::add(cpu_threads(exec, "add"), y, a, b, n);
}

void embedding_forward(const Exec& exec, Ptr y, ConstPtr table, const std::int32_t* index, std::int64_t N,
                       std::int64_t C, Write write) {
  check_size("embedding_forward", "N", N);
  check_size("embedding_forward", "C", C, 1);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(y.type, real(N) * real(C)) +
                                            cost::result_bytes(y.type, real(N) * real(C), write))))
    return;
  SHARDSCOPE_ON_CUDA(embedding_forward, y, table, index, N, C, write)
  static_cast<void>(cpu_threads(exec, "embedding_forward"));
  cpu::embedding_forward(y, table, index, N, C, write);
}

void embedding_backward(const Exec& exec, Ptr dtable, ConstPtr dy, const std::int32_t* index, std::int64_t N,
                        std::int64_t rows, std::int64_t C, Write write) {
  // Work: dy is read, and for each of its rows at most one of the table read and written; set zeroes the
  // whole table.
  check_size("embedding_backward", "N", N);
  check_size("embedding_backward", "rows", rows, 1);
  check_size("embedding_backward", "C", C, 1);
  if (cost::metered(exec, cost::memory_only(
                              cost::bytes_of(dy.type, real(N) * real(C)) +
                              cost::bytes_of(dtable.type, 2 * real(N) * real(C)) +
                              (write == Write::set ? cost::bytes_of(dtable.type, real(rows) * real(C)) : 0))))
    return;
  SHARDSCOPE_ON_CUDA(embedding_backward, dtable, dy, index, N, rows, C, write)
  static_cast<void>(cpu_threads(exec, "embedding_backward"));
  cpu::embedding_backward(dtable, dy, index, N, rows, C, write);
}

void attention_forward(const Exec& exec, Ptr out, float* logsumexp, ConstPtr qkv, std::int64_t B,
                       std::int64_t T, std::int64_t C, std::int64_t H, void* scratch) {
  check_attention("attention_forward", B, T, C, H);
  check_same_type("attention_forward", out.type, qkv.type);
  if (cost::metered(exec, cost::attention_forward(qkv.type, real(B), real(T), real(C), real(H)))) return;
  SHARDSCOPE_ON_CUDA(attention_forward, out, logsumexp, qkv, B, T, C, H, scratch)
  cpu::attention_forward(cpu_threads(exec, "attention_forward"), out, logsumexp, qkv, B, T, C, H, scratch);
}

void attention_backward(const Exec& exec, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                        const float* logsumexp, std::int64_t B, std::int64_t T, std::int64_t C,
                        std::int64_t H, void* scratch) {
  check_attention("attention_backward", B, T, C, H);
  check_same_type("attention_backward", dqkv.type, qkv.type);
  check_same_type("attention_backward", dout.type, qkv.type);
  check_same_type("attention_backward", out.type, qkv.type);
  if (cost::metered(exec, cost::attention_backward(qkv.type, real(B), real(T), real(C), real(H)))) return;
  SHARDSCOPE_ON_CUDA(attention_backward, dqkv, dout, out, qkv, logsumexp, B, T, C, H, scratch)
  cpu::attention_backward(cpu_threads(exec, "attention_backward"), dqkv, dout, out, qkv, logsumexp, B, T, C,
                          H, scratch);
}

std::size_t attention_scratch_bytes(const Exec& exec, DType type, std::int64_t B, std::int64_t T,
                                    std::int64_t C, std::int64_t H) {
  check_attention("attention_scratch_bytes", B, T, C, H);
  // What the CPU kernel asks for on one thread stands for every device that is only modelled.
  if (exec.backend == Backend::cost) return cpu::attention_scratch_bytes(1, B, T, C, H);
  // The CPU needs a head's packed operands for each thread, CUDA B*H*T floats or what cuDNN's plans want.
  SHARDSCOPE_ON_CUDA(attention_scratch_bytes, type, B, T, C, H)
  return cpu::attention_scratch_bytes(cpu_threads(exec, "attention_scratch_bytes"), B, T, C, H);
}

void cross_entropy(const Exec& exec, float* loss, Ptr logits, const std::int32_t* target, std::int64_t N,
                   std::int64_t V, float grad_scale, std::int64_t ignored) {
  check_size("cross_entropy", "N", N, 1);
  check_size("cross_entropy", "V", V, 1);
  check_size("cross_entropy", "ignored", ignored);
  // N - ignored may be 0: the loss is then NaN.
  check_size("cross_entropy", "rows that are not ignored", N - ignored);
  // Logits read, and overwritten by their gradient.
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(logits.type, 2 * real(N) * real(V))))) return;
  SHARDSCOPE_ON_CUDA(cross_entropy, loss, logits, target, N, V, grad_scale, ignored)
  static_cast<void>(cpu_threads(exec, "cross_entropy"));
  cpu::cross_entropy(loss, logits, target, N, V, grad_scale, ignored);
}

void mse(const Exec& exec, float* loss, Ptr dx, ConstPtr x, const float* target, std::int64_t n,
         float grad_scale) {
  check_size("mse", "n", n, 1);
  // x read, dx written, and an fp32 target.
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 2 * real(n)) + 4 * real(n)))) return;
  SHARDSCOPE_ON_CUDA(mse, loss, dx, x, target, n, grad_scale)
  static_cast<void>(cpu_threads(exec, "mse"));
  cpu::mse(loss, dx, x, target, n, grad_scale);
}

void adamw_step(const Exec& exec, float* master, float* m, float* v, Ptr param16, ConstPtr grad,
                std::int64_t n, const AdamW& settings) {
  check_size("adamw_step", "n", n);
  // t = 0 would divide by 1 - beta^0 = 0. Work: master, m and v of 4 bytes each are read and written, 24
  // bytes an element.
  check_size("adamw_step", "step", settings.step, 1);
  if (cost::metered(exec,
                    cost::memory_only(24 * real(n) + cost::bytes_of(grad.type, real(n)) +
                                      (param16.data == nullptr ? 0 : cost::bytes_of(param16.type, real(n))))))
    return;
  SHARDSCOPE_ON_CUDA(adamw_step, master, m, v, param16, grad, n, settings)
  cpu::adamw_step(cpu_threads(exec, "adamw_step"), master, m, v, param16, grad, n, settings);
}

void squared_norm(const Exec& exec, double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n) {
  check_size("squared_norm", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n))))) return;
  SHARDSCOPE_ON_CUDA(squared_norm, sum, bad, x, n)
  static_cast<void>(cpu_threads(exec, "squared_norm"));
  cpu::squared_norm(sum, bad, x, n);
}

void cast(const Exec& exec, Ptr dst, ConstPtr src, std::int64_t n) {
  check_size("cast", "n", n);
  if (cost::metered(exec,
                    cost::memory_only(cost::bytes_of(dst.type, real(n)) + cost::bytes_of(src.type, real(n)))))
    return;
  SHARDSCOPE_ON_CUDA(cast, dst, src, n)
  cpu::cast(cpu_threads(exec, "cast"), dst, src, n);
}

void fill_zero(const Exec& exec, void* data, std::size_t bytes) {
  if (cost::metered(exec, cost::memory_only(static_cast<double>(bytes)))) return;
  SHARDSCOPE_ON_CUDA(fill_zero, data, bytes)
  static_cast<void>(cpu_threads(exec, "fill_zero"));
  cpu::fill_zero(data, bytes);
}

void scale(const Exec& exec, Ptr x, float factor, std::int64_t n) {
  check_size("scale", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 2 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(scale, x, factor, n)
  cpu::scale(cpu_threads(exec, "scale"), x, factor, n);
}

void accumulate(const Exec& exec, Ptr dst, ConstPtr src, std::int64_t n) {
  check_size("accumulate", "n", n);
  if (cost::metered(
          exec, cost::memory_only(cost::bytes_of(dst.type, 2 * real(n)) + cost::bytes_of(src.type, real(n)))))
    return;
  SHARDSCOPE_ON_CUDA(accumulate, dst, src, n)
  cpu::accumulate(cpu_threads(exec, "accumulate"), dst, src, n);
}

void reduce_sum(const Exec& exec, Ptr out, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t n, float factor) {
  check_size("reduce_sum", "n", n);
  check_size("reduce_sum", "count", count, 1);
  // `count` arrays read, one written.
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(type, real(n) * (count + 1.0))))) return;
  SHARDSCOPE_ON_CUDA(reduce_sum, out, inputs, count, type, n, factor)
  cpu::reduce_sum(cpu_threads(exec, "reduce_sum"), out, inputs, count, type, n, factor);
}

void quantize_int8(const Exec& exec, std::int8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems) {
  // Scales, 4 bytes a group, are left out of the work here and below.
  check_groups("quantize_int8", n, group_elems, 1);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n)) + real(n)))) return;
  SHARDSCOPE_ON_CUDA(quantize_int8, values, scales, x, n, group_elems)
  cpu::quantize_int8(cpu_threads(exec, "quantize_int8"), values, scales, x, n, group_elems);
}

void dequantize_int8(const Exec& exec, Ptr x, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems) {
  check_groups("dequantize_int8", n, group_elems, 1);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n)) + real(n)))) return;
  SHARDSCOPE_ON_CUDA(dequantize_int8, x, values, scales, n, group_elems)
  cpu::dequantize_int8(cpu_threads(exec, "dequantize_int8"), x, values, scales, n, group_elems);
}

void quantize_int4(const Exec& exec, std::uint8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error) {
  check_groups("quantize_int4", n, group_elems, 2);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n)) + 0.5 * real(n) +
                                            (error.values == nullptr ? 0 : 2 * real(n)))))
    return;
  SHARDSCOPE_ON_CUDA(quantize_int4, values, scales, x, n, group_elems, error)
  cpu::quantize_int4(cpu_threads(exec, "quantize_int4"), values, scales, x, n, group_elems, error);
}

void requantize_int4(const Exec& exec, std::uint8_t* values, float* scales, const Int4Source* sources,
                     std::uint32_t count, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error) {
  check_groups("requantize_int4", n, group_elems, 2);
  check_size("requantize_int4", "count", count, 1);
  if (cost::metered(exec, cost::memory_only(0.5 * real(n) * (count + 1.0) +
                                            (error.values == nullptr ? 0 : 2 * real(n)))))
    return;
  SHARDSCOPE_ON_CUDA(requantize_int4, values, scales, sources, count, n, group_elems, factor, error)
  cpu::requantize_int4(cpu_threads(exec, "requantize_int4"), values, scales, sources, count, n, group_elems,
                       factor, error);
}

void dequantize_sum_int4(const Exec& exec, Ptr x, const Int4Source* sources, std::uint32_t count,
                         std::int64_t n, std::int64_t group_elems, float factor) {
  check_groups("dequantize_sum_int4", n, group_elems, 2);
  check_size("dequantize_sum_int4", "count", count, 1);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n)) + 0.5 * real(n) * count))) return;
  SHARDSCOPE_ON_CUDA(dequantize_sum_int4, x, sources, count, n, group_elems, factor)
  cpu::dequantize_sum_int4(cpu_threads(exec, "dequantize_sum_int4"), x, sources, count, n, group_elems,
                           factor);
}

// ---- columns.h --------------------------------------------------------------------------------------------

void column_abs_sums(const Exec& exec, float* sums, ConstPtr x, const MatrixPart& part) {
  check_part("column_abs_sums", part);
  if (cost::metered(exec,
                    cost::memory_only(cost::bytes_of(x.type, real(part.elems)) + 4 * real(part.columns))))
    return;
  SHARDSCOPE_ON_CUDA(column_abs_sums, sums, x, part)
  cpu::column_abs_sums(cpu_threads(exec, "column_abs_sums"), sums, x, part);
}

std::int64_t elems_in_columns(const MatrixPart& part, const std::int32_t* chosen,
                              std::int64_t count) noexcept {
  std::int64_t elems = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    // The column's first element in the part; from there one every `columns` elements.
    const std::int64_t first = (chosen[i] - part.first_column + part.columns) % part.columns;
    if (first < part.elems) elems += (part.elems - first + part.columns - 1) / part.columns;
  }
  return elems;
}

void take_columns(const Exec& exec, Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count) {
  check_part("take_columns", part);
  check_same_type("take_columns", dst.type, x.type);
  if (cost::metered(exec, cost::moved_columns(x.type, part, real(count)))) return;
  SHARDSCOPE_ON_CUDA(take_columns, dst, x, part, chosen, count)
  cpu_threads(exec, "take_columns");
  cpu::take_columns(dst, x, part, chosen, count);
}

void put_columns(const Exec& exec, Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 std::int64_t count) {
  check_part("put_columns", part);
  check_same_type("put_columns", x.type, src.type);
  if (cost::metered(exec, cost::moved_columns(x.type, part, real(count)))) return;
  SHARDSCOPE_ON_CUDA(put_columns, x, src, part, chosen, count)
  cpu_threads(exec, "put_columns");
  cpu::put_columns(x, src, part, chosen, count);
}

}  // namespace shardscope::kernels
