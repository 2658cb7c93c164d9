#include "runtime/train/device_choice.h"

#include <charconv>
#include <stdexcept>

#include "runtime/comm/cuda/attach.h"
#include "runtime/train/options.h"

namespace shardscope::train {
namespace {

constexpr std::string_view kCuda = "cuda";

/// The N of "cuda:N"; -1 for "cuda".
int ordinal_in(const std::string& text) {
  if (text == kCuda) return -1;
  int ordinal = -1;
  const char* digits = text.data() + kCuda.size() + 1;
  const char* end = text.data() + text.size();
  if (text.size() > kCuda.size() + 1 && text.compare(0, kCuda.size() + 1, "cuda:") == 0) {
    const auto [stop, error] = std::from_chars(digits, end, ordinal);
    if (error == std::errc{} && stop == end && ordinal >= 0) return ordinal;
  }
  throw UsageError("--device " + text + ": unknown; use cpu, cuda or cuda:N (a number as CUDA counts)");
}

}  // namespace

std::unique_ptr<device::Device> open_device(const std::string& text, comm::World& world, comm::World& copy,
                                            std::chrono::milliseconds timeout) {
  if (text == "cpu") return device::make_cpu_device(world.region());
  device::CudaDeviceOptions options;
  options.ordinal = ordinal_in(text);
  if (options.ordinal < 0) {
    const int count = device::cuda_device_count();
    options.ordinal = count > 0 ? static_cast<int>(world.rank() % world.ranks_per_node()) % count : 0;
  }
  auto device = device::make_cuda_device(options);
  comm::attach_cuda(copy, *device, options.ordinal, comm::DeviceTransport::automatic, timeout);
  return device;
}

}  // namespace shardscope::train
