// Gathered parameters that were held while no module used them: for how long, and how much memory that took.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/store.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {

struct HeldParam {
  std::uint32_t param = 0;
  std::int64_t bytes = 0;          ///< of the gathered parameter
  std::uint32_t times = 0;         ///< how often it was held and released in the step
  std::int64_t longest_ns = 0;     ///< from the last use to the release
  std::int64_t longest_at_ns = 0;  ///< begin of the longest
  std::int64_t total_ns = 0;       ///< sum over all times
  /// Bytes x seconds.
  [[nodiscard]] double byte_seconds() const noexcept {
    return static_cast<double>(bytes) * static_cast<double>(total_ns) * 1e-9;
  }
};

/// A stretch in which a parameter was gathered after a use and not used.
struct HeldStretch {
  std::uint32_t param = 0;
  std::int64_t bytes = 0;                    ///< of the gathered parameter
  std::int64_t begin_ns = 0, end_ns = 0;     ///< in run time
  bool used_again = false;                   ///< else released, or gathered at the end of the step
  std::optional<plan::KeepReason> reason{};  ///< why it was kept; nullopt if unknown
  bool unassigned = false;   ///< reasons were recorded, but not which of them belongs to this stretch
  bool for_program = false;  ///< gathered by the user's code (GatheredParameters)
  [[nodiscard]] std::int64_t length_ns() const noexcept { return end_ns - begin_ns; }
};

struct HeldLong {
  std::vector<HeldParam> params;       ///< largest byte_seconds() first
  std::vector<HeldStretch> stretches;  ///< by parameter, then time; includes those between two uses
  std::int64_t step_ns = 0;
  /// Bytes held without use, averaged over the step.
  [[nodiscard]] double mean_bytes() const noexcept;
  std::string missing;  ///< why there are none; else empty
};

/// One rank in one step of stage 3, without persistent parameters. A parameter's last use is the end of the
/// last span, before its release, of a module that contains it; for one gathered and never used, the end of
/// its gather. The latter has no stretch.
[[nodiscard]] HeldLong held_long(const store::Store& store, std::uint32_t rank, const store::StepRow& step);

}  // namespace shardscope::analysis
