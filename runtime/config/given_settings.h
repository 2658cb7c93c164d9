// The minimal file for an effective configuration: the settings that differ from their defaults given the
// others.
#pragma once

#include <string>

#include "runtime/config/config.h"

namespace shardscope::config {

/// `effective_json` without the keys that have the same value when omitted. Defaults may depend on other
/// keys: communication_data_type and data_types.grad_accum_dtype from the storage type, overlap_comm from the
/// stage, compat's switches from its preset. So changing one key in this text has the same result as changing
/// it in the user's file. A key written with its default is omitted as well. Throws ConfigError for a text
/// that parse_config rejects.
[[nodiscard]] std::string without_defaults(const std::string& effective_json, const ParseOptions& options);

}  // namespace shardscope::config
