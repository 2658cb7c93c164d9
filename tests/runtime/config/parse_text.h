// A configuration from its text, and the message of one that is refused.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/config/config.h"

namespace shardscope::config::test {

inline std::string error_of(const std::string& text, std::uint32_t world = 4) {
  ParseOptions options;
  options.world = world;
  options.file = "ds.json";
  try {
    static_cast<void>(parse_config(text, options));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

/// The model's width and the number of steps are known, as for a run that the command line describes.
inline TrainingConfig parse(const std::string& text, std::uint32_t world = 4) {
  ParseOptions options;
  options.world = world;
  options.hidden_size = 128;
  options.total_steps = 500;
  return parse_config(text, options);
}

inline std::string in_zero(const std::string& zero) {
  return R"({"train_batch_size": 8, "zero_optimization": )" + zero + "}";
}

}  // namespace shardscope::config::test
