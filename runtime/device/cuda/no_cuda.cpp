// The error of a build without CUDA when a CUDA device is requested.
#include "runtime/device/device.h"
#include "runtime/device/error.h"

namespace shardscope::device {

int cuda_device_count() noexcept { return 0; }

std::unique_ptr<Device> make_cuda_device(const CudaDeviceOptions& /*options*/) {
  throw BackendError(
      "make_cuda_device", 0,
      "this build has no CUDA backend; use the CPU, or build with the preset \"cuda\" where the CUDA "
      "toolkit is installed",
      "");
}

}  // namespace shardscope::device
