// NVML with one GPU, at 0000:17:00.0, for tests without a driver. SHARDSCOPE_STAND_IN_ENERGY: "absent", as of
// a GPU that does not report its energy.
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {
constexpr int kOk = 0, kNotSupported = 3, kNotFound = 6;
std::atomic<unsigned long long> g_mj{5'000'000};
int g_gpu = 0;
}  // namespace

extern "C" {
int nvmlInit_v2() { return kOk; }
int nvmlShutdown() { return kOk; }
const char* nvmlErrorString(int result) { return result == kNotFound ? "Not Found" : "error"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (std::strcmp(id, "0000:17:00.0") != 0) return kNotFound;
  *device = &g_gpu;
  return kOk;
}
/// Each reading adds 250 J.
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* mj) {
  if (const char* energy = std::getenv("SHARDSCOPE_STAND_IN_ENERGY");
      energy != nullptr && std::strcmp(energy, "absent") == 0)
    return kNotSupported;
  *mj = g_mj.fetch_add(250'000);
  return kOk;
}
/// Of the multiprocessors (1) and the memory (2).
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1410 : 2619;
  return type == 1 || type == 2 ? kOk : kNotSupported;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 71;
  return kOk;
}
/// At its power limit by software; "GPU idle" besides, which limits nothing.
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x4 | 0x1;
  return kOk;
}
}
