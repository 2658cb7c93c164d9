// Gathered parameters that were held while no module used them: for how long, and how many bytes that took
// from others.
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
  std::int64_t bytes = 0;          ///< whole
  std::uint32_t times = 0;         ///< that it was held and released in the step
  std::int64_t longest_ns = 0;     ///< after the last use, until it was released
  std::int64_t longest_at_ns = 0;  ///< where that begins
  std::int64_t total_ns = 0;       ///< of all times
  /// Bytes times seconds.
  [[nodiscard]] double byte_seconds() const noexcept {
    return static_cast<double>(bytes) * static_cast<double>(total_ns) * 1e-9;
  }
};

/// A parameter that was whole from the end of a use on, and not used.
struct HeldStretch {
  std::uint32_t param = 0;
  std::int64_t bytes = 0;                    ///< whole
  std::int64_t begin_ns = 0, end_ns = 0;     ///< of the run
  bool used_again = false;                   ///< else it was released, or is whole at the end of the step
  std::optional<plan::KeepReason> reason{};  ///< why it was kept; nothing where that is not known
  bool unassigned = false;   ///< reasons of the parameter were recorded, but not which of them is its own
  bool for_program = false;  ///< gathered by the program itself (GatheredParameters)
  [[nodiscard]] std::int64_t length_ns() const noexcept { return end_ns - begin_ns; }
};

struct HeldLong {
  std::vector<HeldParam> params;       ///< most byte-seconds first
  std::vector<HeldStretch> stretches;  ///< by parameter, then time; those between two uses as well
  std::int64_t step_ns = 0;
  /// Of the step: bytes that were held for nothing, as a mean over it.
  [[nodiscard]] double mean_bytes() const noexcept;
  std::string missing;  ///< why there is none; else empty
};

/// Of one rank in one step of stage 3, persistent parameters left out. A parameter's last use is the end of
/// the last span, before its release, of a module that has it; of one that was gathered and never used, when
/// it was there. The latter has no stretch.
[[nodiscard]] HeldLong held_long(const store::Store& store, std::uint32_t rank, const store::StepRow& step);

}  // namespace shardscope::analysis
