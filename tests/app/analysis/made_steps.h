// Runs of one rank that are only steps of given lengths, for tests of statistics over steps.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::test {

/// A run of one rank whose steps take so many milliseconds and have so many tokens; the first is warm-up.
struct Made {
  test::RunBuilder builder{1, 0};
  store::Store* store = nullptr;
  analysis::Summary summary;
  explicit Made(const std::vector<double>& ms, const std::vector<std::int64_t>& tokens = {}) {
    std::int64_t at = 0;
    std::uint32_t step = 0;
    for (const double one : ms) {
      const auto length = static_cast<std::int64_t>(one * 1e6);
      builder.span(0, at, at + length, EventKind::step_begin, StreamId::host, step, ev::kNoId, 0,
                   step < tokens.size() ? tokens[step] : 0);
      ++step;
      at += length + 1000;
    }
    store = &builder.build();
    summary = analysis::summarize(*store);
  }
  [[nodiscard]] analysis::Run run() const { return {store, &summary}; }
};

/// Steps with noise that depends on the step before: AR(1), 3 % of 100 ms.
inline std::vector<double> noisy(unsigned seed, double mean, std::size_t steps = 41) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 3);
  std::vector<double> out;
  double drift = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    drift = 0.5 * drift + noise(random);
    out.push_back(mean + drift);
  }
  return out;
}

}  // namespace shardscope::test
