// Fetch counters of the current micro-step, cached.
#pragma once

#include <cstdint>
#include <optional>

#include "app/analysis/coordinator.h"

namespace shardscope::gui {

/// Reads a micro-step's events again only for another micro-step, or after new counters have arrived.
class FetchCountersAt {
 public:
  [[nodiscard]] const std::optional<analysis::MicroStepCounters>& of(const store::Store& store,
                                                                     std::uint32_t rank, std::int64_t at_ns);

 private:
  struct Key {
    const store::Store* store = nullptr;
    std::uint32_t rank = 0;
    std::uint64_t gate = 0;      ///< sequence number of the micro-step's gate
    std::uint64_t recorded = 0;  ///< counters recorded for the rank so far
    bool operator==(const Key&) const = default;
  };
  std::optional<Key> key_;
  std::optional<analysis::MicroStepCounters> counters_;
};

}  // namespace shardscope::gui
