#include "app/store/bucket_tracker.h"

#include <algorithm>

namespace shardscope::store {

void BucketTracker::add(const ev::Event& event, std::int64_t at_ns) {
  const auto known = std::find_if(open_.begin(), open_.end(),
                                  [&](const BucketState& bucket) { return bucket.bucket == event.a; });
  switch (event.kind) {
    case ev::EventKind::bucket_open:
      if (known != open_.end()) open_.erase(known);  // its flush was lost
      if (open_.size() >= kMostOpen) open_.erase(open_.begin());
      open_.push_back({.bucket = event.a, .buffer = event.c, .since_ns = at_ns, .elems = 0, .params = {}});
      return;
    case ev::EventKind::bucket_add:
      if (known == open_.end()) return;  // opened before the first event that was seen
      known->elems = event.v1;
      if (known->params.size() < kMostParams) known->params.push_back(event.b);
      return;
    case ev::EventKind::bucket_flush:
      if (known != open_.end()) open_.erase(known);
      return;
    default:
      return;
  }
}

}  // namespace shardscope::store
