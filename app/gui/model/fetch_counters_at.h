// What the fetches of a micro-step counted, kept for the micro-step that is looked at.
#pragma once

#include <cstdint>
#include <optional>

#include "app/analysis/coordinator.h"

namespace shardscope::gui {

/// Reads a micro-step's events only when another one is looked at or counters have arrived.
class FetchCountersAt {
 public:
  [[nodiscard]] const std::optional<analysis::MicroStepCounters>& of(const store::Store& store,
                                                                     std::uint32_t rank, std::int64_t at_ns);

 private:
  struct Key {
    const store::Store* store = nullptr;
    std::uint32_t rank = 0;
    std::uint64_t gate = 0;      ///< number of the micro-step's gate
    std::uint64_t recorded = 0;  ///< counters of the rank so far
    bool operator==(const Key&) const = default;
  };
  std::optional<Key> key_;
  std::optional<analysis::MicroStepCounters> counters_;
};

}  // namespace shardscope::gui
