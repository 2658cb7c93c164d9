// The error of a build without CUDA when collectives of device memory are requested.
#include "runtime/comm/cuda/attach.h"
#include "runtime/device/error.h"

namespace shardscope::comm {

void attach_cuda(World&, device::Device&, int, DeviceTransport, std::chrono::milliseconds) {
  throw BackendError("attach_cuda", 0, "this build has no CUDA backend", "");
}

}  // namespace shardscope::comm
