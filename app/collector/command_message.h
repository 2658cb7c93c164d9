// What is recorded of a command to the ranks: its message of the run. What becomes of the command follows in
// others: that ranks hold, or why they do not. Pure.
#pragma once

#include <string>

#include "instrumentation/wire.h"

namespace shardscope::collector {

struct CommandMessage {
  instrumentation::Severity severity{};
  std::string text;
};

/// `previous_detail`: of the ranks, where the command sets another; -1: not known. `by`: who requested it.
[[nodiscard]] CommandMessage message_of(const instrumentation::wire::ViewCommand& command,
                                        int previous_detail, const std::string& by);

}  // namespace shardscope::collector
