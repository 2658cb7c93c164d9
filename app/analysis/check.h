// Checks a run against limits relative to a baseline, for CI. Definitions: metrics.md 2.13.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

struct Limit {
  std::string metric;  ///< a name of step_figures()
  double percent = 0;  ///< how much worse it may be than the baseline
};
/// "step_ms=5%,peak=2%": names of step_figures(). Throws std::invalid_argument: what, value, what to do.
[[nodiscard]] std::vector<Limit> parse_limits(const std::string& text);

struct Checked {
  enum class Outcome : std::uint8_t {
    within,     ///< not worse than the limit, with its whole interval
    beyond,     ///< worse than the limit, with its whole interval
    undecided,  ///< the interval contains the limit
    unknown,    ///< too few steps, or not recorded
  };
  Limit limit;
  std::string unit{};
  std::optional<double> base{}, run{};
  std::optional<double> change_pct{};            ///< above 0: larger
  std::optional<ConfidenceInterval> interval{};  ///< of change_pct; nullopt for figures of a whole run
  Outcome outcome = Outcome::unknown;
  std::string why{};  ///< one sentence
};
/// Compares steps in pairs of equal number, without the first step of each run.
[[nodiscard]] std::vector<Checked> check(const Run& base, const Run& run, const std::vector<Limit>& limits);

[[nodiscard]] std::string check_json(const std::vector<Checked>& checked);
[[nodiscard]] const char* name_of(Checked::Outcome outcome);
/// JUnit XML: one test case per limit; beyond is a failure, undecided and unknown are errors.
[[nodiscard]] std::string check_junit(const std::vector<Checked>& checked, const std::string& name);

}  // namespace shardscope::analysis
