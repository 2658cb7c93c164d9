#include "app/collector/view_log.h"

#include <algorithm>
#include <utility>

namespace shardscope::collector {

using instrumentation::wire::ViewItem;
using instrumentation::wire::ViewReply;

void ViewLog::append(ViewItem item) {
  const std::lock_guard lock(mutex_);
  log_.append(std::move(item));
}

bool ViewLog::add_tables(ViewItem item, std::vector<std::uint8_t> bare) {
  const std::lock_guard lock(mutex_);
  const auto known = tables_at_.find(item.rank);
  if (known != tables_at_.end() && statics_[known->second.at].data == item.data) return false;
  if (known != tables_at_.end()) {
    std::vector<std::uint8_t>& before = statics_[known->second.at].data;
    statics_bytes_ -= before.size();
    before = std::move(known->second.bare);
    statics_bytes_ += before.size();
  }
  tables_at_[item.rank] = {statics_.size(), std::move(bare)};
  statics_bytes_ += item.data.size();
  statics_.push_back(std::move(item));
  return true;
}

void ViewLog::add_name(ViewItem item) {
  const std::lock_guard lock(mutex_);
  statics_bytes_ += item.text.size();
  statics_.push_back(std::move(item));
}

ViewLog::Ends ViewLog::ends() const {
  const std::lock_guard lock(mutex_);
  return {statics_.size(), log_.end()};
}

void ViewLog::read(std::uint64_t static_cursor, std::uint64_t cursor, std::size_t bytes, std::size_t items,
                   ViewReply& reply) const {
  const std::lock_guard lock(mutex_);
  std::size_t taken = 0;
  std::uint64_t fixed = std::min<std::uint64_t>(static_cursor, statics_.size());
  for (; fixed < statics_.size() && taken < bytes; ++fixed) {
    reply.items.push_back(statics_[fixed]);
    taken += reply.items.back().data.size() + 64;
  }
  std::uint64_t next = std::min(cursor, log_.end());
  // Tables first: the log cannot be read without them.
  if (fixed == statics_.size()) {
    if (next < log_.begin()) {
      ViewItem note;
      note.kind = ViewItem::Kind::message;
      note.severity = instrumentation::Severity::warning;
      note.text = (next == 0 ? "the first " : "") + std::to_string(log_.begin() - next) +
                  " pieces of this run (chunks of events, and messages) are no longer kept by the collector; "
                  "the recorder's file, if there is one, may have them";
      reply.items.push_back(std::move(note));
      next = log_.begin();
    }
    for (; next < log_.end() && taken < bytes && reply.items.size() < items; ++next) {
      reply.items.push_back(log_.get(next));
      taken += reply.items.back().data.size() + reply.items.back().text.size() + 64;
    }
  }
  reply.static_cursor = fixed;
  reply.cursor = next;
  reply.begin_cursor = log_.begin();
  reply.end_cursor = log_.end();
}

std::size_t ViewLog::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return log_.memory_bytes() + statics_bytes_;
}

}  // namespace shardscope::collector
