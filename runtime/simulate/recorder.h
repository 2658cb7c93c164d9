// Writes a Tape: the operations of VirtualDevice and VirtualTransport, between the events that the host
// thread emits meanwhile.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "instrumentation/ring.h"
#include "kernels/cost.h"
#include "runtime/simulate/cost_model.h"
#include "runtime/simulate/tape.h"

namespace shardscope::simulate {

/// During its lifetime this thread's events go to its own ring instead of to the process's publisher.
class EventCapture {
 public:
  EventCapture();
  ~EventCapture();
  EventCapture(const EventCapture&) = delete;
  EventCapture& operator=(const EventCapture&) = delete;

  /// Appends the events emitted since the last call. Throws std::logic_error if the ring was too small.
  void drain(std::vector<Event>& out);

 private:
  instrumentation::Ring ring_;
  instrumentation::Ring* before_;
};

class Recorder final : public kernels::WorkMeter {
 public:
  /// Both arguments must outlive it.
  Recorder(const CostModel& cost, EventCapture& emitted) : cost_(cost), emitted_(emitted) {}

  /// A kernel of the work being queued.
  void add(const kernels::Work& work) override;
  /// Until the end of the scope, events and kernels belong to `queue`: the work of a stream.
  class Work {
   public:
    Work(Recorder& recorder, StreamId queue);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    Recorder& recorder_;
    StreamId before_;
  };

  void emit(StreamId queue, const Event& event);
  void emit(StreamId queue, TimedEvent event);
  /// Queued by the host, which takes launch_us there; then takes `ns` on `queue`.
  void busy(StreamId queue, std::int64_t ns);
  /// In the work being queued.
  void join(std::uint16_t comm, std::uint32_t call);
  void hold(std::int64_t ns);
  /// After join() of the same call.
  void move(std::uint16_t comm, std::uint32_t call, std::int64_t ns);
  [[nodiscard]] Mark record(StreamId queue);
  void wait(StreamId queue, Mark mark);

  /// Marks still referenced: playback must keep their times.
  void keep(Mark mark) { kept_.insert(mark); }
  void drop(Mark mark) { kept_.erase(kept_.find(mark)); }

  [[nodiscard]] const CostModel& cost() const noexcept { return cost_; }
  /// Returns the operations recorded since the last call.
  [[nodiscard]] Tape take();

 private:
  void append(const Op& op);
  void take_emitted();

  const CostModel& cost_;
  EventCapture& emitted_;
  std::vector<Event> drained_;
  Tape tape_;
  StreamId working_ = StreamId::host;  ///< whose work is being queued; host: none
  Mark next_mark_ = 1;
  std::multiset<Mark> kept_;
};

}  // namespace shardscope::simulate
