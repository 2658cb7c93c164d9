// Takes in what a search has found since, piece by piece: what figures, rows and marks of the hits share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "app/gui/model/find_spans.h"

namespace shardscope::gui {

struct Taken {
  bool any = false;
  bool all = true;  ///< nothing that is settled is left
};

/// Calls take(lane's index, lane, hit's index) for each settled hit not taken yet, until the clock says
/// `until`; one piece at least. `taken`: how many of each lane were, kept by the caller.
template <typename Take>
Taken for_each_new_hit(const SpanSearch& search, std::vector<std::size_t>& taken,
                       std::chrono::steady_clock::time_point until, Take&& take) {
  constexpr std::size_t kPiece = 2048;  // between two looks at the clock
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
