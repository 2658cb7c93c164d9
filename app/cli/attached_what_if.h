// `what-if` of an attached run: its recorded steps played again with other settings of DeepSpeed.
#pragma once

#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::cli {

struct AttachedQuestion {
  std::string recording;
  std::vector<std::string> sets;             ///< KEY=VALUE
  std::vector<const char*> other_options{};  ///< given, and of no use for such a run
  bool json = false;
};

/// Prints the answer and returns the exit code. Throws UserError: what cannot be asked of this run, and why.
int attached_what_if(const store::Store& store, const AttachedQuestion& question);

}  // namespace shardscope::cli
