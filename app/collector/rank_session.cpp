#include "app/collector/rank_session.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <variant>

namespace shardscope::collector {

namespace {
/// From this size on a chunk's full capacity is reserved at once; smaller ones grow as needed.
constexpr std::size_t kFast = RankSession::kChunkEvents / 2;

bool earlier(const instrumentation::Event& a, const instrumentation::Event& b) noexcept {
  return static_cast<std::int64_t>(a.ticks) < static_cast<std::int64_t>(b.ticks);
}

/// Shifts events, in order of time, that all get the offset of the last: each by the difference of its own
/// offset, interpolated from `more_ns` at the first event to 0 at the last.
void move_along_drift(std::vector<instrumentation::Event>& events, std::int64_t more_ns) {
  const auto last = static_cast<std::int64_t>(events.back().ticks);
  const double span =
      static_cast<double>(last) - static_cast<double>(static_cast<std::int64_t>(events.front().ticks));
  if (more_ns == 0 || span <= 0) return;
  const double per_ns = static_cast<double>(more_ns) / span;
  for (instrumentation::Event& event : events) {
    const double before =
        static_cast<double>(last) - static_cast<double>(static_cast<std::int64_t>(event.ticks));
    event.ticks += static_cast<std::uint64_t>(std::llround(per_ns * before));
  }
}
}  // namespace

RankSession::Accepted RankSession::accept(const wire::Header& header, double now_s) {
  Accepted result;
  note_listed();
  if (incarnation_ != header.incarnation) {
    const auto known = std::find(replaced_.begin(), replaced_.end(), header.incarnation);
    if (known != replaced_.end()) {
      std::rotate(known, known + 1, replaced_.end());
      result.order = Order::stale;
      return result;
    }
    if (header.sequence > kMostBefore) {
      result.order = Order::implausible;
      return result;
    }
    if (incarnation_) replaced_.push_back(*incarnation_);
    if (replaced_.size() > kKnownReplaced) replaced_.pop_front();
    incarnation_ = header.incarnation;
    next_sequence_ = confirmed_ = sent_ = known_received_ = 0;
    confirm_anew_ = false;
    dropped_total_ = 0;
    result.new_process = true;
  }
  if (header.sequence < next_sequence_) {
    // A process that never had a connection for confirmations has no reason to send messages again. One that
    // reconnects may publish over its other connection before its hello.
    const bool gets_confirmations = control_incarnation == header.incarnation || node_clock != nullptr;
    result.order = gets_confirmations && header.sequence >= known_received_ ? Order::again : Order::duplicate;
    if (result.order == Order::again) confirm_anew_ = true;
    return result;
  }
  result.missing = header.sequence - next_sequence_;
  const double most = static_cast<double>(kMostAtOnce) + kMostPerSecond * (now_s - accepted_s_);
  if (!result.new_process && static_cast<double>(result.missing) > most) {
    result.order = Order::implausible;
    return result;
  }
  accepted_s_ = now_s;
  next_sequence_ = header.sequence + 1;
  count_lost(result.missing);
  if (result.new_process) missing_at_first_ = result.missing;
  if (node_clock != nullptr) lost_between_ += result.missing;
  return result;
}

bool RankSession::passed_on_before(const wire::Text& text) {
  const std::size_t hash = std::hash<std::string>{}(std::to_string(text.at_ns) + ' ' + text.text);
  if (std::find(texts_.begin(), texts_.end(), hash) != texts_.end()) return true;
  texts_.push_back(hash);
  if (texts_.size() > kKnownTexts) texts_.pop_front();
  return false;
}

void RankSession::count_dropped(const wire::Batch& batch, std::uint64_t events) {
  dropped_ += events;
  row.dropped += events;
  missing_begin_ns_ = std::min(missing_begin_ns_, batch.begin_ns);
  missing_end_ns_ = std::max(missing_end_ns_, batch.end_ns);
}

void RankSession::count_lost(std::uint64_t messages) {
  lost_ += messages;
  row.lost_messages += messages;
}

/// The rank's process counts the rank's numbers, the node's process the node's: either may be restarted.
void RankSession::add_relayed(const wire::Batch& batch) {
  const wire::Relay& now = *batch.relay;
  const bool same_source = relay_ && relay_->source_incarnation == now.source_incarnation;
  const bool same_node = relay_ && relay_incarnation_ == *incarnation_;
  const std::uint64_t dropped = same_source ? relay_->source_dropped_total : 0;
  if (now.source_dropped_total > dropped) count_dropped(batch, now.source_dropped_total - dropped);
  const std::uint64_t lost = same_node ? relay_->lost_total : 0;
  if (now.lost_total > lost) count_lost(now.lost_total - lost);
  follow_source(now.source_incarnation, now.source_first, now.source_last + 1);
  relay_ = now;
  relay_incarnation_ = *incarnation_;
}

void RankSession::add_relayed(const wire::Header& header) {
  if (header.source_next == 0) return;
  follow_source(header.source, header.source_next - 1, header.source_next);
  numbered_ = true;
}

void RankSession::add_repeated(const wire::Message& message) {
  add_relayed(message.header);
  const auto* const batch = std::get_if<wire::Batch>(&message.body);
  if (batch == nullptr || !batch->relay || !relay_) return;
  follow_source(batch->relay->source_incarnation, batch->relay->source_first, batch->relay->source_last + 1);
  // Messages lost before it by its sender have arrived through another, or count as lost already.
  relay_->lost_total = batch->relay->lost_total;
  relay_incarnation_ = *incarnation_;
}

/// The gap in the node's numbers before its first message counted the same messages once more, and some that
/// were not the rank's: subtracts them, except those in a chunk already. `lost`: by the rank's numbers.
void RankSession::take_back_first(std::uint64_t lost) {
  const std::uint64_t back = std::min(missing_at_first_, lost_);
  lost_ -= back;
  row.lost_messages -= back;
  const std::uint64_t between = std::min(back, lost_between_);
  lost_between_ -= between - std::min(between, lost);
}

void RankSession::follow_source(std::uint64_t source, std::uint64_t first, std::uint64_t next) {
  const bool same_source = source_ == source;
  const std::uint64_t expected = same_source ? source_next_ : 0;
  if (!source_ || source_incarnation_ != *incarnation_) {
    // Another collector of the node was started after the one before it had ended, or this collector after
    // the node's.
    if (first > expected) {
      take_back_first(first - expected);
      count_lost(first - expected);
      if (same_source) {
        lost_with_node_.messages += first - expected;
        lost_with_node_.exact &= numbered_;
      }
    }
    numbered_ = false;
    missing_at_first_ = 0;
  }
  source_ = source;
  source_next_ = std::max(expected, next);
  source_incarnation_ = *incarnation_;
}

void RankSession::add(const wire::Batch& batch, double now_s, const Storage& storage) {
  if (batch.relay) add_relayed(batch);
  // The total, not the difference: drops reported in a lost message are in the total of the next one.
  if (batch.dropped_total > dropped_total_) {
    const std::uint64_t dropped = batch.dropped_total - dropped_total_;
    count_dropped(batch, dropped);
    if (batch.relay) shed_ += dropped;  // the node's collector has shed them
    dropped_total_ = batch.dropped_total;
  }
  clock_error_ns = batch.clock_error_ns;
  row.events += batch.events.size();
  row_dirty = true;
  if (pieces_.empty()) since_s_ = now_s;
  if (batch.events.empty()) return;
  if (pieces_.empty() || pieces_.back().events.size() >= kChunkEvents ||
      pieces_.back().incarnation != incarnation_.value_or(0)) {
    Piece& piece = pieces_.emplace_back();
    piece.incarnation = incarnation_.value_or(0);
    if (fast_ && storage) piece.events = storage();
    piece.since_s = now_s;
  }
  Piece& piece = pieces_.back();
  piece.relay = batch.relay;
  const std::size_t size = piece.events.size() + batch.events.size();
  if (size > kFast && size > piece.events.capacity()) {
    piece.events.reserve(std::max(size, kChunkEvents + batch.events.size()));
  }
  // Our ranks send events in order of time; other programs that speak this protocol may not.
  piece.in_order = piece.in_order && std::is_sorted(batch.events.begin(), batch.events.end(), earlier) &&
                   (piece.events.empty() || !earlier(batch.events.front(), piece.events.back()));
  piece.events.insert(piece.events.end(), batch.events.begin(), batch.events.end());
}

bool RankSession::begins_another_gap(const wire::Batch& batch, double now_s) {
  constexpr std::int64_t kApart_ns = 1'000'000;
  constexpr double kPartAgain_s = 1.0 / 64;
  if (batch.dropped_here == 0 || missing_begin_ns_ >= missing_end_ns_ ||
      batch.begin_ns < missing_end_ns_ + kApart_ns || now_s - parted_s_ < kPartAgain_s)
    return false;
  parted_s_ = now_s;
  return true;
}

double RankSession::due_s(double chunk_age_s) const noexcept {
  constexpr double kNever_s = std::numeric_limits<double>::infinity();
  const std::size_t events = pieces_.empty() ? 0 : pieces_.front().events.size();
  if (events >= kChunkEvents) return -kNever_s;
  if (!pending()) return kNever_s;
  return since_s_ + (events >= kEnoughEvents ? std::min(chunk_age_s, kEnoughAge_s) : chunk_age_s);
}

std::size_t RankSession::pending_bytes() const noexcept {
  std::size_t events = 0;
  for (const Piece& piece : pieces_) events += piece.events.capacity();
  return events * sizeof(instrumentation::Event);
}

std::uint32_t RankSession::shed(instrumentation::ShedClass victim) {
  std::uint32_t gone = 0;
  for (Piece& piece : pieces_) {
    const std::uint32_t here =
        instrumentation::shed(piece.events, victim, missing_begin_ns_, missing_end_ns_);
    if (here != 0) piece.events.shrink_to_fit();
    gone += here;
  }
  if (gone == 0) return 0;
  missing_end_ns_ = std::max(missing_end_ns_, missing_begin_ns_ + 1);  // also for one event: not empty
  join_pieces();
  dropped_ += gone;
  shed_ += gone;
  row.dropped += gone;
  row.events -= gone;
  row_dirty = true;
  return gone;
}

/// Joins neighbouring pieces that shedding has made small, so that they become one chunk.
void RankSession::join_pieces() {
  std::deque<Piece> joined;
  for (Piece& piece : pieces_) {
    if (piece.events.empty()) continue;
    if (joined.empty() || joined.back().events.size() + piece.events.size() > kChunkEvents ||
        joined.back().incarnation != piece.incarnation) {
      joined.push_back(std::move(piece));
      continue;
    }
    Piece& last = joined.back();
    last.relay = piece.relay;
    last.in_order = last.in_order && piece.in_order && !earlier(piece.events.front(), last.events.back());
    last.events.insert(last.events.end(), piece.events.begin(), piece.events.end());
  }
  pieces_.swap(joined);
}

const ClockEstimator& RankSession::clock_of(std::uint64_t incarnation) const {
  static const ClockEstimator kUnknown;
  if (incarnation == control_incarnation) return clock;
  return incarnation == previous_process_.incarnation ? previous_process_.clock : kUnknown;
}

RankSession::ClockMapping RankSession::to_collector_clock(std::int64_t at_ns, const Piece& piece) const {
  if (node_clock == nullptr || !piece.relay) {
    const ClockEstimator& own = clock_of(piece.incarnation);
    return {own.offset_ns(at_ns), own.residual_ns(at_ns)};
  }
  // Rank to node, node to this collector; the error bounds add up.
  const std::int64_t on_node = at_ns + piece.relay->offset_ns;
  return {piece.relay->offset_ns + node_clock->offset_ns(on_node),
          piece.relay->residual_ns + node_clock->residual_ns(on_node)};
}

store::Chunk RankSession::take_chunk() {
  store::Chunk chunk;
  Piece piece;
  if (!pieces_.empty()) {
    piece = std::move(pieces_.front());
    if (!piece.in_order) std::stable_sort(piece.events.begin(), piece.events.end(), earlier);
    chunk.events.swap(piece.events);
    pieces_.pop_front();
    if (!pieces_.empty()) since_s_ = pieces_.front().since_s;
  }
  fast_ = chunk.events.size() >= kFast;
  chunk.rank = row.rank;
  chunk.sequence = chunk_sequence_++;
  if (!chunk.events.empty()) {
    const auto last = static_cast<std::int64_t>(chunk.events.back().ticks);
    const ClockMapping begin =
                           to_collector_clock(static_cast<std::int64_t>(chunk.events.front().ticks), piece),
                       end = to_collector_clock(last, piece);
    move_along_drift(chunk.events, begin.offset_ns - end.offset_ns);
    row.clock_offset_ns = end.offset_ns;
    row.clock_residual_ns = std::max(begin.residual_ns, end.residual_ns) + clock_error_ns;
    if (piece.relay && piece.relay->residual_ns != 0) {  // its offset to the node is its last event's
      const double span =
          std::min(static_cast<double>(chunk.events.back().ticks - chunk.events.front().ticks), 1e15);
      row.clock_residual_ns += static_cast<std::int64_t>(ClockEstimator::kUsualDrift * span);
    }
    row.last_ns = std::max(row.last_ns, last + row.clock_offset_ns);
  }
  chunk.clock_offset_ns = row.clock_offset_ns;
  chunk.clock_residual_ns = row.clock_residual_ns;
  chunk.dropped_before = std::exchange(dropped_, 0);
  chunk.shed_before = std::exchange(shed_, 0);
  if (missing_begin_ns_ < missing_end_ns_) {
    chunk.missing_begin_ns = missing_begin_ns_;
    chunk.missing_end_ns = missing_end_ns_;
  }
  missing_begin_ns_ = INT64_MAX;
  missing_end_ns_ = INT64_MIN;
  chunk.lost_before = std::exchange(lost_, 0);
  chunk.lost_between = std::exchange(lost_between_, 0);
  row_dirty = true;
  return chunk;
}

}  // namespace shardscope::collector
