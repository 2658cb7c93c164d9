// The check of --fault on a command line: one for zero_train and for `shardscope run`.
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>

#include "runtime/plan/fault.h"

namespace shardscope::config {

/// Of the text alone; whether the run has such a rank, step and module is checked once there is a run.
inline const CLI::Validator kFault(
    [](std::string& text) {
      try {
        static_cast<void>(plan::parse_fault(text));
        return std::string();
      } catch (const std::invalid_argument& error) {
        return std::string(error.what());
      }
    },
    "");

}  // namespace shardscope::config
