// The operations that the engine of one rank queued on its device and sent to other ranks, in the order in
// which its host thread queued them, without times: the engine's decisions do not depend on the clock, so the
// order is independent of durations. Playback assigns the times.
#pragma once

#include <cstdint>
#include <vector>

#include "instrumentation/event.h"
#include "runtime/device/device.h"

namespace shardscope::simulate {

using instrumentation::Event;
using instrumentation::StreamId;

/// Id of a point in a stream's work, as recorded by a device::Event. Increases over the whole run of a rank.
using Mark = std::uint32_t;

struct Op {
  enum class Kind : std::uint8_t {
    emit,        ///< index: of the tape's events
    emit_timed,  ///< index: of the tape's timed events
    busy,        ///< ns of this rank's own work: longer on a straggler
    hold,        ///< ns that do not depend on the rank: links
    record,      ///< index: mark
    wait,        ///< index: mark
    join,        ///< index: call of communicator `comm`; continues when every member has arrived
    move,        ///< the transfer of that call, `ns` on unshared links: continues when it has ended
  };
  Kind kind{};
  StreamId queue{};  ///< host: operations of the host thread itself
  std::uint16_t comm =
      0;  ///< join, move: which of the rank's communicators, twice that, +1 for calls between hosts
  std::uint32_t index = 0;
  std::int64_t ns = 0;
};
static_assert(sizeof(Op) == 16);

/// An event with fields computed from the times of earlier marks.
struct TimedEvent {
  Event event;
  std::vector<Mark> marks;
  device::Complete complete = nullptr;
};

struct Tape {
  std::vector<Op> ops;
  std::vector<Event> events;  ///< without times
  std::vector<TimedEvent> timed;
  Mark first_mark = 1;  ///< of those recorded here
  Mark end_mark = 0;
  std::vector<Mark> kept;  ///< marks that later tapes may still wait for, ascending
};

}  // namespace shardscope::simulate
