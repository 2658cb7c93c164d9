// Kernel-level truth: what the driver's profiler (CUPTI) knows of a CUDA device, as events, while the detail
// level is `kernels`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/device/device.h"

namespace shardscope::profile {

/// Records from its making to its destruction whenever the level is on; a thread of its own asks for the
/// records, makes events of them and looks at the level, so that it can be switched while a run goes on.
/// Where CUPTI is not there, or another profiler holds it, it says so once as a warning and training goes on.
class GpuRecorder {
 public:
  virtual ~GpuRecorder() = default;
  enum class State : std::uint8_t { off, recording, refused };
  [[nodiscard]] virtual State state() const noexcept = 0;
  /// Why it was refused; empty otherwise.
  [[nodiscard]] virtual std::string reason() const = 0;
  /// Asks for the records now, and waits until their events are emitted; switches as the level says. For
  /// tests, the beginning and the end of a run: never called while training.
  virtual void flush() = 0;
};

/// A name's id: Publisher::name_id. Called from the recorder's thread.
using NameId = std::function<std::uint32_t(const std::string&)>;

/// Null for a device that is not a CUDA one. Must not outlive the device. A process records one device at a
/// time: a second recorder is refused.
[[nodiscard]] std::unique_ptr<GpuRecorder> record_gpu(device::Device& device, NameId name_id);

}  // namespace shardscope::profile
