// The state of a run's only rank in a collector's store: how it ended, and when it was silent.
#pragma once

#include <vector>

#include "app/collector/collector.h"
#include "app/store/rank_end.h"
#include "app/store/silences.h"

namespace shardscope::collector {

inline store::RankEnd end_of_only(const Collector& collector) {
  store::RankEnd end;
  collector.read([&](const store::Store& store) {
    if (!store.ranks().empty()) end = store::rank_end(store, store.ranks().front());
  });
  return end;
}

inline std::vector<store::Silence> silences_in(const Collector& collector) {
  std::vector<store::Silence> found;
  collector.read([&](const store::Store& store) { found = store::silences(store); });
  return found;
}

}  // namespace shardscope::collector
