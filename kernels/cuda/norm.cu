// Layer norm over rows, column sums, and filling of rows. Gradients of weight and bias are summed over groups
// of rows, and the groups in slices: the order depends only on the shape, not on the device.
//
// [Note: a row in registers]
// A layer norm is limited by memory, so each row is read once, by a team of warps whose lanes hold 16 of its
// columns each, in 16-byte packs. This requires rows that are aligned to 16 bytes and of one storage type;
// others use kernels that read a row again for each pass. Only the activations' alignment matters: that of
// parameters differs between the stages of ZeRO, which must agree bitwise.
//
// [Note: sums of columns]
// A thread has its own columns and adds up a group of rows in registers: no shuffle, no shared memory. The
// sum is written to partial[group][column] in the stream's workspace, fp32; finish_kernel adds the groups.
// Atomic additions to the result would save that pass, but their order and so the bits would differ from run
// to run. Short sums within a group also round less than one sum over all rows.
#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr std::int64_t kRowGroup = 64;  // as on the CPU

/// Rows per group, at least `least`, so that `sums` floats per group fit the workspace. Depends
/// only on the shape, and so do the bits of the result. Throws KernelError if not even one group
/// fits.
std::int64_t group_rows(const char* kernel, std::int64_t rows, std::int64_t sums,
                        std::int64_t least = kRowGroup) {
  const auto most = static_cast<std::int64_t>(Context::kWorkspaceBytes / sizeof(float)) / sums;
  if (most < 1) {
    throw_bad_argument(kernel, "rows of " + std::to_string(sums) +
                                   " sums do not fit the workspace of a stream; use a narrower layer");
  }
  std::int64_t group = least;
  while ((rows + group - 1) / group > most) group *= 2;
  return group;
}

// A row of up to kMostTeam * 32 * kLaneColumns = 4096 columns fits a team.
constexpr int kLaneColumns = 16;
constexpr int kMostTeam = 8;  ///< warps
constexpr std::int64_t kTeamRows = 16;

/// A lane's columns of a row: its pack p is pack p * blockDim.x + threadIdx.x of the row, zero after the end.
/// A pack is 16 bytes, so a warp's load of one is 512 contiguous bytes. C * sizeof(T) is a multiple of 16
/// (fits_team): a pack is completely inside the row or outside.
template <class T>
struct LaneColumns {
  // Elements of a pack: 4 floats or 8 16-bit values; kLaneColumns of them in 4 or 2 packs.
  static constexpr int kWide = 16 / static_cast<int>(sizeof(T));
  static constexpr int kPacks = kLaneColumns / kWide;
  using P = Pack<T, kWide>;
  P packs[kPacks];

  /// Column of the first element of a pack.
  static __device__ __forceinline__ int column(int p) {
    return (p * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kWide;
  }
  __device__ __forceinline__ void load(const T* row, int C) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      packs[p] = P{};
      if (column(p) < C) packs[p] = *reinterpret_cast<const P*>(row + column(p));
    }
  }
  /// Loads a row of any alignment: a parameter in a shard may start at any element. The values are equal,
  /// only the width of loads differs.
  __device__ __forceinline__ void load_unaligned(const T* row, int C) {
    if (reinterpret_cast<std::uintptr_t>(row) % 16 == 0) return load(row, C);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      packs[p] = P{};
      if (column(p) >= C) continue;
#pragma unroll
      for (int k = 0; k < kWide; ++k) packs[p].x[k] = row[column(p) + k];
    }
  }
  __device__ __forceinline__ void store(T* row, int C) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (column(p) < C) *reinterpret_cast<P*>(row + column(p)) = packs[p];
    }
  }
  __device__ __forceinline__ float get(int p, int k) const { return to_float(packs[p].x[k]); }
  /// f(pack, element) for elements inside the row.
  template <class F>
  static __device__ __forceinline__ void each(int C, F f) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (column(p) >= C) continue;
#pragma unroll
      for (int k = 0; k < kWide; ++k) f(p, k);
    }
  }
};

/// The sum over the team, on every lane. All lanes add the warps' sums in order of warps, so they get the
/// same bits. There is a single barrier: between two calls with the same `places` there must be another
/// team_sum(), whose barrier ensures that all have read, and no other code may write `places` until all lanes
/// have entered the next team_sum().
__device__ __forceinline__ float2 team_sum(float2 x, float2 (&places)[kMostTeam]) {
  x = {warp_sum(x.x), warp_sum(x.y)};
  const unsigned warps = blockDim.x / 32;
  // Rows of up to 512 columns (one warp) need no shared memory and no barrier.
  if (warps == 1) return x;
  if (threadIdx.x % 32 == 0) places[threadIdx.x / 32] = x;
  __syncthreads();
  x = places[0];
  for (unsigned w = 1; w < warps; ++w) x = {x.x + places[w].x, x.y + places[w].y};
  return x;
}

/// y[N,C], mean[N] and rstd[N] from x[N,C]; N is gridDim.x, one team per row. See [Note: a row in registers].
template <class T>
__global__ void __launch_bounds__(kMostTeam * 32)
    team_forward_kernel(T* y, float* mean, float* rstd, const T* x, const T* weight, const T* bias, int C,
                        float epsilon) {
  using Lane = LaneColumns<T>;
  __shared__ float2 places[2][kMostTeam];
  const std::int64_t r = blockIdx.x;
  Lane in;
  Lane w;
  Lane b;
  in.load(x + r * C, C);
  w.load_unaligned(weight, C);
  b.load_unaligned(bias, C);
  const float inverse = 1.0F / static_cast<float>(C);
  float sum = 0;
  Lane::each(C, [&](int p, int k) { sum += in.get(p, k); });
  const float m = team_sum({sum, 0}, places[0]).x * inverse;
  // From deviations, not as mean(x^2) - mean^2, which cancels if the mean is large. The row is in registers:
  // a second pass over it costs no memory traffic.
  float squares = 0;
  Lane::each(C, [&](int p, int k) {
    const float d = in.get(p, k) - m;
    squares = fmaf(d, d, squares);
  });
  const float variance = team_sum({squares, 0}, places[1]).x * inverse;
  const float s = __fdiv_rn(1.0F, __fsqrt_rn(variance + epsilon));
  if (threadIdx.x == 0) {
    mean[r] = m;
    rstd[r] = s;
  }
  Lane::each(C, [&](int p, int k) {
    in.packs[p].x[k] = from_float<T>(fmaf((in.get(p, k) - m) * s, w.get(p, k), b.get(p, k)));
  });
  in.store(y + r * C, C);
}

/// dx[N,C] of `group` rows by one team, one after the other, and partial[groups,2C]: the column sums for
/// weight, then for bias. `partial` may be null. With xhat = (x - mean) rstd and h = dy * weight: dx = rstd
/// (h - mean(h) - xhat mean(h xhat)), dweight = sum of dy xhat, dbias = sum of dy. dx may be dy: a lane reads
/// elements before it writes them.
template <class T>
__global__ void __launch_bounds__(kMostTeam * 32)
    team_backward_kernel(T* dx, float* partial, const T* dy, const T* x, const T* weight, const float* mean,
                         const float* rstd, std::int64_t N, int C, std::int64_t group, bool add) {
  using Lane = LaneColumns<T>;
  __shared__ float2 places[2][kMostTeam];
  const std::int64_t begin = std::int64_t{blockIdx.x} * group;
  const std::int64_t end = begin + group < N ? begin + group : N;
  const float inverse = 1.0F / static_cast<float>(C);
  float weight_sums[Lane::kPacks][Lane::kWide] = {};
  float bias_sums[Lane::kPacks][Lane::kWide] = {};
  Lane w;
  w.load_unaligned(weight, C);
  // Rows in ascending order; other blocks process the other groups.
  for (std::int64_t r = begin; r < end; ++r) {
    Lane g;
    Lane in;
    // dx's old value, if the gradient is added to it.
    Lane before;
    g.load(dy + r * C, C);
    in.load(x + r * C, C);
    if (add) before.load(dx + r * C, C);
    const float m = mean[r];
    const float s = rstd[r];
    float2 sums = {0, 0};
    Lane::each(C, [&](int p, int k) {
      const float normal = (in.get(p, k) - m) * s;
      const float h = g.get(p, k) * w.get(p, k);
      sums.x += h;
      sums.y = fmaf(h, normal, sums.y);
      bias_sums[p][k] += g.get(p, k);
      weight_sums[p][k] = fmaf(g.get(p, k), normal, weight_sums[p][k]);
    });
    // Two alternating sets of places: a thread that writes a set has passed the barrier of the previous row,
    // which all threads reached after reading this set for the row before that.
    sums = team_sum(sums, places[r % 2]);
    // xhat and h are recomputed from the packs: storing them would take 32 more registers.
    const float mean_h = sums.x * inverse;
    const float mean_hx = sums.y * inverse;
    Lane::each(C, [&](int p, int k) {
      const float normal = (in.get(p, k) - m) * s;
      const float h = g.get(p, k) * w.get(p, k);
      float d = s * fmaf(normal, -mean_hx, h - mean_h);
      if (add) d += before.get(p, k);
      in.packs[p].x[k] = from_float<T>(d);
    });
    in.store(dx + r * C, C);
  }
  if (partial == nullptr) return;
  // See [Note: sums of columns]. The team's lanes have different columns.
  float* const to = partial + std::int64_t{blockIdx.x} * 2 * C;
  Lane::each(C, [&](int p, int k) {
    to[Lane::column(p) + k] = weight_sums[p][k];
    to[C + Lane::column(p) + k] = bias_sums[p][k];
  });
}

/// y[N,C], mean[N], rstd[N]: one warp per row. The row is read three times, the second and
/// third from the first-level cache. For rows that do not fit a team. A lane has every 32nd
/// column.
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

/// dx[N,C], one warp per row: rstd (h - mean(h) - xhat mean(h xhat)), h = dy * weight. dx may be dy:
/// both passes of a lane cover the same columns, and the second reads an element before it writes
/// it.
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

/// partial[groups,2C]: sums of columns over a group of rows, for weight, then for bias. blockIdx.x is the
/// group, blockIdx.y a range of columns; neighbouring threads have neighbouring columns.
/// See [Note: sums of columns].
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
  // Loads of several rows are in flight; additions keep their order.
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

/// partial[groups,cols]: sums of the columns of x[rows,cols] over a group of rows; the grid as above.
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

/// y[rows,cols]: every row is set to row[cols].
template <class Y, class X>
__global__ void __launch_bounds__(kThreads)
    fill_rows_kernel(Y* y, const X* row, std::int64_t rows, std::int64_t cols) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < rows * cols; i += stride)
    y[i] = from_float<Y>(to_float(row[i % cols]));
}

constexpr int kSlices = 32;
/// first[c] (+)= partial[0][c] + partial[1][c] + ...; rows of `partial` are `stride` apart. second[c]
/// likewise from column C on. Either may be null. A block has 32 columns of one of them; each warp has a
/// slice of the groups. Warp 0 then adds the slices in order: the order depends only on `groups`. Without
/// groups (no rows) the sum is 0.
template <class D>
__global__ void __launch_bounds__(kSlices * 32)
    finish_kernel(D* first, D* second, const float* partial, std::int64_t groups, std::int64_t stride,
                  std::int64_t C, bool add) {
  __shared__ float slices[kSlices][32];
  D* const to = blockIdx.y == 0 ? first : second;
  // Equal for the whole block, so all threads reach the barrier.
  if (to == nullptr) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t c = std::int64_t{blockIdx.x} * 32 + lane;
  const std::int64_t slice = (groups + kSlices - 1) / kSlices;
  const std::int64_t end = (warp + 1) * slice < groups ? (warp + 1) * slice : groups;
  float sum = 0;
  if (c < C) {
#pragma unroll 8
    for (std::int64_t g = warp * slice; g < end; ++g) sum += partial[g * stride + blockIdx.y * C + c];
  }
  slices[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || c >= C) return;
  for (int other = 1; other < kSlices; ++other) sum += slices[other][lane];
  if (add) sum += to_float(to[c]);
  to[c] = from_float<D>(sum);
}

unsigned count(std::int64_t n, std::int64_t unit) { return static_cast<unsigned>((n + unit - 1) / unit); }

/// Adds the groups' sums of C columns of `partial` to `first`, and of the next C to `second`. Rounded once to
/// the gradient's type, after its old value was added in fp32.
void finish(const Context& on, const char* kernel, Ptr first, Ptr second, const float* partial,
            std::int64_t groups, std::int64_t stride, std::int64_t C, Write write) {
  const Ptr any = first.data != nullptr ? first : second;
  if (any.data == nullptr) return;
  if (second.data != nullptr && second.type != any.type) {
    throw_bad_argument(kernel, "gradients of weight and bias must share one element type");
  }
  with_type(kernel, any.type, [&](auto tag) {
    using D = decltype(tag);
    // One grid row per result.
    const dim3 grid(count(C, 32), second.data != nullptr ? 2 : 1);
    finish_kernel<<<grid, kSlices * 32, 0, stream_of(on)>>>(static_cast<D*>(first.data),
                                                            static_cast<D*>(second.data), partial, groups,
                                                            stride, C, write == Write::add);
  });
  check_launch(kernel);
}

/// Whether rows of C elements of a type, in arrays at these addresses, fit a team. If C * size_of(type) is a
/// multiple of 16, every row is aligned if the first is.
bool fits_team(DType type, std::int64_t C, const void* first, const void* second, const void* third) {
  return C <= kMostTeam * 32 * kLaneColumns && static_cast<std::size_t>(C) * size_of(type) % 16 == 0 &&
         aligned(first, 16) && aligned(second, 16) && aligned(third, 16);
}
/// Threads of a team.
unsigned team_of(std::int64_t C) { return count(C, 32 * kLaneColumns) * 32; }

}  // namespace

void layer_norm_forward(const Context& on, Ptr y, float* mean, float* rstd, ConstPtr x, ConstPtr weight,
                        ConstPtr bias, std::int64_t N, std::int64_t C, float epsilon) {
  constexpr const char* kName = "layer_norm_forward";
  if (N == 0) return;
  if (weight.type != bias.type) throw_bad_argument(kName, "weight and bias must share one element type");
  // One team per row and block; otherwise one warp per row, kWarps rows per block.
  if (x.type == y.type && x.type == weight.type && fits_team(x.type, C, x.data, y.data, x.data)) {
    with_type(kName, x.type, [&](auto tag) {
      using T = decltype(tag);
      team_forward_kernel<<<static_cast<unsigned>(N), team_of(C), 0, stream_of(on)>>>(
          static_cast<T*>(y.data), mean, rstd, static_cast<const T*>(x.data),
          static_cast<const T*>(weight.data), static_cast<const T*>(bias.data), static_cast<int>(C), epsilon);
    });
    return check_launch(kName);
  }
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
  const bool team =
      dy.type == x.type && dy.type == weight.type && fits_team(dy.type, C, dx.data, dy.data, x.data);
  // 2 C sums per group: for weight, then for bias.
  const std::int64_t group = group_rows(kName, N, 2 * C, team ? kTeamRows : kRowGroup);
  const std::int64_t groups = (N + group - 1) / group;
  // Without rows there is nothing to launch, but with Write::set finish() still sets the gradients to 0.
  if (N > 0 && team) {
    const bool sums = dweight.data != nullptr || dbias.data != nullptr;
    with_type(kName, dy.type, [&](auto tag) {
      using T = decltype(tag);
      team_backward_kernel<<<static_cast<unsigned>(groups), team_of(C), 0, stream_of(on)>>>(
          static_cast<T*>(dx.data), sums ? partial : nullptr, static_cast<const T*>(dy.data),
          static_cast<const T*>(x.data), static_cast<const T*>(weight.data), mean, rstd, N,
          static_cast<int>(C), group, write_dx == Write::add);
    });
    check_launch(kName);
  } else if (N > 0) {
    with_type(kName, dy.type, [&](auto g_tag) {
      with_type(kName, x.type, [&](auto x_tag) {
        using G = decltype(g_tag);
        using X = decltype(x_tag);
        const auto* g = static_cast<const G*>(dy.data);
        const auto* in = static_cast<const X*>(x.data);
        // First, because dx may be dy.
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
  finish(on, kName, dweight, dbias, partial, groups, 2 * C, C, write_params);
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
  // One sum per column.
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
  finish(on, kName, total, {}, partial, groups, cols, cols, write);
}

}  // namespace shardscope::kernels::cuda
