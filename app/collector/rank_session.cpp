#include "app/collector/rank_session.h"

#include <algorithm>
#include <utility>

namespace shardscope::collector {

namespace {
constexpr std::size_t kChunkEvents = 1U << 16;

bool earlier(const instrumentation::Event& a, const instrumentation::Event& b) noexcept {
  return static_cast<std::int64_t>(a.ticks) < static_cast<std::int64_t>(b.ticks);
}
}  // namespace

RankSession::Accepted RankSession::accept(const wire::Header& header) {
  Accepted result;
  if (incarnation_ != header.incarnation) {
    if (std::find(replaced_.begin(), replaced_.end(), header.incarnation) != replaced_.end()) {
      result.order = Order::stale;
      return result;
    }
    if (incarnation_) replaced_.push_back(*incarnation_);
    incarnation_ = header.incarnation;
    next_sequence_ = 0;
    dropped_total_ = 0;
    result.new_process = true;
  }
  if (header.sequence < next_sequence_) {
    result.order = Order::duplicate;
    return result;
  }
  result.missing = header.sequence - next_sequence_;
  next_sequence_ = header.sequence + 1;
  lost_ += result.missing;
  row.lost_messages += result.missing;
  return result;
}

void RankSession::add(wire::Batch batch, double now_s) {
  // The total, not the part: what a lost message said of drops is in the total of the next one.
  if (batch.dropped_total > dropped_total_) {
    dropped_ += batch.dropped_total - dropped_total_;
    row.dropped += batch.dropped_total - dropped_total_;
    dropped_total_ = batch.dropped_total;
  }
  clock_error_ns = batch.clock_error_ns;
  if (events_.empty()) since_s_ = now_s;
  row.events += batch.events.size();
  if (events_.empty()) {
    events_ = std::move(batch.events);
  } else {
    events_.insert(events_.end(), batch.events.begin(), batch.events.end());
  }
  row_dirty = true;
}

bool RankSession::due(double now_s, double chunk_age_s) const {
  return events_.size() >= kChunkEvents || (pending() && now_s - since_s_ >= chunk_age_s);
}

store::Chunk RankSession::take_chunk() {
  store::Chunk chunk;
  if (!std::is_sorted(events_.begin(), events_.end(), earlier)) {
    std::stable_sort(events_.begin(), events_.end(), earlier);
  }
  if (events_.size() <= kChunkEvents) {
    chunk.events.swap(events_);
  } else {
    const auto cut = events_.begin() + static_cast<std::ptrdiff_t>(kChunkEvents);
    chunk.events.assign(events_.begin(), cut);
    events_.erase(events_.begin(), cut);
  }
  chunk.rank = row.rank;
  chunk.sequence = chunk_sequence_++;
  if (!chunk.events.empty()) {
    const auto last = static_cast<std::int64_t>(chunk.events.back().ticks);
    row.clock_offset_ns = clock.offset_ns(last);
    row.clock_residual_ns = clock.residual_ns(last) + clock_error_ns;
    row.last_ns = std::max(row.last_ns, last + row.clock_offset_ns);
  }
  chunk.clock_offset_ns = row.clock_offset_ns;
  chunk.clock_residual_ns = row.clock_residual_ns;
  chunk.dropped_before = std::exchange(dropped_, 0);
  chunk.lost_before = std::exchange(lost_, 0);
  row_dirty = true;
  return chunk;
}

}  // namespace shardscope::collector
