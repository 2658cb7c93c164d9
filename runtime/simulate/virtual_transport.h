// A transport that moves no bytes: it records the join and the duration. Checks, numbers and events are those
// of comm::CommunicatorCore, as in a run.
#pragma once

#include <memory>

#include "runtime/comm/transport.h"
#include "runtime/simulate/recorder.h"

namespace shardscope::simulate {

/// The transport of the rank's communicator number `comm`. `recorder` must outlive it. Host values are
/// assumed equal on all ranks.
[[nodiscard]] std::unique_ptr<comm::Transport> make_virtual_transport(Recorder& recorder, std::uint16_t comm,
                                                                      const GroupShape& group);

}  // namespace shardscope::simulate
