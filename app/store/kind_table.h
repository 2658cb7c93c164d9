// Rows by rank, stream, kind and code of events. A run has a few dozen such combinations and millions of
// events, so rows are found by hash, without a tree and without an allocation per row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

/// Sorts in the order of rank, stream, kind, code.
[[nodiscard]] constexpr std::uint64_t kind_key(LaneId lane, ev::EventKind kind, std::uint8_t code) noexcept {
  return std::uint64_t{lane.rank} << 32U | static_cast<std::uint64_t>(lane.stream) << 24U |
         static_cast<std::uint64_t>(kind) << 8U | code;
}

template <typename Row>
class KindTable {
 public:
  /// The row of a key, and whether this call added it. Valid until the next call.
  std::pair<Row&, bool> row(std::uint64_t key) {
    for (std::size_t at = hash(key);; ++at) {
      const std::uint32_t entry = slots_[at & (slots_.size() - 1)];
      if (entry == 0) break;
      if (rows_[entry - 1].first == key) return {rows_[entry - 1].second, false};
    }
    rows_.push_back({key, Row{}});
    if (rows_.size() * 2 > slots_.size()) {
      slots_.assign(slots_.size() * 2, 0);
      for (std::size_t i = 0; i + 1 < rows_.size(); ++i) put(i);
    }
    put(rows_.size() - 1);
    return {rows_.back().second, true};
  }
  void clear() {
    rows_.clear();
    std::fill(slots_.begin(), slots_.end(), 0);
  }
  /// In order of key.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, Row>> sorted() const {
    std::vector<std::pair<std::uint64_t, Row>> out = rows_;
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return out;
  }

 private:
  [[nodiscard]] static std::size_t hash(std::uint64_t key) noexcept {
    return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15U >> 40U);
  }
  void put(std::size_t row) {
    std::size_t at = hash(rows_[row].first);
    while (slots_[at & (slots_.size() - 1)] != 0) ++at;
    slots_[at & (slots_.size() - 1)] = static_cast<std::uint32_t>(row + 1);
  }

  std::vector<std::pair<std::uint64_t, Row>> rows_;
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(128);  ///< row + 1, by hash of its key
};

}  // namespace shardscope::store
