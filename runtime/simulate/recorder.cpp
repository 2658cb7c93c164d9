#include "runtime/simulate/recorder.h"

#include <stdexcept>
#include <utility>

#include "instrumentation/emitter.h"

namespace shardscope::simulate {
namespace {

/// Maximum of host events between two device calls: the parts of the largest collective.
constexpr std::size_t kRingEvents = 1U << 16;

}  // namespace

EventCapture::EventCapture() : ring_(kRingEvents), before_(instrumentation::detail::t_ring) {
  instrumentation::detail::t_ring = &ring_;
}

EventCapture::~EventCapture() { instrumentation::detail::t_ring = before_; }

void EventCapture::drain(std::vector<Event>& out) {
  if (ring_.empty()) return;
  static_cast<void>(ring_.drain(out));
  if (ring_.dropped() != 0) throw std::logic_error("simulate: more events at once than the ring holds");
}

Recorder::Work::Work(Recorder& recorder, StreamId queue) : recorder_(recorder), before_(recorder.working_) {
  recorder_.take_emitted();
  recorder_.working_ = queue;
}

Recorder::Work::~Work() {
  recorder_.take_emitted();
  recorder_.working_ = before_;
}

void Recorder::take_emitted() {
  drained_.clear();
  emitted_.drain(drained_);
  for (Event& event : drained_) {
    event.ticks = 0;
    tape_.ops.push_back({Op::Kind::emit, working_, 0, static_cast<std::uint32_t>(tape_.events.size()), 0});
    tape_.events.push_back(event);
  }
}

void Recorder::append(const Op& op) {
  take_emitted();
  tape_.ops.push_back(op);
}

void Recorder::add(const kernels::Work& work) {
  switch (working_) {
    case StreamId::nvme:
      return busy(working_, cost_.nvme_ns(work));
    case StreamId::worker:
      return busy(working_, cost_.host_work_ns(work));
    default:
      return busy(working_, cost_.kernel_ns(work));
  }
}

void Recorder::emit(StreamId queue, const Event& event) {
  take_emitted();
  tape_.ops.push_back({Op::Kind::emit, queue, 0, static_cast<std::uint32_t>(tape_.events.size()), 0});
  tape_.events.push_back(event);
}

void Recorder::emit(StreamId queue, TimedEvent event) {
  append({Op::Kind::emit_timed, queue, 0, static_cast<std::uint32_t>(tape_.timed.size()), 0});
  tape_.timed.push_back(std::move(event));
}

void Recorder::busy(StreamId queue, std::int64_t ns) {
  if (cost_.launch_ns() > 0) append({Op::Kind::busy, StreamId::host, 0, 0, cost_.launch_ns()});
  append({Op::Kind::busy, queue, 0, 0, ns});
}

void Recorder::join(std::uint16_t comm, std::uint32_t call) {
  append({Op::Kind::join, working_, comm, call, 0});
}

void Recorder::hold(std::int64_t ns) {
  if (ns > 0) append({Op::Kind::hold, working_, 0, 0, ns});
}

void Recorder::move(std::uint16_t comm, std::uint32_t call, std::int64_t ns) {
  if (ns > 0) append({Op::Kind::move, working_, comm, call, ns});
}

Mark Recorder::record(StreamId queue) {
  append({Op::Kind::record, queue, 0, next_mark_, 0});
  return next_mark_++;
}

void Recorder::wait(StreamId queue, Mark mark) { append({Op::Kind::wait, queue, 0, mark, 0}); }

Tape Recorder::take() {
  take_emitted();
  tape_.end_mark = next_mark_;
  tape_.kept.assign(kept_.begin(), kept_.end());
  Tape done = std::exchange(tape_, {});
  tape_.first_mark = next_mark_;
  return done;
}

}  // namespace shardscope::simulate
