// Layer norm over rows, column sums, and rows that are all alike. Gradients of weight and bias are summed
// over groups of rows, and the groups in order: the result does not depend on the device.
#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr std::int64_t kRowGroup = 64;  // as on the CPU

/// Rows to a group, so that the sums of all groups of `sums` floats each fit the workspace.
std::int64_t group_rows(const char* kernel, std::int64_t rows, std::int64_t sums) {
  const auto most = static_cast<std::int64_t>(Context::kWorkspaceBytes / sizeof(float)) / sums;
  if (most < 1) {
    throw_bad_argument(kernel, "rows of " + std::to_string(sums) +
                                   " sums do not fit the workspace of a stream; use a narrower layer");
  }
  std::int64_t group = kRowGroup;
  while ((rows + group - 1) / group > most) group *= 2;
  return group;
}

/// One warp to a row. The row is read three times, the second and third from the first-level cache.
template <class Y, class X, class P, class Q>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(Y* y, float* mean, float* rstd, const X* x, const P* weight, const Q* bias, std::int64_t N,
                   std::int64_t C, float epsilon) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (r >= N) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const X* in = x + r * C;
  const float inverse = 1.0F / static_cast<float>(C);
  float sum = 0;
  for (std::int64_t i = lane; i < C; i += 32) sum += to_float(in[i]);
  const float m = warp_sum(sum) * inverse;
  float squares = 0;
  for (std::int64_t i = lane; i < C; i += 32) {
    const float d = to_float(in[i]) - m;
    squares = fmaf(d, d, squares);
  }
  const float s = __fdiv_rn(1.0F, __fsqrt_rn(warp_sum(squares) * inverse + epsilon));
  if (lane == 0) {
    mean[r] = m;
    rstd[r] = s;
  }
  Y* out = y + r * C;
  for (std::int64_t i = lane; i < C; i += 32) {
    const float normal = (to_float(in[i]) - m) * s;
    out[i] = from_float<Y>(fmaf(normal, to_float(weight[i]), to_float(bias[i])));
  }
}

/// dx of one row by one warp: rstd (h - mean(h) - xhat mean(h xhat)), h = dy * weight.
template <class D, class G, class X, class P>
__global__ void __launch_bounds__(kThreads)
    input_kernel(D* dx, const G* dy, const X* x, const P* weight, const float* mean, const float* rstd,
                 std::int64_t N, std::int64_t C, bool add) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (r >= N) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const G* g = dy + r * C;
  const X* in = x + r * C;
  D* out = dx + r * C;
  const float m = mean[r];
  const float s = rstd[r];
  const float inverse = 1.0F / static_cast<float>(C);
  float sum_h = 0;
  float sum_hx = 0;
  for (std::int64_t i = lane; i < C; i += 32) {
    const float normal = (to_float(in[i]) - m) * s;
    const float h = to_float(g[i]) * to_float(weight[i]);
    sum_h += h;
    sum_hx = fmaf(h, normal, sum_hx);
  }
  const float mean_h = warp_sum(sum_h) * inverse;
  const float mean_hx = warp_sum(sum_hx) * inverse;
  for (std::int64_t i = lane; i < C; i += 32) {
    const float normal = (to_float(in[i]) - m) * s;
    const float h = to_float(g[i]) * to_float(weight[i]);
    float d = s * fmaf(normal, -mean_hx, h - mean_h);
    if (add) d += to_float(out[i]);
    out[i] = from_float<D>(d);
  }
}

/// Sums of columns over a group of rows: blockIdx.x is the group, blockIdx.y a range of columns; neighbouring
/// threads have neighbouring columns.
template <class G, class X>
__global__ void __launch_bounds__(kThreads)
    params_kernel(float* partial, const G* dy, const X* x, const float* mean, const float* rstd,
                  std::int64_t N, std::int64_t C, std::int64_t group) {
  const std::int64_t c = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (c >= C) return;
  const std::int64_t begin = std::int64_t{blockIdx.x} * group;
  const std::int64_t end = begin + group < N ? begin + group : N;
  float weight_sum = 0;
  float bias_sum = 0;
#pragma unroll 4
  for (std::int64_t r = begin; r < end; ++r) {
    const float g = to_float(dy[r * C + c]);
    const float normal = (to_float(x[r * C + c]) - mean[r]) * rstd[r];
    bias_sum += g;
    weight_sum = fmaf(g, normal, weight_sum);
  }
  float* sums = partial + std::int64_t{blockIdx.x} * 2 * C;
  sums[c] = weight_sum;
  sums[C + c] = bias_sum;
}

template <class X>
__global__ void __launch_bounds__(kThreads)
    columns_kernel(float* partial, const X* x, std::int64_t rows, std::int64_t cols, std::int64_t group) {
  const std::int64_t c = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (c >= cols) return;
  const std::int64_t begin = std::int64_t{blockIdx.x} * group;
  const std::int64_t end = begin + group < rows ? begin + group : rows;
  float sum = 0;
#pragma unroll 8
  for (std::int64_t r = begin; r < end; ++r) sum += to_float(x[r * cols + c]);
  partial[std::int64_t{blockIdx.x} * cols + c] = sum;
}

template <class Y, class X>
__global__ void __launch_bounds__(kThreads)
    fill_rows_kernel(Y* y, const X* row, std::int64_t rows, std::int64_t cols) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < rows * cols; i += stride)
    y[i] = from_float<Y>(to_float(row[i % cols]));
}

/// to[c] (+)= partial[0][c] + partial[1][c] + ... ; rows of `partial` are `stride` apart.
template <class D>
__global__ void __launch_bounds__(kThreads) finish_kernel(D* to, const float* partial, std::int64_t groups,
                                                          std::int64_t stride, std::int64_t C, bool add) {
  const std::int64_t c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (c >= C) return;
  float sum = 0;
#pragma unroll 8
  for (std::int64_t g = 0; g < groups; ++g) sum += partial[g * stride + c];
  if (add) sum += to_float(to[c]);
  to[c] = from_float<D>(sum);
}

unsigned count(std::int64_t n, std::int64_t unit) { return static_cast<unsigned>((n + unit - 1) / unit); }

void finish(const Context& on, const char* kernel, Ptr to, const float* partial, std::int64_t groups,
            std::int64_t stride, std::int64_t C, Write write) {
  if (to.data == nullptr) return;
  with_type(kernel, to.type, [&](auto tag) {
    using D = decltype(tag);
    finish_kernel<<<count(C, kThreads), kThreads, 0, stream_of(on)>>>(static_cast<D*>(to.data), partial,
                                                                      groups, stride, C, write == Write::add);
  });
  check_launch(kernel);
}

}  // namespace

void layer_norm_forward(const Context& on, Ptr y, float* mean, float* rstd, ConstPtr x, ConstPtr weight,
                        ConstPtr bias, std::int64_t N, std::int64_t C, float epsilon) {
  constexpr const char* kName = "layer_norm_forward";
  if (N == 0) return;
  if (weight.type != bias.type) throw_bad_argument(kName, "weight and bias must share one element type");
  with_type(kName, x.type, [&](auto x_tag) {
    with_type(kName, y.type, [&](auto y_tag) {
      with_type(kName, weight.type, [&](auto p_tag) {
        using X = decltype(x_tag);
        using Y = decltype(y_tag);
        using P = decltype(p_tag);
        forward_kernel<<<count(N, kWarps), kThreads, 0, stream_of(on)>>>(
            static_cast<Y*>(y.data), mean, rstd, static_cast<const X*>(x.data),
            static_cast<const P*>(weight.data), static_cast<const P*>(bias.data), N, C, epsilon);
      });
    });
  });
  check_launch(kName);
}

void layer_norm_backward(const Context& on, Ptr dx, Ptr dweight, Ptr dbias, ConstPtr dy, ConstPtr x,
                         ConstPtr weight, const float* mean, const float* rstd, std::int64_t N,
                         std::int64_t C, Write write_dx, Write write_params) {
  constexpr const char* kName = "layer_norm_backward";
  if (dx.type != dy.type) throw_bad_argument(kName, "dx and dy must share one element type");
  auto* partial = static_cast<float*>(on.workspace());
  const std::int64_t group = group_rows(kName, N, 2 * C);
  const std::int64_t groups = (N + group - 1) / group;
  if (N > 0) {
    with_type(kName, dy.type, [&](auto g_tag) {
      with_type(kName, x.type, [&](auto x_tag) {
        using G = decltype(g_tag);
        using X = decltype(x_tag);
        const auto* g = static_cast<const G*>(dy.data);
        const auto* in = static_cast<const X*>(x.data);
        // First, because dx may be where dy is.
        params_kernel<<<dim3(static_cast<unsigned>(groups), count(C, kThreads)), kThreads, 0,
                        stream_of(on)>>>(partial, g, in, mean, rstd, N, C, group);
        with_type(kName, weight.type, [&](auto p_tag) {
          using P = decltype(p_tag);
          input_kernel<<<count(N, kWarps), kThreads, 0, stream_of(on)>>>(
              static_cast<G*>(dx.data), g, in, static_cast<const P*>(weight.data), mean, rstd, N, C,
              write_dx == Write::add);
        });
      });
    });
    check_launch(kName);
  }
  finish(on, kName, dweight, partial, groups, 2 * C, C, write_params);
  finish(on, kName, dbias, partial + C, groups, 2 * C, C, write_params);
}

void fill_rows(const Context& on, Ptr y, ConstPtr row, std::int64_t rows, std::int64_t cols) {
  constexpr const char* kName = "fill_rows";
  if (rows == 0 || cols == 0) return;
  with_type(kName, y.type, [&](auto y_tag) {
    with_type(kName, row.type, [&](auto x_tag) {
      using Y = decltype(y_tag);
      using X = decltype(x_tag);
      fill_rows_kernel<<<blocks_for(on, rows * cols, kThreads, 4), kThreads, 0, stream_of(on)>>>(
          static_cast<Y*>(y.data), static_cast<const X*>(row.data), rows, cols);
    });
  });
  check_launch(kName);
}

void column_sums(const Context& on, Ptr total, ConstPtr x, std::int64_t rows, std::int64_t cols,
                 Write write) {
  constexpr const char* kName = "column_sums";
  auto* partial = static_cast<float*>(on.workspace());
  const std::int64_t group = group_rows(kName, rows, cols);
  const std::int64_t groups = (rows + group - 1) / group;
  if (rows > 0) {
    with_type(kName, x.type, [&](auto tag) {
      using X = decltype(tag);
      columns_kernel<<<dim3(static_cast<unsigned>(groups), count(cols, kThreads)), kThreads, 0,
                       stream_of(on)>>>(partial, static_cast<const X*>(x.data), rows, cols, group);
    });
    check_launch(kName);
  }
  finish(on, kName, total, partial, groups, cols, cols, write);
}

}  // namespace shardscope::kernels::cuda
