// Element-wise kernels: 16-byte loads and stores if every array is aligned for them, else single elements.
// Both paths compute an element equally, so results do not depend on alignment.
#include <algorithm>
#include <string>

#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

// Grids are limited to the size that fills the device; threads loop over the rest in strides of the grid.
constexpr int kThreads = 256;

/// y[i] = f(a[i], b[i]) for i < n; an operation of one input ignores b. N elements at a time;
/// the first block computes the last n % N one by one. y may be a or b if the types are
/// equal: a thread reads its elements before it writes them, and no other thread accesses
/// them.
template <int N, class Y, class A, class B, class F>
__global__ void __launch_bounds__(kThreads) map_kernel(Y* y, const A* a, const B* b, std::int64_t n, F f) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t packs = n / N;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs; i += stride) {
    // Neighbouring threads have neighbouring packs: a warp's access is contiguous.
    const Pack<A, N> pa = reinterpret_cast<const Pack<A, N>*>(a)[i];
    const Pack<B, N> pb = reinterpret_cast<const Pack<B, N>*>(b)[i];
    Pack<Y, N> py;
#pragma unroll
    for (int k = 0; k < N; ++k) py.x[k] = from_float<Y>(f(to_float(pa.x[k]), to_float(pb.x[k])));
    reinterpret_cast<Pack<Y, N>*>(y)[i] = py;
  }
  if (blockIdx.x == 0 && threadIdx.x < n - packs * N) {
    const std::int64_t i = packs * N + threadIdx.x;
    y[i] = from_float<Y>(f(to_float(a[i]), to_float(b[i])));
  }
}

template <class Y, class A, class B, class F>
void launch_map(const Context& on, const char* kernel, Y* y, const A* a, const B* b, std::int64_t n, F f) {
  if (n == 0) return;
  // The widest type determines how many elements make 16 bytes; narrower ones move 8.
  constexpr int kWide = 16 / static_cast<int>(std::max({sizeof(Y), sizeof(A), sizeof(B)}));
  const bool wide =
      aligned(y, sizeof(Y) * kWide) && aligned(a, sizeof(A) * kWide) && aligned(b, sizeof(B) * kWide);
  if (wide) {
    map_kernel<kWide><<<blocks_for(on, n, kThreads, 2 * kWide), kThreads, 0, stream_of(on)>>>(y, a, b, n, f);
  } else {
    map_kernel<1><<<blocks_for(on, n, kThreads, 4), kThreads, 0, stream_of(on)>>>(y, a, b, n, f);
  }
  check_launch(kernel);
}

/// Adapts an operation of one input to two.
template <class F>
struct OfFirst {
  F f;
  __device__ float operator()(float p, float) const { return f(p); }
};

template <class F>
void map1(const Context& on, const char* kernel, Ptr y, ConstPtr a, std::int64_t n, F f) {
  with_type(kernel, y.type, [&](auto y_tag) {
    with_type(kernel, a.type, [&](auto a_tag) {
      using Y = decltype(y_tag);
      using A = decltype(a_tag);
      const auto* in = static_cast<const A*>(a.data);
      // b is a again and ignored by f.
      launch_map(on, kernel, static_cast<Y*>(y.data), in, in, n, OfFirst<F>{f});
    });
  });
}

template <class F>
void map2(const Context& on, const char* kernel, Ptr y, ConstPtr a, ConstPtr b, std::int64_t n, F f) {
  with_type(kernel, y.type, [&](auto y_tag) {
    with_type(kernel, a.type, [&](auto a_tag) {
      with_type(kernel, b.type, [&](auto b_tag) {
        using Y = decltype(y_tag);
        using A = decltype(a_tag);
        using B = decltype(b_tag);
        launch_map(on, kernel, static_cast<Y*>(y.data), static_cast<const A*>(a.data),
                   static_cast<const B*>(b.data), n, f);
      });
    });
  });
}

constexpr float kSqrt2OverPi = 0.7978845608028654F;
constexpr float kCubic = 0.044715F;

/// As on the CPU: sigmoid(2 z(u)), since 0.5 (1 + tanh z) = 1 / (1 + exp(-2 z)). expf may overflow to
/// infinity: 1 / (1 + inf) is 0, which is correct.
__device__ __forceinline__ float gelu_gate(float u) {
  const float minus_2z = u * fmaf(u * u, -2.0F * kSqrt2OverPi * kCubic, -2.0F * kSqrt2OverPi);
  return 1.0F / (1.0F + expf(minus_2z));
}
/// At |u| = 12 the gate is 0 or 1 in fp32. Without the bound u * u overflows for large u, and the slope is 0
/// * inf = NaN.
__device__ __forceinline__ float gelu_clamp(float u) { return fminf(12.0F, fmaxf(-12.0F, u)); }

struct Gelu {
  __device__ float operator()(float u) const { return u * gelu_gate(gelu_clamp(u)); }
};
// With s = sigmoid(2 z): d(u s)/du = s + u s (1 - s) 2 z', z' = sqrt(2/pi) (1 + 3 * 0.044715 u^2).
struct GeluSlope {
  __device__ float operator()(float g, float x) const {
    // fmaxf drops NaN: its slope is that of -12, which is 0.
    const float u = gelu_clamp(x);
    const float s = gelu_gate(u);
    const float slope2 = fmaf(u * u, 6.0F * kSqrt2OverPi * kCubic, 2.0F * kSqrt2OverPi);
    return g * fmaf(u * s * (1.0F - s), slope2, s);
  }
};
// NaN becomes 0 here; the CPU's kernel keeps it.
struct Relu {
  __device__ float operator()(float u) const { return u > 0.0F ? u : 0.0F; }
};
// The slope at 0 and of NaN is 0.
struct ReluSlope {
  __device__ float operator()(float g, float u) const { return u > 0.0F ? g : 0.0F; }
};
struct Sum {
  __device__ float operator()(float p, float q) const { return p + q; }
};
struct Same {
  __device__ float operator()(float p) const { return p; }
};
struct Times {
  float factor;
  __device__ float operator()(float p) const { return p * factor; }
};

/// Inputs of a sum over ranks, passed by value as a kernel argument, 2 KiB: the caller's array of pointers is
/// in host memory and may change as soon as the launch has returned.
constexpr std::uint32_t kMaxInputs = 256;
struct Inputs {
  const void* at[kMaxInputs];
};

/// out[i] = factor * sum of inputs.at[k][i] over k < count, in this order, in fp32; i < n, N at a time. The
/// first input initializes the sum: 0 + -0 would be 0. `out` may be one of the inputs: a thread reads its
/// elements of all inputs before it writes.
template <int N, class Y, class X>
__global__ void __launch_bounds__(kThreads) reduce_kernel(Y* out, const __grid_constant__ Inputs inputs,
                                                          std::uint32_t count, std::int64_t n, float factor) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t packs = n / N;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs; i += stride) {
    // An element's sum stays in registers over all inputs. dispatch.cpp guarantees at least
    // one.
    float total[N];
    for (std::uint32_t k = 0; k < count; ++k) {
      const Pack<X, N> p = static_cast<const Pack<X, N>*>(inputs.at[k])[i];
#pragma unroll
      for (int e = 0; e < N; ++e) total[e] = k == 0 ? to_float(p.x[e]) : total[e] + to_float(p.x[e]);
    }
    Pack<Y, N> result;
#pragma unroll
    for (int e = 0; e < N; ++e) result.x[e] = from_float<Y>(total[e] * factor);
    reinterpret_cast<Pack<Y, N>*>(out)[i] = result;
  }
  if (blockIdx.x == 0 && threadIdx.x < n - packs * N) {
    const std::int64_t i = packs * N + threadIdx.x;
    float total = to_float(static_cast<const X*>(inputs.at[0])[i]);
    for (std::uint32_t k = 1; k < count; ++k) total += to_float(static_cast<const X*>(inputs.at[k])[i]);
    out[i] = from_float<Y>(total * factor);
  }
}

}  // namespace

void gelu_forward(const Context& on, Ptr y, ConstPtr x, std::int64_t n) {
  map1(on, "gelu_forward", y, x, n, Gelu{});
}
void gelu_backward(const Context& on, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n) {
  map2(on, "gelu_backward", dx, dy, x, n, GeluSlope{});
}
void relu_forward(const Context& on, Ptr y, ConstPtr x, std::int64_t n) {
  map1(on, "relu_forward", y, x, n, Relu{});
}
void relu_backward(const Context& on, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n) {
  map2(on, "relu_backward", dx, dy, x, n, ReluSlope{});
}
void add(const Context& on, Ptr y, ConstPtr a, ConstPtr b, std::int64_t n) {
  map2(on, "add", y, a, b, n, Sum{});
}
// In place on the first operand.
void accumulate(const Context& on, Ptr dst, ConstPtr src, std::int64_t n) {
  map2(on, "accumulate", dst, dst, src, n, Sum{});
}
void scale(const Context& on, Ptr x, float factor, std::int64_t n) {
  map1(on, "scale", x, x, n, Times{factor});
}

void cast(const Context& on, Ptr dst, ConstPtr src, std::int64_t n) {
  if (dst.type != src.type) return map1(on, "cast", dst, src, n, Same{});
  if (n == 0 || dst.data == src.data) return;
  // No conversion: bits are copied.
  check(cudaMemcpyAsync(dst.data, src.data, static_cast<std::size_t>(n) * size_of(src.type),
                        cudaMemcpyDeviceToDevice, stream_of(on)),
        "cast", "cudaMemcpyAsync");
}

void fill_zero(const Context& on, void* data, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(data, 0, bytes, stream_of(on)), "fill_zero", "cudaMemsetAsync");
}

void reduce_sum(const Context& on, Ptr out, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t n, float factor) {
  if (n == 0) return;
  if (count > kMaxInputs) {
    throw_bad_argument("reduce_sum", "count is " + std::to_string(count) + "; the CUDA kernel sums at most " +
                                         std::to_string(kMaxInputs) + " arrays");
  }
  // The kernel argument: pointers are read on the host now, arrays on the device later.
  Inputs all{};
  std::copy_n(inputs, count, all.at);
  with_type("reduce_sum", out.type, [&](auto y_tag) {
    with_type("reduce_sum", type, [&](auto x_tag) {
      using Y = decltype(y_tag);
      using X = decltype(x_tag);
      // All inputs must be aligned: a single unaligned one selects the path of single elements.
      constexpr int kWide = 16 / static_cast<int>(std::max(sizeof(Y), sizeof(X)));
      auto* to = static_cast<Y*>(out.data);
      const bool wide =
          aligned(to, sizeof(Y) * kWide) &&
          std::all_of(inputs, inputs + count, [](const void* p) { return aligned(p, sizeof(X) * kWide); });
      if (wide) {
        reduce_kernel<kWide, Y, X>
            <<<blocks_for(on, n, kThreads, kWide), kThreads, 0, stream_of(on)>>>(to, all, count, n, factor);
      } else {
        reduce_kernel<1, Y, X>
            <<<blocks_for(on, n, kThreads, 4), kThreads, 0, stream_of(on)>>>(to, all, count, n, factor);
      }
      check_launch("reduce_sum");
    });
  });
}

}  // namespace shardscope::kernels::cuda
