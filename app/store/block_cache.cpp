#include "app/store/block_cache.h"

#include <utility>

namespace shardscope::store {

std::shared_ptr<const void> BlockCache::find(const Key& key) {
  const auto at = index_.find(key);
  if (at == index_.end()) return nullptr;
  // A frame finds thousands of them, over and over; the order matters only once something else is put.
  Entry& entry = *at->second;
  if (entry.moved != changes_) {
    entries_.splice(entries_.begin(), entries_, at->second);
    entry.moved = changes_;
  }
  return entry.value;
}

void BlockCache::put(const Key& key, std::shared_ptr<const void> value, std::size_t bytes) {
  const auto known = index_.find(key);
  if (known != index_.end()) {
    bytes_ -= known->second->bytes;
    entries_.erase(known->second);
    index_.erase(known);
  }
  entries_.push_front({key, std::move(value), bytes, ++changes_});
  index_[key] = entries_.begin();
  bytes_ += bytes;
  make_room();
}

void BlockCache::make_room() {
  while (bytes_ > limit_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

void BlockCache::clear() {
  ++changes_;
  entries_.clear();
  index_.clear();
  bytes_ = 0;
}

void BlockCache::set_limit(std::size_t bytes) {
  ++changes_;
  limit_ = bytes;
  make_room();
}

}  // namespace shardscope::store
