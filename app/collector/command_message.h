// The message of the run that records a command to the ranks. Its result is recorded by later messages: that
// the ranks hold, or why they do not. Pure.
#pragma once

#include <string>

#include "instrumentation/wire.h"

namespace shardscope::collector {

struct CommandMessage {
  instrumentation::Severity severity{};
  std::string text;
};

/// `previous_detail`: of the ranks, before a command that sets the detail; -1: not known. `by`: requester.
[[nodiscard]] CommandMessage message_of(const instrumentation::wire::ViewCommand& command,
                                        int previous_detail, const std::string& by);

}  // namespace shardscope::collector
