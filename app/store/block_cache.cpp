#include "app/store/block_cache.h"

#include <utility>

namespace shardscope::store {

const BlockCache::Held* BlockCache::find(const Key& key) {
  const auto at = index_.find(key);
  if (at == index_.end()) return nullptr;
  const Held& held = at->second->held;
  held.used = true;
  return &held;
}

const BlockCache::Held* BlockCache::put(const Key& key, std::shared_ptr<const void> value,
                                        std::size_t bytes) {
  const auto known = index_.find(key);
  if (known != index_.end()) {
    ++version_;
    bytes_ -= known->second->bytes;
    entries_.erase(known->second);
    index_.erase(known);
  }
  entries_.push_front({.key = key, .held = {.value = std::move(value)}, .bytes = bytes});
  const auto newest = entries_.begin();
  index_[key] = newest;
  bytes_ += bytes;
  newest->held.used = true;
  make_room();
  newest->held.used = false;
  return &newest->held;
}

void BlockCache::make_room() {
  // Each entry is spared at most once, so the loop ends; the newest would be the last to be removed.
  while (bytes_ > limit_ && entries_.size() > 1) {
    const auto oldest = std::prev(entries_.end());
    if (std::exchange(oldest->held.used, false)) {
      entries_.splice(entries_.begin(), entries_, oldest);
      continue;
    }
    ++version_;
    bytes_ -= oldest->bytes;
    index_.erase(oldest->key);
    entries_.erase(oldest);
  }
}

void BlockCache::clear() {
  ++version_;
  entries_.clear();
  index_.clear();
  bytes_ = 0;
}

void BlockCache::set_limit(std::size_t bytes) {
  limit_ = bytes;
  make_room();
}

}  // namespace shardscope::store
