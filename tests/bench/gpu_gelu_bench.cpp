// A GELU in the epilogue of the product beside it against a kernel of its own, in turns on the same GPU:
// `bench_gpu_gelu [TOKENS] [WIDTH] [ROUNDS]`, a GPT-2 block's layers of WIDTH to 4 WIDTH and back, bf16.
// Exits with 2 and a message where there is no GPU. Where kernels/cuda/linear.cpp takes its own kernel
// anyway, both times are of the same kernels.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <vector>

#include "kernels/ops.h"
#include "runtime/device/device.h"
#include "tests/bench/timing.h"

namespace {

using namespace shardscope;
using kernels::Exec;
constexpr int kRepeats = 50;  // queued at once, so that the host's launch is not what is measured

int run(std::int64_t tokens, std::int64_t width, int rounds) {
  const auto device = device::make_cuda_device({});
  const std::int64_t inner = 4 * width;
  std::vector<device::Buffer> held;
  const auto hold = [&](std::int64_t elems) {
    const std::size_t bytes = 2 * static_cast<std::size_t>(elems);
    held.push_back(device->memory().allocate(bytes, {}, device->compute()));
    void* const data = held.back().data();
    device->compute().run([&](const Exec& e) { kernels::fill_zero(e, data, bytes); });
    return kernels::Ptr{data, kernels::DType::bf16};
  };
  const kernels::Ptr x = hold(tokens * width), up = hold(inner * width), bias = hold(inner),
                     kept = hold(tokens * inner), y = hold(tokens * inner), down = hold(width * inner),
                     dy = hold(tokens * width), dx = hold(tokens * inner);
  const std::function<void(const Exec&)> work[] = {
      [&](const Exec& e) { kernels::linear_gelu_forward(e, y, kept, x, up, bias, tokens, width, inner); },
      [&](const Exec& e) {
        kernels::linear_forward(e, kept, x, up, bias, tokens, width, inner);
        kernels::gelu_forward(e, y, kept, tokens * inner);
      },
      [&](const Exec& e) {
        kernels::linear_gelu_backward_input(e, dx, dy, down, kept, tokens, inner, width);
      },
      [&](const Exec& e) {
        kernels::linear_backward_input(e, dx, dy, down, tokens, inner, width, kernels::Write::set);
        kernels::gelu_backward(e, dx, dx, kept, tokens * inner);
      }};
  const auto microseconds = [&](const std::function<void(const Exec&)>& one) {
    device->compute().synchronize();
    return 1e6 / kRepeats * seconds([&] {
             for (int i = 0; i < kRepeats; ++i) device->compute().run(one);
             device->compute().synchronize();
           });
  };
  std::vector<double> took[4];
  for (const auto& one : work) microseconds(one);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < 4; ++i) took[i].push_back(microseconds(work[i]));
  }
  std::printf("%s\n%lld tokens, width %lld, bf16, median of %d rounds of %d\n", device->describe().c_str(),
              static_cast<long long>(tokens), static_cast<long long>(width), rounds, kRepeats);
  for (std::size_t i = 0; i < 4; i += 2) {
    const double together = median(took[i]), separate = median(took[i + 1]);
    std::printf("%s with its product %.1f us, after it %.1f us: %+.1f %%\n",
                i == 0 ? "GELU" : "gradient of GELU", together, separate, 100 * (together / separate - 1));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long long tokens = argc > 1 ? std::atoll(argv[1]) : 32 * 1024;
  const long long width = argc > 2 ? std::atoll(argv[2]) : 768;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  if (tokens < 1 || width < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: bench_gpu_gelu [TOKENS] [WIDTH] [ROUNDS]; all at least 1\n");
    return 1;
  }
  if (device::cuda_device_count() == 0) {
    std::fprintf(stderr, "bench_gpu_gelu: no CUDA device here; see docs/gpu-checks.md\n");
    return 2;
  }
  try {
    return run(tokens, width, rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu_gelu: %s\n", error.what());
    return 1;
  }
}
