// Operations of a model, forward and backward: see dispatch.h.
#include "kernels/dispatch.h"

#include <string>

#include "kernels/cost/work.h"
#include "kernels/cpu/ops.h"
#include "kernels/cuda/ops.h"

namespace shardscope::kernels {
namespace {

// B and T may be 0: an empty batch is valid.
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

}  // namespace

// y[N,out] = x[N,in] w[out,in]^T + bias[out] (+ onto[N,out], the residual branch).
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

// dx[N,in] (set or add) = dy[N,out] w[out,in].
void linear_backward_input(const Exec& exec, Ptr dx, ConstPtr dy, ConstPtr w, std::int64_t N, std::int64_t in,
                           std::int64_t out, Write write) {
  check_size("linear_backward_input", "N", N);
  check_size("linear_backward_input", "in", in, 1);
  check_size("linear_backward_input", "out", out, 1);
  if (cost::metered(exec, cost::linear_backward_input(dy.type, real(N), real(in), real(out), write))) return;
  SHARDSCOPE_ON_CUDA(linear_backward_input, dx, dy, w, N, in, out, write)
  cpu::linear_backward_input(cpu_threads(exec, "linear_backward_input"), dx, dy, w, N, in, out, write);
}

// dw[out,in] (set or add) = dy[N,out]^T x[N,in]; dbias[out] = column sums of dy. Either may be null.
void linear_backward_weight(const Exec& exec, Ptr dw, Ptr dbias, ConstPtr dy, ConstPtr x, std::int64_t N,
                            std::int64_t in, std::int64_t out, Write write) {
  check_size("linear_backward_weight", "N", N);
  check_size("linear_backward_weight", "in", in, 1);
  check_size("linear_backward_weight", "out", out, 1);
  // Without dw there is no product: dy is read once, for dbias.
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

// x, y [N,C]; mean, rstd [N] in fp32 for every type of x.
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
  // One thread, so that sums over rows have one order (cpu/ops.h); also rejects an unknown backend.
  static_cast<void>(cpu_threads(exec, "layer_norm_backward"));
  cpu::layer_norm_backward(dx, dweight, dbias, dy, x, weight, mean, rstd, N, C, write_dx, write_params);
}

// Element-wise operations are memory-bound on every backend: their work is the bytes that they move.
void gelu_forward(const Exec& exec, Ptr y, ConstPtr x, std::int64_t n) {
  check_size("gelu_forward", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 2 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(gelu_forward, y, x, n)
  cpu::gelu_forward(cpu_threads(exec, "gelu_forward"), y, x, n);
}

// Reads dy and x, writes dx; dx may be dy (linear_gelu_backward_input() below).
void gelu_backward(const Exec& exec, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n) {
  check_size("gelu_backward", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 3 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(gelu_backward, dx, dy, x, n)
  cpu::gelu_backward(cpu_threads(exec, "gelu_backward"), dx, dy, x, n);
}

namespace {
// Whether forward keeps the GELU's slope instead of its argument. Depends only on backend and type, so that
// forward and backward, which only share `kept`, always agree.
bool keeps_slope(const Exec& exec, DType type) noexcept {
  return exec.backend == Backend::cpu && type == DType::f32;
}
}  // namespace

// y[N,out] = gelu(x w^T + bias); kept[N,out] is what gelu_backward_kept() needs: see keeps_slope().
void linear_gelu_forward(const Exec& exec, Ptr y, Ptr kept, ConstPtr x, ConstPtr w, ConstPtr bias,
                         std::int64_t N, std::int64_t in, std::int64_t out) {
  constexpr const char* kName = "linear_gelu_forward";
  check_same_type(kName, y.type, kept.type);
  // The two operations check their sizes and meter their work; so Backend::cost always takes this path.
  if (exec.backend != Backend::cuda && !keeps_slope(exec, y.type)) {
    linear_forward(exec, kept, x, w, bias, N, in, out);
    gelu_forward(exec, y, kept, N * out);
    return;
  }
  check_size(kName, "N", N);
  check_size(kName, "in", in, 1);
  check_size(kName, "out", out, 1);
  SHARDSCOPE_ON_CUDA(linear_gelu_forward, y, kept, x, w, bias, N, in, out)
  // fp32 on the CPU: one product with the GELU as its finish operation, without conversions.
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

// dx[N,in] = (dy[N,out] w[out,in]) * gelu'(kept[N,in]): the gradient of the layer after the GELU, through it.
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

// As gelu_backward(): three arrays.
void relu_backward(const Exec& exec, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n) {
  check_size("relu_backward", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 3 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(relu_backward, dx, dy, x, n)
  cpu::relu_backward(cpu_threads(exec, "relu_backward"), dx, dy, x, n);
}

// y = a + b; y may be a or b, element by element.
void add(const Exec& exec, Ptr y, ConstPtr a, ConstPtr b, std::int64_t n) {
  check_size("add", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(y.type, 3 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(add, y, a, b, n)
  cpu::add(cpu_threads(exec, "add"), y, a, b, n);
}

// y[N,C] = table[index[N], :]. Work: rows of the table are read, y is written; indices are not counted.
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

// dtable[rows,C] += dy[i,:] at row index[i], in order of i.
void embedding_backward(const Exec& exec, Ptr dtable, ConstPtr dy, const std::int32_t* index, std::int64_t N,
                        std::int64_t rows, std::int64_t C, Write write) {
  // Work: dy is read, and for each of its rows at most one row of the table is read and written; Write::set
  // zeroes the whole table.
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

// qkv[B,T,3C], out[B,T,C], logsumexp[B,H,T] fp32. All three types must be equal: kernels are compiled per
// type.
void attention_forward(const Exec& exec, Ptr out, float* logsumexp, ConstPtr qkv, std::int64_t B,
                       std::int64_t T, std::int64_t C, std::int64_t H, void* scratch) {
  check_attention("attention_forward", B, T, C, H);
  check_same_type("attention_forward", out.type, qkv.type);
  if (cost::metered(exec, cost::attention_forward(qkv.type, real(B), real(T), real(C), real(H)))) return;
  SHARDSCOPE_ON_CUDA(attention_forward, out, logsumexp, qkv, B, T, C, H, scratch)
  cpu::attention_forward(cpu_threads(exec, "attention_forward"), out, logsumexp, qkv, B, T, C, H, scratch);
}

// The scores are recomputed from qkv and logsumexp: T x T of them are never stored, in either direction.
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

// The caller allocates the scratch before the call, from its arena, so that it is in the memory accounting.
std::size_t attention_scratch_bytes(const Exec& exec, DType type, std::int64_t B, std::int64_t T,
                                    std::int64_t C, std::int64_t H) {
  check_attention("attention_scratch_bytes", B, T, C, H);
  // For devices that are only modelled: the CPU kernel's scratch on one thread.
  if (exec.backend == Backend::cost) return cpu::attention_scratch_bytes(1, B, T, C, H);
  // The CPU needs a head's packed operands per thread, CUDA B*H*T floats or the size of cuDNN's plans.
  SHARDSCOPE_ON_CUDA(attention_scratch_bytes, type, B, T, C, H)
  return cpu::attention_scratch_bytes(cpu_threads(exec, "attention_scratch_bytes"), B, T, C, H);
}

// logits[N,V] are overwritten by their gradient: no second array of N x V is needed.
void cross_entropy(const Exec& exec, float* loss, Ptr logits, const std::int32_t* target, std::int64_t N,
                   std::int64_t V, float grad_scale, std::int64_t ignored) {
  check_size("cross_entropy", "N", N, 1);
  check_size("cross_entropy", "V", V, 1);
  check_size("cross_entropy", "ignored", ignored);
  // N - ignored may be 0: the loss is then NaN.
  check_size("cross_entropy", "rows that are not ignored", N - ignored);
  // Logits are read and overwritten by their gradient.
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(logits.type, 2 * real(N) * real(V))))) return;
  SHARDSCOPE_ON_CUDA(cross_entropy, loss, logits, target, N, V, grad_scale, ignored)
  static_cast<void>(cpu_threads(exec, "cross_entropy"));
  cpu::cross_entropy(loss, logits, target, N, V, grad_scale, ignored);
}

// One thread on the CPU, as cross_entropy(): the sum has one order for any number of threads.
void mse(const Exec& exec, float* loss, Ptr dx, ConstPtr x, const float* target, std::int64_t n,
         float grad_scale) {
  check_size("mse", "n", n, 1);
  // x is read, dx written, and an fp32 target read.
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 2 * real(n)) + 4 * real(n)))) return;
  SHARDSCOPE_ON_CUDA(mse, loss, dx, x, target, n, grad_scale)
  static_cast<void>(cpu_threads(exec, "mse"));
  cpu::mse(loss, dx, x, target, n, grad_scale);
}

}  // namespace shardscope::kernels
