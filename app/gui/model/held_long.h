// Gathered parameters that were held after their last use: for how long, and how many bytes that took from
// others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/gui/model/table.h"
#include "app/store/store.h"

namespace shardscope::gui {

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

struct HeldLong {
  std::vector<HeldParam> params;  ///< most byte-seconds first
  std::int64_t step_ns = 0;
  /// Of the step: bytes that were held for nothing, as a mean over it.
  [[nodiscard]] double mean_bytes() const noexcept;
  std::string missing;  ///< why there is none; else empty
};

/// Of one rank in one step of stage 3. A parameter's last use is the end of the last span, before its
/// release, of a module that has it; of one that was gathered and never used, when it was there.
[[nodiscard]] HeldLong held_long(const store::Store& store, std::uint32_t rank, const store::StepRow& step);
[[nodiscard]] Table held_table(const store::Store& store, const HeldLong& held);

}  // namespace shardscope::gui
