#include "instrumentation/gpu_monitor.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "instrumentation/event_fields.h"

namespace shardscope::instrumentation {
namespace {

// NVML's interface, of which every driver since 2017 has these functions (nvml.h, "NVML API Reference").
using Result = int;
using Device = void*;
constexpr Result kSuccess = 0;
constexpr int kClockSm = 1, kClockMemory = 2;  // nvmlClockType_t
constexpr int kSensorOfGpu = 0;                // nvmlTemperatureSensors_t
// nvmlClocksEventReasons
constexpr std::uint64_t kSoftwarePowerCap = 0x4, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                        kPowerBrake = 0x80;

}  // namespace

struct GpuMonitor::Nvml {
  Nvml() = default;
  ~Nvml() {
    if (started) shutdown();
    if (library != nullptr) dlclose(library);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("the NVML found has no ") + name);
  }

  void* library = nullptr;
  bool started = false;
  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  const char* (*error_text)(Result) = nullptr;
  Result (*by_bus_id)(const char*, Device*) = nullptr;
  Result (*energy)(Device, unsigned long long*) = nullptr;
  Result (*clock)(Device, int, unsigned*) = nullptr;
  Result (*temperature)(Device, int, unsigned*) = nullptr;
  Result (*reasons)(Device, unsigned long long*) = nullptr;
  Device device = nullptr;
};

GpuMonitor::GpuMonitor(const std::string& pci_bus_id) : nvml_(std::make_unique<Nvml>()) {
  Nvml& nvml = *nvml_;
  const char* const chosen = std::getenv("SHARDSCOPE_NVML");
  const std::string file = chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
  nvml.library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml.library == nullptr) {
    throw std::runtime_error("NVML was not found (" + std::string(dlerror()) +
                             "); it comes with NVIDIA's driver: name its file in SHARDSCOPE_NVML");
  }
  nvml.find("nvmlInit_v2", nvml.init);
  nvml.find("nvmlShutdown", nvml.shutdown);
  nvml.find("nvmlErrorString", nvml.error_text);
  nvml.find("nvmlDeviceGetHandleByPciBusId_v2", nvml.by_bus_id);
  nvml.find("nvmlDeviceGetTotalEnergyConsumption", nvml.energy);
  nvml.find("nvmlDeviceGetClockInfo", nvml.clock);
  nvml.find("nvmlDeviceGetTemperature", nvml.temperature);
  nvml.find("nvmlDeviceGetCurrentClocksThrottleReasons", nvml.reasons);
  if (const Result result = nvml.init(); result != kSuccess)
    throw std::runtime_error(std::string("NVML does not start: ") + nvml.error_text(result));
  nvml.started = true;
  if (const Result result = nvml.by_bus_id(pci_bus_id.c_str(), &nvml.device); result != kSuccess)
    throw std::runtime_error("NVML has no GPU at " + pci_bus_id + ": " + nvml.error_text(result));
}

GpuMonitor::~GpuMonitor() = default;

std::optional<Event> GpuMonitor::take(std::int64_t now_ns) {
  const Nvml& nvml = *nvml_;
  Fields<EventKind::gpu_sample> sample{};
  bool any = false;
  const auto number = [&](Result result, unsigned value) {
    any = any || result == kSuccess;
    return result == kSuccess ? value : kNoId;
  };
  unsigned value = 0;
  Result result = nvml.clock(nvml.device, kClockSm, &value);
  sample.sm_mhz = number(result, value);
  result = nvml.clock(nvml.device, kClockMemory, &value);
  sample.memory_mhz = number(result, value);
  result = nvml.temperature(nvml.device, kSensorOfGpu, &value);
  sample.celsius = number(result, value);
  unsigned long long wide = 0;
  if (nvml.energy(nvml.device, &wide) == kSuccess) {
    any = true;
    sample.energy_mj = static_cast<std::int64_t>(wide);
  }
  if (nvml.reasons(nvml.device, &wide) == kSuccess) {
    sample.power_limited = (wide & (kSoftwarePowerCap | kPowerBrake)) != 0;
    sample.too_hot = (wide & (kSoftwareThermal | kHardwareThermal)) != 0;
  }
  const std::int64_t before = std::exchange(before_ns_, now_ns);
  sample.over_ns = before == 0 ? 0 : now_ns - before;
  if (!any) return std::nullopt;
  return make<EventKind::gpu_sample>(sample);
}

}  // namespace shardscope::instrumentation
