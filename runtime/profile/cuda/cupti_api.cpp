#include "runtime/profile/cuda/cupti_api.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace shardscope::profile::cuda {
namespace {

constexpr std::uint32_t kMajor = 10000;  ///< CUPTI_API_VERSION is major * 10000 + minor * 100 + update
/// 13.0 Update 1: in 13.0 switching kernels off could hang and a flush crash (its release notes). At least
/// the minor version that this was built with: later versions append fields to records.
constexpr std::uint32_t kOldest = std::max(CUPTI_API_VERSION / 100 * 100, 130001);

template <typename Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// The first function that is missing, or null.
const char* fill(void* library, CuptiApi& api) {
#define SHARDSCOPE_CUPTI(name) \
  if (!look_up(library, "cupti" #name, api.name)) return "cupti" #name
  SHARDSCOPE_CUPTI(GetVersion);
  SHARDSCOPE_CUPTI(GetResultString);
  SHARDSCOPE_CUPTI(Subscribe);
  SHARDSCOPE_CUPTI(Unsubscribe);
  SHARDSCOPE_CUPTI(GetTimestamp);
  SHARDSCOPE_CUPTI(GetStreamIdEx);
  SHARDSCOPE_CUPTI(ActivitySetAttribute);
  SHARDSCOPE_CUPTI(ActivityRegisterCallbacks);
  SHARDSCOPE_CUPTI(ActivityRegisterTimestampCallback);
  SHARDSCOPE_CUPTI(ActivityEnable);
  SHARDSCOPE_CUPTI(ActivityDisable);
  SHARDSCOPE_CUPTI(ActivityEnableRuntimeApi);
  SHARDSCOPE_CUPTI(ActivityEnableDriverApi);
  SHARDSCOPE_CUPTI(ActivityEnableAllSyncRecords);
  SHARDSCOPE_CUPTI(ActivityFlushAll);
  SHARDSCOPE_CUPTI(ActivityGetNextRecord);
  SHARDSCOPE_CUPTI(ActivityGetNumDroppedRecords);
  SHARDSCOPE_CUPTI(ActivityPushExternalCorrelationId);
  SHARDSCOPE_CUPTI(ActivityPopExternalCorrelationId);
#undef SHARDSCOPE_CUPTI
  return nullptr;
}

CuptiApi::Found load() {
  const std::string soname = "libcupti.so." + std::to_string(CUPTI_API_VERSION / kMajor);
  std::vector<std::string> files;
  if (const char* chosen = std::getenv("SHARDSCOPE_CUPTI"); chosen != nullptr && *chosen != '\0') {
    files = {chosen};
  } else {
    files = {soname};
    const std::string toolkit = SHARDSCOPE_CUDA_LIBRARIES;  // "" in a build without one
    if (!toolkit.empty()) {
      files.push_back(toolkit + "/" + soname);
      files.push_back(toolkit + "/../extras/CUPTI/lib64/" + soname);
    }
  }
  void* library = nullptr;
  std::string error;
  for (const std::string& file : files) {
    library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (error.empty()) error = dlerror();
  }
  if (library == nullptr) {
    return {nullptr, "CUPTI was not found (" + error +
                         "); install the CUDA toolkit's CUPTI or name its file in SHARDSCOPE_CUPTI"};
  }
  static CuptiApi api;
  if (const char* missing = fill(library, api)) {
    return {nullptr, "the CUPTI found has no " + std::string(missing) + "; use that of CUDA " +
                         std::to_string(CUPTI_API_VERSION / kMajor)};
  }
  std::uint32_t version = 0;
  if (api.GetVersion(&version) != CUPTI_SUCCESS || version / kMajor != CUPTI_API_VERSION / kMajor ||
      version < kOldest) {
    return {nullptr,
            "the CUPTI found has version " + std::to_string(version) + ", this program needs " +
                std::to_string(kOldest) + " or newer of the same major version (" +
                "13.0 Update 1 is 130001): install a newer one or name its file in SHARDSCOPE_CUPTI"};
  }
  return {&api, {}};
}

}  // namespace

const CuptiApi::Found& CuptiApi::find() {
  static const Found found = load();
  return found;
}

}  // namespace shardscope::profile::cuda
