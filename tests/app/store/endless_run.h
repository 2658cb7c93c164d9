// A run without an end, for what must not grow with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {

/// Makes an event that is about a step one of a step so many later.
inline void shift_step(ev::Event& event, std::uint32_t steps) {
  const bool of_step = event.kind == ev::EventKind::step_begin || event.kind == ev::EventKind::step_end ||
                       event.kind == ev::EventKind::loss || event.kind == ev::EventKind::tokens ||
                       event.kind == ev::EventKind::grad_norm || event.kind == ev::EventKind::loss_scale ||
                       event.kind == ev::EventKind::learning_rate || event.kind == ev::EventKind::clip_factor;
  if (of_step) event.a += steps;
}

/// A short run over and over: each time later, and with the next steps.
class EndlessRun {
 public:
  explicit EndlessRun(std::uint32_t world)
      : run_(make_synthetic_run({.world = world, .steps = kSteps, .chunk_events = 512})), next_(world, 0) {
    for (const Chunk& chunk : run_.chunks) {
      const auto [begin, end] = chunk.times();
      length_ = std::max(length_, end + chunk.clock_offset_ns + 1000);
    }
  }
  static constexpr std::uint32_t kSteps = 20;
  [[nodiscard]] const SyntheticRun& run() const { return run_; }
  /// The ranks are started again, a second later, and repeat the steps of so many turns.
  void repeat(std::int64_t turns) {
    repeated_ += turns;
    later_ += 1'000'000'000;
  }
  /// Calls take(chunk) for the run once more.
  template <typename Take>
  void again(Take take) {
    for (Chunk chunk : run_.chunks) {
      chunk.sequence = next_[chunk.rank]++;
      for (ev::Event& event : chunk.events) {
        event.ticks += static_cast<std::uint64_t>(turn_ * length_ + later_);
        shift_step(event, static_cast<std::uint32_t>(turn_ - repeated_) * kSteps);
      }
      take(chunk);
    }
    ++turn_;
  }

 private:
  SyntheticRun run_;
  std::vector<std::uint64_t> next_;
  std::int64_t length_ = 0, turn_ = 0, repeated_ = 0, later_ = 0;
};

}  // namespace shardscope::store
