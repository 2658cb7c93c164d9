// Where the run's scheduler and another part, kept for the micro-step that is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "app/analysis/scheduling.h"

namespace shardscope::gui {

/// Computes only when another micro-step is looked at: both schedulers run over it several times.
class SchedulingAt {
 public:
  [[nodiscard]] const analysis::Scheduling& of(const store::Store& store, std::uint32_t rank,
                                               std::int64_t at_ns);
  /// Index into the differences of the one at or next after gate number `gate`; nothing after the
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
