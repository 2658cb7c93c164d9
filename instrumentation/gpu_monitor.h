// Energy, clocks and temperature of a rank's GPU, read through NVML. Not from the CUDA driver: NVML neither
// synchronizes streams nor needs a context. The library is opened at run time (libnvidia-ml.so.1, or the file
// that SHARDSCOPE_NVML names), so that builds and machines without a GPU need nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

class GpuMonitor {
 public:
  /// `pci_bus_id` as cudaDeviceGetPCIBusId returns it: "0000:17:00.0". Throws std::runtime_error without NVML
  /// or such a GPU.
  explicit GpuMonitor(const std::string& pci_bus_id);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// The current state as an event (gpu_sample) of time `now_ns`; nullopt if NVML reports nothing of it.
  /// Takes locks of the driver, some 0.1 ms: on the publishing thread only.
  [[nodiscard]] std::optional<Event> take(std::int64_t now_ns);

 private:
  struct Nvml;
  std::unique_ptr<Nvml> nvml_;
  std::int64_t before_ns_ = 0;  ///< time of the previous sample; 0: none
};

}  // namespace shardscope::instrumentation
