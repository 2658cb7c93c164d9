// What a run's store keeps besides events: stretches with missing events and texts. There are few of either
// in a run that goes well; where it does not, over days, they must not fill the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

class GapList {
 public:
  /// Most notes; beyond it, neighbours of a rank become one that says how many it stands for.
  static constexpr std::size_t kMost = std::size_t{1} << 14;

  void add(const Gap& gap);
  /// More events of a rank are not here any more, from its first one up to `end_ns`: one gap for all of them.
  void add_evicted(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t events);
  /// `goes_on`: nothing lies between it and the last one of its rank, which becomes longer.
  void add_not_kept(const Gap& gap, bool goes_on);
  void shift(std::int64_t delta_ns);
  [[nodiscard]] std::span<const Gap> gaps() const noexcept { return gaps_; }

 private:
  void join();

  std::vector<Gap> gaps_;        ///< in order of arrival
  std::size_t join_at_ = kMost;  ///< more than that, where joining did not help much
};

class MessageList {
 public:
  explicit MessageList(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Beyond `most_bytes` the oldest go, infos before warnings and errors last, and a text in their place says
  /// how many.
  void add(Message message);
  void shift(std::int64_t delta_ns);
  [[nodiscard]] std::span<const Message> messages() const noexcept { return messages_; }

 private:
  void forget();

  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::vector<Message> messages_;  ///< by time
};

}  // namespace shardscope::store
