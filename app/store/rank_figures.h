// Figures of a rank summed over its blocks: exact even where the blocks are not decoded otherwise.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "app/store/block.h"
#include "app/store/span_totals.h"

namespace shardscope::store {

struct RankFigures {
  struct Peaks {
    std::optional<MemorySample> all, model_state;
    void take(const BlockPeaks& of_block) {
      const auto higher = [](std::optional<MemorySample>& known, const MemorySample& sample) {
        if (!known || sample.total() > known->total()) known = sample;
      };
      higher(all, of_block.all);
      higher(model_state, of_block.model_state);
    }
  };
  std::array<std::uint8_t, ev::kStreamCount> depths{};
  std::array<Peaks, ev::kMemoryPoolCount> peaks;
  SpanTotals totals;
  /// Instants by kind and code, and unmatched ends by kind of the end.
  std::map<std::pair<ev::EventKind, std::uint8_t>, std::uint64_t> counts;
  std::vector<ev::Event> notable;  ///< in order of arrival
  bool gates = false;

  /// Call in the order of the blocks.
  void add(const BlockHead& head) {
    for (std::size_t s = 0; s < depths.size(); ++s) depths[s] = std::max(depths[s], head.depths[s]);
    for (std::size_t p = 0; p < peaks.size(); ++p)
      if (head.has_memory[p]) peaks[p].take(head.peaks[p]);
    totals.merge(head.totals);
    for (const InstantCount& count : head.counts) counts[{count.kind, count.code}] += count.count;
    notable.insert(notable.end(), head.notable.begin(), head.notable.end());
    gates = gates || head.gates != 0;
  }
};

}  // namespace shardscope::store
