// Gaps and messages of a run, in bounded memory. A healthy run has few of either;
// others may produce them for days.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

class GapList {
 public:
  /// Most notes; beyond it, neighbours of a rank are merged into one that has their number.
  static constexpr std::size_t kMost = std::size_t{1} << 14;

  void add(const Gap& gap);
  /// More events of a rank were evicted, from its first one up to `end_ns`: one gap for all of them.
  void add_evicted(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t events);
  /// `adjacent`: `gap` directly follows the last one of its rank, which is extended.
  void add_not_kept(const Gap& gap, bool adjacent);
  void shift(std::int64_t delta_ns);
  [[nodiscard]] std::span<const Gap> gaps() const noexcept { return gaps_; }

 private:
  void join();

  std::vector<Gap> gaps_;        ///< in order of arrival
  std::size_t join_at_ = kMost;  ///< larger where merging did not help much
};

class MessageList {
 public:
  explicit MessageList(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Beyond `most_bytes` the oldest are removed, infos before warnings and errors last, and a text in their
  /// place has their number.
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
