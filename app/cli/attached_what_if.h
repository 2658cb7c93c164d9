// `what-if` of an attached run: replays its recorded steps with other settings of DeepSpeed.
#pragma once

#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::cli {

struct AttachedQuestion {
  std::string recording;
  std::vector<std::string> sets;             ///< KEY=VALUE
  std::vector<const char*> other_options{};  ///< given, but without effect for such a run
  bool json = false;
};

/// Prints the answer and returns the exit code. Throws UserError where this run cannot answer it, and why.
int attached_what_if(const store::Store& store, const AttachedQuestion& question);

}  // namespace shardscope::cli
