// The run's clock beside the collector's: the same nanoseconds, counted from the run's first event.
#pragma once

#include <cstdint>
#include <utility>

#include "app/store/rank_run.h"
#include "app/store/run_facts.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Events have times of the collector's clock. Its zero is fixed, while the run's moves back when a rank
/// arrives late with earlier events.
class RunClock {
 public:
  /// Whether an event at `ns` of the collector's clock is the earliest so far.
  [[nodiscard]] bool is_before_origin(std::int64_t ns) const noexcept { return !known_ || ns < origin_ns_; }
  /// That event becomes the run's begin. Returns the shift for stored run times; 0 for the first
  /// event.
  [[nodiscard]] std::int64_t begin_at(std::int64_t ns) noexcept {
    const std::int64_t before = std::exchange(origin_ns_, ns);
    return std::exchange(known_, true) ? before - ns : 0;
  }
  /// A time without a readable event: sets the origin where there is none, and never moves it.
  void begin_unless_known(std::int64_t ns) noexcept {
    if (!std::exchange(known_, true)) origin_ns_ = ns;
  }
  /// Time 0 of the run, on the collector's clock.
  [[nodiscard]] std::int64_t origin_ns() const noexcept { return origin_ns_; }

  [[nodiscard]] std::int64_t to_run(std::int64_t ns) const noexcept {
    return ns == kOpen || ns == Lane::kNever ? ns : ns - origin_ns_;
  }
  /// To the collector's clock. Store::kBegin and Store::kEnd are unchanged.
  [[nodiscard]] std::int64_t to_clock(std::int64_t ns) const noexcept {
    constexpr std::int64_t kFar = kMaxTimeNs * 2 - 1;
    return ns <= -kFar ? Store::kBegin : ns >= kFar ? Store::kEnd : ns + origin_ns_;
  }
  [[nodiscard]] Span to_run(Span span) const noexcept {
    span.begin_ns = to_run(span.begin_ns);
    span.end_ns = to_run(span.end_ns);
    if (span.mark_ns != 0) span.mark_ns = to_run(span.mark_ns);
    return span;
  }
  [[nodiscard]] ParamState to_run(ParamState state) const noexcept {
    state.since_ns = state.since_ns == StatusIndex::kNever ? 0 : to_run(state.since_ns);
    return state;
  }
  [[nodiscard]] MemorySample to_run(MemorySample sample) const noexcept {
    sample.at_ns = to_run(sample.at_ns);
    return sample;
  }
  [[nodiscard]] Store::GateRow to_run(Store::GateRow gate) const noexcept {
    gate.at_ns = to_run(gate.at_ns);
    return gate;
  }

 private:
  std::int64_t origin_ns_ = 0;
  bool known_ = false;
};

}  // namespace shardscope::store
