// Records a device of this runtime: its streams have their own lanes, and the engine's events determine the
// owner of work.
#include "runtime/profile/gpu_recorder.h"

#include <array>
#include <utility>

#include "instrumentation/emitter.h"
#include "instrumentation/post.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/profile/cuda/call_owners.h"
#include "runtime/profile/cuda/record_thread.h"

namespace shardscope::profile {
namespace cuda {
namespace {

using instrumentation::StreamId;

class DeviceRecorder final : public GpuRecorder {
 public:
  DeviceRecorder(device::Device& device, NameId name_id)
      : device_(device),
        thread_({.wanted = [] { return instrumentation::enabled(instrumentation::Detail::kernels); },
                 .emit_at = &instrumentation::emit_at,
                 .message =
                     [](bool warning, const std::string& text) {
                       instrumentation::post_message(
                           warning ? instrumentation::Severity::warning : instrumentation::Severity::info,
                           text);
                     },
                 .name_id = std::move(name_id)},
                [this, ordinal = current_device()](const CuptiApi& api, GpuLanes& lanes) {
                  return prepare(ordinal, api, lanes);
                }) {
    if (thread_.has_place()) device::cuda::set_stream_observer(&note_event);
  }
  ~DeviceRecorder() override {
    if (thread_.has_place()) device::cuda::set_stream_observer(nullptr);
  }

  State state() const noexcept override { return thread_.state(); }
  std::string reason() const override { return thread_.reason(); }
  void flush() override { thread_.flush(); }

 private:
  static int current_device() {
    int ordinal = 0;
    cudaGetDevice(&ordinal);
    return ordinal;
  }

  std::string prepare(int ordinal, const CuptiApi& api, GpuLanes& lanes) const {
    if (const cudaError_t result = cudaSetDevice(ordinal); result != cudaSuccess)
      return std::string("cudaSetDevice failed: ") + cudaGetErrorString(result);
    const std::array<std::pair<device::Stream*, StreamId>, 4> streams{
        {{&device_.compute(), StreamId::gpu_compute},
         {&device_.gather(), StreamId::gpu_gather},
         {&device_.reduce(), StreamId::gpu_reduce},
         {&device_.copy(), StreamId::gpu_copy}}};
    for (const auto& [stream, lane] : streams) {
      std::uint32_t id = 0;
      const cudaStream_t handle = static_cast<device::cuda::CudaStream*>(stream)->handle();
      if (api.GetStreamIdEx(nullptr, handle, 0, &id) == CUPTI_SUCCESS) lanes.know(id, lane);
    }
    return {};
  }

  device::Device& device_;
  RecordThread thread_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<GpuRecorder> record_gpu(device::Device& device, NameId name_id) {
  if (device.backend() != kernels::Backend::cuda) return nullptr;
  return std::make_unique<cuda::DeviceRecorder>(device, std::move(name_id));
}

}  // namespace shardscope::profile
