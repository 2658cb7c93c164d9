// The check of --fault on a command line: one for zero_train and for `shardscope run`.
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>

#include "runtime/plan/fault.h"

namespace shardscope::config {

/// Checks the text only; rank, step and module are checked once the run is known.
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
