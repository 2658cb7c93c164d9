#include "app/store/bucket_tracker.h"

#include <algorithm>

namespace shardscope::store {

void BucketTracker::add(const ev::Event& event, std::int64_t at_ns) {
  // All bucket events have the bucket's number as first field.
  const std::uint32_t number = ev::as<ev::EventKind::bucket_open>(event).bucket;
  const auto known = std::find_if(open_.begin(), open_.end(),
                                  [&](const BucketState& bucket) { return bucket.bucket == number; });
  switch (event.kind) {
    case ev::EventKind::bucket_open:
      if (known != open_.end()) open_.erase(known);  // its flush was lost
      if (open_.size() >= kMostOpen) open_.erase(open_.begin());
      open_.push_back({.bucket = number,
                       .buffer = ev::as<ev::EventKind::bucket_open>(event).buffer,
                       .since_ns = at_ns,
                       .elems = 0,
                       .params = {}});
      return;
    case ev::EventKind::bucket_add: {
      if (known == open_.end()) return;  // opened before the first received event
      const auto added = ev::as<ev::EventKind::bucket_add>(event);
      known->elems = added.bucket_elems;
      if (known->params.size() < kMostParams) known->params.push_back(added.param);
      return;
    }
    case ev::EventKind::bucket_flush:
      if (known != open_.end()) open_.erase(known);
      return;
    default:
      return;
  }
}

}  // namespace shardscope::store
