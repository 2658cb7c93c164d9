// Processes new hits of a search in pieces: shared by the statistics, rows and marks of the hits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "app/gui/model/find_spans.h"

namespace shardscope::gui {

struct Taken {
  bool any = false;
  bool all = true;  ///< no settled hit is left
};

/// Calls take(lane index, lane, hit index) for each settled hit that is new, until time `until`; at least one
/// piece. `taken`: number of processed hits by lane, kept by the caller.
template <typename Take>
Taken for_each_new_hit(const SpanSearch& search, std::vector<std::size_t>& taken,
                       std::chrono::steady_clock::time_point until, Take&& take) {
  constexpr std::size_t kPiece = 2048;  // hits between two checks of the clock
  const auto lanes = search.lanes();
  taken.resize(lanes.size());
  Taken out;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    while (taken[i] < lanes[i].settled) {
      if (out.any && std::chrono::steady_clock::now() >= until) {
        out.all = false;
        return out;
      }
      out.any = true;
      const std::size_t to = std::min(lanes[i].settled, taken[i] + kPiece);
      for (; taken[i] < to; ++taken[i]) take(i, lanes[i], taken[i]);
    }
  }
  return out;
}

}  // namespace shardscope::gui
