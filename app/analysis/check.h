// Whether a run keeps within limits of a baseline: for CI. Definitions: metrics.md 2.13.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

struct Limit {
  std::string metric;  ///< of step_figures()
  double percent = 0;  ///< by how much of the baseline's value it may get worse
};
/// "step_ms=5%,peak=2%": names of step_figures(). Throws std::invalid_argument: what, value, what to do.
[[nodiscard]] std::vector<Limit> parse_limits(const std::string& text);

struct Checked {
  enum class Outcome : std::uint8_t {
    within,     ///< not worse than the limit, with all of its interval
    beyond,     ///< worse by more than the limit, with all of its interval
    undecided,  ///< the limit lies inside the interval
    unknown,    ///< too few steps, or not recorded
  };
  Limit limit;
  std::string unit{};
  std::optional<double> base{}, run{};
  std::optional<double> change_pct{};            ///< above 0: larger
  std::optional<ConfidenceInterval> interval{};  ///< of change_pct; nothing for figures that a run has one of
  Outcome outcome = Outcome::unknown;
  std::string why{};  ///< one sentence
};
/// Steps are compared in pairs, by their number, without the first of each run.
[[nodiscard]] std::vector<Checked> check(const Run& base, const Run& run, const std::vector<Limit>& limits);

[[nodiscard]] std::string check_json(const std::vector<Checked>& checked);
[[nodiscard]] const char* name_of(Checked::Outcome outcome);
/// JUnit's XML: a test case for each limit; beyond is a failure, undecided and unknown are errors.
[[nodiscard]] std::string check_junit(const std::vector<Checked>& checked, const std::string& name);

}  // namespace shardscope::analysis
