// AdamW on a GPU against the bandwidth that the same GPU copies with, in turns: `bench_gpu_adamw [ELEMENTS]
// [ROUNDS]`. Exits with 2 and a message where there is no GPU. Bytes of a step: master, momentum and variance
// read and written in fp32, a 16-bit gradient read, a 16-bit parameter written; bytes of a copy: read and
// written.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "kernels/ops.h"
#include "runtime/device/device.h"

namespace {

using namespace shardscope;
using Clock = std::chrono::steady_clock;
constexpr double kGoalPercent = 85;  // the target on an H200
constexpr int kRepeats = 20;         // queued at once, so that the host's launch is not what is measured

/// Seconds of one of kRepeats runs of `work`, which is queued on the compute stream.
template <typename Work>
double seconds(device::Device& device, const Work& work) {
  device.compute().synchronize();
  const auto begin = Clock::now();
  for (int i = 0; i < kRepeats; ++i) work();
  device.compute().synchronize();
  return std::chrono::duration<double>(Clock::now() - begin).count() / kRepeats;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(std::int64_t elems, int rounds) {
  const auto device = device::make_cuda_device({});
  const auto hold = [&](std::size_t bytes) {
    device::Buffer buffer = device->memory().allocate(bytes, {}, device->compute());
    device->compute().run([&](const kernels::Exec& exec) { kernels::fill_zero(exec, buffer.data(), bytes); });
    return buffer;
  };
  const auto n = static_cast<std::size_t>(elems);
  const device::Buffer master = hold(4 * n), m = hold(4 * n), v = hold(4 * n), grad = hold(2 * n),
                       param = hold(2 * n);
  const std::size_t step_bytes = (2 * 3 * 4 + 2 + 2) * n;
  const std::size_t copy_bytes = step_bytes / 2;  // read and written
  const device::Buffer from = hold(copy_bytes), to = hold(copy_bytes);
  kernels::AdamW settings;
  settings.step = 1;
  const auto step = [&] {
    device->compute().run([&](const kernels::Exec& exec) {
      kernels::adamw_step(exec, static_cast<float*>(master.data()), static_cast<float*>(m.data()),
                          static_cast<float*>(v.data()), {param.data(), kernels::DType::bf16},
                          {grad.data(), kernels::DType::bf16}, elems, settings);
    });
  };
  const auto copy = [&] { device->copy_async(to.data(), from.data(), copy_bytes, device->compute()); };
  seconds(*device, step);
  seconds(*device, copy);
  std::vector<double> steps, copies;
  for (int round = 0; round < rounds; ++round) {
    steps.push_back(seconds(*device, step));
    copies.push_back(seconds(*device, copy));
  }
  const auto bytes = static_cast<double>(step_bytes);
  const double step_gbs = bytes / median(steps) * 1e-9, copy_gbs = bytes / median(copies) * 1e-9;
  std::printf("%s\n%lld elements, %d bytes each, median of %d rounds\n", device->describe().c_str(),
              static_cast<long long>(elems), 28, rounds);
  const double percent = 100 * step_gbs / copy_gbs;
  std::printf("AdamW %.1f GB/s, copy %.1f GB/s: %.1f %% of the copy's bandwidth\n", step_gbs, copy_gbs,
              percent);
  std::printf("goal AdamW at %.0f %% or more of it: %s\n", kGoalPercent,
              percent >= kGoalPercent ? "met" : "MISSED");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long long elems = argc > 1 ? std::atoll(argv[1]) : 124'439'808;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  if (elems < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: bench_gpu_adamw [ELEMENTS] [ROUNDS]; both at least 1\n");
    return 1;
  }
  if (device::cuda_device_count() == 0) {
    std::fprintf(stderr, "bench_gpu_adamw: no CUDA device here; see docs/gpu-checks.md\n");
    return 2;
  }
  try {
    return run(elems, rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu_adamw: %s\n", error.what());
    return 1;
  }
}
