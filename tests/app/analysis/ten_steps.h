// Ten steps of 10 ms, and what is found in a run of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::test {

constexpr std::int64_t kStepLength = 10 * kMs;
constexpr std::uint32_t kStepCount = 10;

/// Every rank computes for 8 ms of each.
inline void add_steps(RunBuilder& run, std::uint32_t world) {
  for (std::uint32_t step = 0; step < kStepCount; ++step) {
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const std::int64_t at = step * kStepLength;
      run.span(rank, at, at + 8 * kMs, EventKind::module_begin, StreamId::compute, 1, step);
      run.span(rank, at, at + kStepLength, EventKind::step_begin, StreamId::host, step);
    }
  }
}

inline std::optional<analysis::Finding> found_in(const store::Store& store, const std::string& id) {
  for (const analysis::Finding& one : analysis::find(store, analysis::summarize(store))) {
    if (one.id == id) return one;
  }
  return std::nullopt;
}

}  // namespace shardscope::test
