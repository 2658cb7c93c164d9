// Records the work of a CUDA device through the driver's profiler (CUPTI), as events, while the detail level
// is `kernels`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/device/device.h"

namespace shardscope::profile {

/// Records during its lifetime whenever the level is on; its thread fetches the records, converts them to
/// events and checks the level, so that it can be switched during a run. If CUPTI is missing, or used by
/// another profiler, it emits one warning and training continues.
class GpuRecorder {
 public:
  virtual ~GpuRecorder() = default;
  enum class State : std::uint8_t { off, recording, refused };
  [[nodiscard]] virtual State state() const noexcept = 0;
  /// Why recording was refused; empty otherwise.
  [[nodiscard]] virtual std::string reason() const = 0;
  /// Fetches the records now, and waits until their events are emitted; starts or stops recording by the
  /// level. For tests, the beginning and the end of a run: never called while training.
  virtual void flush() = 0;
};

/// A name's id: Publisher::name_id. Called from the recorder's thread.
using NameId = std::function<std::uint32_t(const std::string&)>;

/// Null for a device that is not a CUDA one. Must not outlive the device. A process records one device at a
/// time: a second recorder is refused.
[[nodiscard]] std::unique_ptr<GpuRecorder> record_gpu(device::Device& device, NameId name_id);

}  // namespace shardscope::profile
