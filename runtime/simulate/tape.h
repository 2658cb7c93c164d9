// The operations that the engine of one rank queued on its device and sent to other ranks, in the order in
// which its host thread queued them, without times: the engine decides nothing by the clock, so the order is
// the same however long things take. Playback gives it times.
#pragma once

#include <cstdint>
#include <vector>

#include "instrumentation/event.h"
#include "runtime/device/device.h"

namespace shardscope::simulate {

using instrumentation::Event;
using instrumentation::StreamId;

/// Names a point in a stream's work: what device::Event stands for. Counted up along the whole run of a rank.
using Mark = std::uint32_t;

struct Op {
  enum class Kind : std::uint8_t {
    emit,        ///< index: of the tape's events
    emit_timed,  ///< index: of the tape's timed events
    busy,        ///< ns of this rank's own work: slower on a straggler
    hold,        ///< ns that do not depend on the rank: links
    record,      ///< index: mark
    wait,        ///< index: mark
    join,        ///< index: call of communicator `comm`; goes on when every member has come
    move,        ///< the transfer of that call, `ns` where its links are its own: goes on when it is through
  };
  Kind kind{};
  StreamId queue{};  ///< host: what the host thread itself does
  std::uint16_t comm =
      0;  ///< join, move: which of the rank's communicators, twice that, +1 for calls between hosts
  std::uint32_t index = 0;
  std::int64_t ns = 0;
};
static_assert(sizeof(Op) == 16);

/// An event that says something about the times of marks, all before it.
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
