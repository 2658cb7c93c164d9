// CUPTI, loaded at run time: training works without it, or with another major version.
#pragma once

#include <cupti.h>

#include <memory>
#include <string>

namespace shardscope::profile::cuda {

/// The functions used, by their names without "cupti".
struct CuptiApi {
  decltype(&cuptiGetVersion) GetVersion = nullptr;
  decltype(&cuptiGetResultString) GetResultString = nullptr;
  decltype(&cuptiSubscribe) Subscribe = nullptr;
  decltype(&cuptiUnsubscribe) Unsubscribe = nullptr;
  decltype(&cuptiGetTimestamp) GetTimestamp = nullptr;
  decltype(&cuptiGetStreamIdEx) GetStreamIdEx = nullptr;
  decltype(&cuptiActivitySetAttribute) ActivitySetAttribute = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) ActivityRegisterCallbacks = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) ActivityRegisterTimestampCallback = nullptr;
  decltype(&cuptiActivityEnable) ActivityEnable = nullptr;
  decltype(&cuptiActivityDisable) ActivityDisable = nullptr;
  decltype(&cuptiActivityEnableRuntimeApi) ActivityEnableRuntimeApi = nullptr;
  decltype(&cuptiActivityEnableDriverApi) ActivityEnableDriverApi = nullptr;
  decltype(&cuptiActivityEnableAllSyncRecords) ActivityEnableAllSyncRecords = nullptr;
  decltype(&cuptiActivityFlushAll) ActivityFlushAll = nullptr;
  decltype(&cuptiActivityGetNextRecord) ActivityGetNextRecord = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) ActivityGetNumDroppedRecords = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) ActivityPushExternalCorrelationId = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) ActivityPopExternalCorrelationId = nullptr;

  struct Found {
    const CuptiApi* api = nullptr;  ///< lives as long as the process
    std::string reason;             ///< why CUPTI cannot be used, and what to do
  };
  /// Looks for the library once: SHARDSCOPE_CUPTI (a file) if set, then the dynamic linker's path, which
  /// finds the one that PyTorch has loaded, then the toolkit that this program was built with.
  [[nodiscard]] static const Found& find();
};

}  // namespace shardscope::profile::cuda
