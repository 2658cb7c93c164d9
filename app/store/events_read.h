// Progress of a reader through a recording's events, by rank, and checks of their order. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>

namespace shardscope::store {

class EventsRead {
 public:
  /// Whether `sequence` is greater than every sequence read of the rank.
  [[nodiscard]] bool comes_next(std::uint32_t rank, std::uint64_t sequence) const {
    const auto last = last_.find(rank);
    return last == last_.end() || sequence > last->second;
  }
  /// By rank: one more than the greatest sequence read.
  [[nodiscard]] std::map<std::uint32_t, std::uint64_t> read_until() const {
    std::map<std::uint32_t, std::uint64_t> out;
    for (const auto& [rank, last] : last_) out[rank] = last + 1;
    return out;
  }
  /// Adds chunks [sequence, sequence + parts); those skipped before them count as missing. Throws
  /// std::runtime_error where they are out of order.
  void follow(std::uint32_t rank, std::uint64_t sequence, std::uint32_t parts) {
    const auto [last, first_of_rank] = last_.try_emplace(rank, sequence);
    if (!first_of_rank && sequence <= last->second) throw std::runtime_error("chunk: out of order");
    missing_ += sequence - (first_of_rank ? 0 : last->second + 1);
    last->second = sequence + parts - 1;
  }
  void count(std::uint32_t rank, std::uint32_t parts, std::uint64_t events) {
    chunks_ += parts;
    events_ += events;
    by_rank_[rank] += events;
  }
  /// Counts chunks that the recorder deleted and replaced by a sum.
  void count_not_kept(std::uint32_t rank, std::uint32_t parts, std::uint64_t events) {
    not_kept_chunks_ += parts;
    by_rank_[rank] += events;
  }

  [[nodiscard]] std::uint64_t chunks() const noexcept { return chunks_; }  ///< in the file
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }  ///< in the file
  [[nodiscard]] std::uint64_t not_kept_chunks() const noexcept { return not_kept_chunks_; }
  [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }  ///< chunks between those read
  /// Events by rank, including those not kept.
  [[nodiscard]] const std::map<std::uint32_t, std::uint64_t>& by_rank() const noexcept { return by_rank_; }

 private:
  std::map<std::uint32_t, std::uint64_t> last_;  ///< sequence, by rank
  std::map<std::uint32_t, std::uint64_t> by_rank_;
  std::uint64_t chunks_ = 0, events_ = 0, not_kept_chunks_ = 0, missing_ = 0;
};

}  // namespace shardscope::store
