// Speed of the CPU kernels at the shapes of a GPT of width 384, context 256, batch 8. Counters: GFLOP/s for
// products and attention (causal: half of the square), bytes/s of the memory an operation must touch for the
// rest. Arguments: element type (0 f32, 1 bf16, 2 f16), then shapes. Run: kernels_bench
// --benchmark_min_time=0.1
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "kernels/ops.h"

namespace {

using namespace shardscope::kernels;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::int64_t kRows = 2048, kWidth = 384, kHeads = 6, kContext = 256;

/// Values in [-1, 1] in any type, in huge pages where the system has them, as device memory is.
class Tensor {
 public:
  Tensor(std::int64_t n, DType type) : type_(type) {
    const std::size_t pages = (static_cast<std::size_t>(n) * size_of(type) + kHugePage - 1) / kHugePage;
    bytes_.reset(static_cast<unsigned char*>(std::aligned_alloc(kHugePage, pages * kHugePage)));
    if (bytes_ == nullptr) throw std::bad_alloc();
    madvise(bytes_.get(), pages * kHugePage, MADV_HUGEPAGE);  // refused: pages of 4 KiB
    std::vector<float> x(static_cast<std::size_t>(n));
    std::minstd_rand engine(1);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    for (float& value : x) value = uniform(engine);
    cast({}, *this, {x.data(), DType::f32}, n);
  }
  operator Ptr() { return {bytes_.get(), type_}; }             // NOLINT(google-explicit-constructor)
  operator ConstPtr() const { return {bytes_.get(), type_}; }  // NOLINT(google-explicit-constructor)
  float* f32() { return reinterpret_cast<float*>(bytes_.get()); }

 private:
  static constexpr std::size_t kHugePage = std::size_t{1} << 21;
  struct Free {
    void operator()(unsigned char* p) const { std::free(p); }
  };
  DType type_;
  std::unique_ptr<unsigned char, Free> bytes_;
};

DType type_of(const benchmark::State& state) { return static_cast<DType>(state.range(0)); }

void count_flops(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}
void count_bytes(benchmark::State& state, std::int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

void linear(benchmark::State& state, int pass) {
  const DType type = type_of(state);
  const std::int64_t in = state.range(1);
  const std::int64_t out = state.range(2);
  Tensor x(kRows * in, type);
  Tensor y(kRows * out, type);
  Tensor w(in * out, type);
  Tensor bias(out, type);
  for (auto _ : state) {
    if (pass == 0) linear_forward({}, y, x, w, bias, kRows, in, out);
    if (pass == 1) linear_backward_input({}, x, y, w, kRows, in, out, Write::set);
    if (pass == 2) linear_backward_weight({}, w, bias, y, x, kRows, in, out, Write::set);
  }
  count_flops(state, 2.0 * static_cast<double>(kRows * in * out));
}
void shapes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t type : {0, 1, 2}) {
    for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{384, 1152},
                                  {384, 384},
                                  {384, 1536},
                                  {1536, 384},
                                  {384, 256}}) {
      b->Args({type, in, out});
    }
  }
}
void types(benchmark::internal::Benchmark* b) { b->Arg(0)->Arg(1)->Arg(2); }
BENCHMARK_CAPTURE(linear, forward, 0)->Apply(shapes);
BENCHMARK_CAPTURE(linear, backward_input, 1)->Apply(shapes);
BENCHMARK_CAPTURE(linear, backward_weight, 2)->Apply(shapes);

void attention(benchmark::State& state, bool backward) {
  const DType type = type_of(state);
  const std::int64_t B = kRows / kContext;
  Tensor qkv(kRows * 3 * kWidth, type);
  Tensor out(kRows * kWidth, type);
  Tensor dout(kRows * kWidth, type);
  Tensor dqkv(kRows * 3 * kWidth, type);
  std::vector<float> logsumexp(static_cast<std::size_t>(B * kHeads * kContext));
  Tensor scratch_bytes(
      static_cast<std::int64_t>(attention_scratch_bytes({}, type, B, kContext, kWidth, kHeads)) / 4 + 1,
      DType::f32);
  void* const scratch = scratch_bytes.f32();
  attention_forward({}, out, logsumexp.data(), qkv, B, kContext, kWidth, kHeads, scratch);
  for (auto _ : state) {
    if (backward) {
      attention_backward({}, dqkv, dout, out, qkv, logsumexp.data(), B, kContext, kWidth, kHeads, scratch);
    } else {
      attention_forward({}, out, logsumexp.data(), qkv, B, kContext, kWidth, kHeads, scratch);
    }
  }
  count_flops(state, (backward ? 5.0 : 2.0) * static_cast<double>(B * kContext * kContext * kWidth));
}
BENCHMARK_CAPTURE(attention, forward, false)->Apply(types);
BENCHMARK_CAPTURE(attention, backward, true)->Apply(types);

void layer_norm(benchmark::State& state, bool backward) {
  const DType type = type_of(state);
  Tensor x(kRows * kWidth, type);
  Tensor y(kRows * kWidth, type);
  Tensor dx(kRows * kWidth, type);
  Tensor w(kWidth, type);
  Tensor b(kWidth, type);
  std::vector<float> mean(kRows);
  std::vector<float> rstd(kRows);
  layer_norm_forward({}, y, mean.data(), rstd.data(), x, w, b, kRows, kWidth, 1e-5F);
  for (auto _ : state) {
    if (backward) {
      layer_norm_backward({}, dx, w, b, y, x, w, mean.data(), rstd.data(), kRows, kWidth, Write::set,
                          Write::set);
    } else {
      layer_norm_forward({}, y, mean.data(), rstd.data(), x, w, b, kRows, kWidth, 1e-5F);
    }
  }
  count_bytes(state, (backward ? 3 : 2) * kRows * kWidth * static_cast<std::int64_t>(size_of(type)));
}
BENCHMARK_CAPTURE(layer_norm, forward, false)->Apply(types);
BENCHMARK_CAPTURE(layer_norm, backward, true)->Apply(types);

void gelu(benchmark::State& state, bool backward) {
  const DType type = type_of(state);
  const std::int64_t n = kRows * 4 * kWidth;
  Tensor x(n, type);
  Tensor y(n, type);
  Tensor dx(n, type);
  for (auto _ : state) {
    if (backward) {
      gelu_backward({}, dx, y, x, n);
    } else {
      gelu_forward({}, y, x, n);
    }
  }
  count_bytes(state, (backward ? 3 : 2) * n * static_cast<std::int64_t>(size_of(type)));
}
BENCHMARK_CAPTURE(gelu, forward, false)->Apply(types);
BENCHMARK_CAPTURE(gelu, backward, true)->Apply(types);

void residual(benchmark::State& state) {
  const DType type = type_of(state);
  Tensor a(kRows * kWidth, type);
  Tensor b(kRows * kWidth, type);
  for (auto _ : state) add({}, a, a, b, kRows * kWidth);
  count_bytes(state, 3 * kRows * kWidth * static_cast<std::int64_t>(size_of(type)));
}
BENCHMARK(residual)->Apply(types);

void loss(benchmark::State& state) {
  const std::int64_t V = state.range(1);
  const std::int64_t rows = V > 1000 ? 64 : kRows;
  Tensor logits(rows * V, type_of(state));
  const std::vector<std::int32_t> target(static_cast<std::size_t>(rows), 3);
  float mean = 0;
  for (auto _ : state) cross_entropy({}, &mean, logits, target.data(), rows, V, 1.0F);
  count_bytes(state, 2 * rows * V * static_cast<std::int64_t>(size_of(type_of(state))));
}
BENCHMARK(loss)->Args({0, 256})->Args({1, 256})->Args({0, 50257})->Args({1, 50257});

void adamw(benchmark::State& state) {
  const DType type = type_of(state);
  const std::int64_t n = 1 << 22;
  Tensor w(n, DType::f32);
  Tensor m(n, DType::f32);
  std::vector<float> v(static_cast<std::size_t>(n), 0.5F);
  Tensor grad(n, type);
  Tensor param(n, type);
  AdamW settings;
  settings.lr = 0.0F;  // the values stay as they are
  settings.step = 10;
  const Ptr param16 = type == DType::f32 ? Ptr{} : Ptr(param);
  for (auto _ : state) adamw_step({}, w.f32(), m.f32(), v.data(), param16, grad, n, settings);
  // Master, m and v are read and written; then 4 bytes: an fp32 gradient, or a 16-bit one and the 16-bit
  // copy.
  count_bytes(state, n * 28);
}
BENCHMARK(adamw)->Apply(types);

void copy(benchmark::State& state) {  // the machine's memory bandwidth, to compare adamw with
  const std::size_t bytes = std::size_t{1} << 26;
  std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  for (auto _ : state) {
    cast({}, {to.data(), DType::f32}, {from.data(), DType::f32}, static_cast<std::int64_t>(bytes / 4));
    benchmark::ClobberMemory();
  }
  count_bytes(state, static_cast<std::int64_t>(2 * bytes));
}
BENCHMARK(copy);

void norm(benchmark::State& state) {
  const std::int64_t n = 1 << 22;
  Tensor x(n, type_of(state));
  double sum = 0;
  std::uint32_t bad = 0;
  for (auto _ : state) squared_norm({}, &sum, &bad, x, n);
  benchmark::DoNotOptimize(sum);
  count_bytes(state, n * static_cast<std::int64_t>(size_of(type_of(state))));
}
BENCHMARK(norm)->Apply(types);

void reduce(benchmark::State& state) {
  const DType type = type_of(state);
  const std::int64_t n = 1 << 20;
  std::vector<Tensor> inputs;
  for (int i = 0; i < 4; ++i) inputs.emplace_back(n, type);
  std::vector<const void*> pointers;
  for (const Tensor& t : inputs) pointers.push_back(ConstPtr(t).data);
  Tensor out(n, type);
  for (auto _ : state) reduce_sum({}, out, pointers.data(), 4, type, n, 0.25F);
  count_bytes(state, 5 * n * static_cast<std::int64_t>(size_of(type)));
}
BENCHMARK(reduce)->Apply(types);

}  // namespace

BENCHMARK_MAIN();
