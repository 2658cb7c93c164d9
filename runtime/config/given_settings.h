// What a file has to say to get an effective configuration: the settings that differ from the defaults
// which the others give them.
#pragma once

#include <string>

#include "runtime/config/config.h"

namespace shardscope::config {

/// `effective_json` without the keys that read back to the same when they are left out. Defaults may follow
/// from other keys: communication_data_type and data_types.grad_accum_dtype from the storage type,
/// overlap_comm from the stage, compat's switches from its preset. So a change of one key to this text gives
/// what the same change to a user's file gives. A key that was written with its default is left out as well.
/// Throws ConfigError for a text that parse_config refuses.
[[nodiscard]] std::string without_defaults(const std::string& effective_json, const ParseOptions& options);

}  // namespace shardscope::config
