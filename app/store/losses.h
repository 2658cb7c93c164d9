// Events of a run that are missing in a store, as numbers and as text: shown beside every figure of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "app/store/store.h"

namespace shardscope::store {

struct Losses {
  std::uint64_t dropped = 0;  ///< events, by ranks and by collectors
  /// The part dropped by a collector. Where messages were lost too, it is not known which of both were.
  std::uint64_t shed = 0;
  std::uint64_t lost_messages = 0;   ///< in transit, each with an unknown number of events
  std::uint64_t damaged_events = 0;  ///< recorded, but unreadable
  std::uint64_t absent_events = 0;   ///< received by a collector, but not in the recording
  /// Span ends without a begin, and the number of them that missing events explain; see
  /// Store::unmatched_ends().
  std::uint64_t unmatched_ends = 0, explained_ends = 0;
  [[nodiscard]] bool any() const noexcept {
    return dropped + lost_messages + damaged_events + absent_events + unmatched_ends != 0;
  }
};

[[nodiscard]] Losses losses_of(const Store& store);

/// "0 dropped, 0 messages lost", "120 dropped (100 of them by a collector), 71 messages lost, 8133 damaged,
/// 852 not in the recording, 5 unmatched span ends": events, except for the messages. Dropped and lost are
/// always given, the others where they are not 0.
[[nodiscard]] std::string text_of(const Losses& losses);

/// "5 unmatched span ends", "5 unmatched span ends, 3 of them explained: events are missing there".
[[nodiscard]] std::string unmatched_ends_text(std::uint64_t count, std::uint64_t explained);
/// "rank 0: 4 module_end, 1 phase_end; rank 1: 2 module_end; 6 more ranks": the unexplained ones.
/// "" where there are none.
[[nodiscard]] std::string unmatched_ends_by_rank(std::span<const Store::UnmatchedEnds> ends);

}  // namespace shardscope::store
