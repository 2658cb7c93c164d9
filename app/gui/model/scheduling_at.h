// Where the run's fetch scheduler and another one differ, cached for the current micro-step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "app/analysis/scheduling.h"

namespace shardscope::gui {

/// Recomputed only for another micro-step: both schedulers run over it several times.
class SchedulingAt {
 public:
  [[nodiscard]] const analysis::Scheduling& of(const store::Store& store, std::uint32_t rank,
                                               std::int64_t at_ns);
  /// Index of the first difference at or after gate number `gate`; nullopt after the
  /// last.
  [[nodiscard]] static std::optional<std::size_t> difference_from(const analysis::Scheduling& scheduling,
                                                                  std::uint64_t gate);

 private:
  struct Key {
    const store::Store* store = nullptr;
    std::uint32_t rank = 0;
    std::uint64_t first = 0, last = 0;  ///< gate numbers
    bool operator==(const Key&) const = default;
  };
  std::optional<Key> key_;
  analysis::Scheduling scheduling_;
};

}  // namespace shardscope::gui
