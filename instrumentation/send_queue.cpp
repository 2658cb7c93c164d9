#include "instrumentation/send_queue.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace shardscope::instrumentation {
namespace {

/// Records `events` dropped in [begin, end), in addition to earlier ones. In a relayed batch the interval may
/// be that of its source's drops.
void add_dropped(wire::Batch& batch, std::uint64_t events, std::int64_t begin_ns, std::int64_t end_ns) {
  const bool alone = batch.dropped_here == 0 && !batch.relay;
  batch.begin_ns = alone ? begin_ns : std::min(batch.begin_ns, begin_ns);
  batch.end_ns = alone ? end_ns : std::max(batch.end_ns, end_ns);
  batch.dropped_here += events;
}

}  // namespace

std::size_t SendQueue::size_of(const wire::Body& body) noexcept {
  // An estimate of the memory that an entry holds, not the bytes that it takes on the wire.
  constexpr std::size_t kOverhead = sizeof(Entry);
  if (const auto* batch = std::get_if<wire::Batch>(&body))
    return kOverhead + batch->events.capacity() * sizeof(Event);  // its capacity, used or not
  if (const auto* text = std::get_if<wire::Text>(&body)) return kOverhead + text->text.size();
  return kOverhead;  // tables exist once for the whole run and do not count against the limit
}

void SendQueue::push(wire::Batch batch) {
  Entry entry;
  // Events are not counted by class here: only a scan that sheds needs the counts, and most batches are sent
  // before one.
  entry.body = std::move(batch);
  entry.bytes = size_of(entry.body);
  bytes_ += entry.bytes;
  entries_.push_back(std::move(entry));
  // To an eighth below the limit, so that one scan frees space for many batches.
  if (bytes_ > limit_) shed_to(limit_ - limit_ / 8);
}

void SendQueue::set_limit(std::size_t bytes) {
  limit_ = bytes;
  if (bytes_ > limit_) shed_to(limit_ - limit_ / 8);
}

/// Only texts are bounded here. Tables, names and the end are never shed.
void SendQueue::push(wire::Body body, std::uint64_t source_next) {
  Entry entry;
  entry.source_next = source_next;
  entry.bytes = size_of(body);
  if (std::holds_alternative<wire::Tables>(body)) ++tables_;
  const bool text = std::holds_alternative<wire::Text>(body);
  entry.body = std::move(body);
  bytes_ += entry.bytes;
  if (text) text_bytes_ += entry.bytes;
  entries_.push_back(std::move(entry));
  if (text && last_ == Last::shed && text_bytes_ > limit_ / 8) shed_texts();
}

/// Texts have no class of events and are not shed by shed_to(). Sheds a quarter of them at once, so that one
/// scan of the queue frees space for many. A note replaces the first, so that the reader sees where and how
/// many are missing.
void SendQueue::shed_texts() {
  // An eighth of the limit less a quarter of it.
  const std::size_t enough = limit_ / 32 * 3;
  Entry* place = nullptr;  // of the first shed text, or of an earlier note
  std::uint64_t gone = 0;
  // In order of severity, and oldest first within each: stops as soon as enough is freed.
  for (const Severity severity : {Severity::info, Severity::warning, Severity::error}) {
    for (Entry& entry : entries_) {
      auto* text = std::get_if<wire::Text>(&entry.body);
      if (text == nullptr || &entry == place) continue;
      // An earlier note is merged whatever its severity, so that there is only one.
      const bool stands = entry.stands_for != 0;
      if (!stands && (text_bytes_ <= enough || text->severity != severity)) continue;
      gone += stands ? std::exchange(entry.stands_for, 0) : 1;
      text_bytes_ -= entry.bytes;
      bytes_ -= entry.bytes;
      entry.bytes = 0;
      if (place == nullptr) {
        place = &entry;
      } else {
        entry.body = wire::Ping{};  // marks it for removal
      }
    }
    if (text_bytes_ <= enough) break;
  }
  // Not null: the caller found more than limit_ / 8 bytes of texts, so at least one went.
  auto& note = std::get<wire::Text>(place->body);
  note.severity = Severity::warning;
  note.text = std::to_string(gone) + " texts were not sent: there was no collector that took them in";
  place->stands_for = gone;
  // Restores the sums: the loop subtracted the text like the others.
  place->bytes = size_of(place->body);
  bytes_ += place->bytes;
  text_bytes_ += place->bytes;
  std::erase_if(entries_, [](const Entry& entry) { return entry.bytes == 0; });
}

/// Ignores the limit: a collector's request is answered however much is queued.
void SendQueue::push_front(wire::Body body) {
  if (std::holds_alternative<wire::Tables>(body)) ++tables_;
  Entry entry;
  entry.bytes = size_of(body);
  entry.body = std::move(body);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
}

wire::Body SendQueue::pop() {
  Entry entry = std::move(entries_.front());
  entries_.pop_front();
  bytes_ -= entry.bytes;
  if (std::holds_alternative<wire::Text>(entry.body)) text_bytes_ -= entry.bytes;
  if (std::holds_alternative<wire::Tables>(entry.body)) --tables_;
  if (auto* batch = std::get_if<wire::Batch>(&entry.body)) {
    // Batches are sent in order, so the running sum covers all batches up to this one. It is computed here
    // and not in push(), since shedding changes `dropped_here` while a batch waits.
    dropped_sent_ += batch->dropped_here;
    batch->dropped_total = dropped_sent_;
  }
  return std::move(entry.body);
}

std::uint64_t SendQueue::events() const noexcept {
  std::uint64_t sum = 0;
  for (const Entry& entry : entries_) {
    if (const auto* batch = std::get_if<wire::Batch>(&entry.body)) sum += batch->events.size();
  }
  return sum;
}

/// Once per batch; shedding keeps the counts up to date afterwards.
void SendQueue::count(Entry& entry) noexcept {
  const auto* batch = std::get_if<wire::Batch>(&entry.body);
  if (entry.counted || batch == nullptr) return;
  for (const Event& event : batch->events) ++entry.counts[static_cast<std::size_t>(shed_class(event.kind))];
  entry.counted = true;
}

/// Class by class from the least important (ShedClass), within each from the oldest batch; stops when
/// `bytes_` is at most `target`. A class is removed from every batch before the next one is touched.
void SendQueue::shed_to(std::size_t target) {
  for (Entry& entry : entries_) count(entry);
  constexpr auto kSteps = static_cast<std::uint8_t>(ShedClass::steps);
  static_assert(kSteps + 1 == kShedClasses, "what is never shed by a collector comes last");
  // Steps are excluded. Watermarks of memory events stay: shed() keeps the maximum and the last event of each
  // pool in a batch.
  for (std::uint8_t victim = 0; victim < kSteps && bytes_ > target; ++victim) {
    for (Entry& entry : entries_) {
      if (bytes_ <= target) break;
      if (entry.counts[victim] == 0) continue;
      auto& batch = std::get<wire::Batch>(entry.body);
      std::int64_t first = INT64_MAX, last = INT64_MIN;
      // May be 0: watermarks of a batch count as memory and stay.
      const std::uint32_t gone = instrumentation::shed(batch.events, ShedClass{victim}, first, last);
      count_gone(entry, victim, gone, first, last);
    }
  }
  // Last::keep: the queue may stay above `target`, and full() then stops the owner.
  if (last_ == Last::shed) {
    // Watermarks first, then steps, oldest first.
    constexpr auto kMemory = static_cast<std::uint8_t>(ShedClass::memory);
    for (const std::uint8_t victim : {kMemory, kSteps}) {
      for (Entry& entry : entries_) {
        if (bytes_ <= target) break;
        if (entry.counts[victim] == 0) continue;
        auto& events = std::get<wire::Batch>(entry.body).events;
        std::int64_t first = INT64_MAX, last = INT64_MIN;
        // All events of the class in this batch, including watermarks, which shed() would keep. `ticks` are
        // nanoseconds here.
        const auto gone = std::erase_if(events, [&](const Event& event) {
          if (shed_class(event.kind) != ShedClass{victim}) return false;
          first = std::min(first, static_cast<std::int64_t>(event.ticks));
          last = std::max(last, static_cast<std::int64_t>(event.ticks));
          return true;
        });
        count_gone(entry, victim, static_cast<std::uint32_t>(gone), first, last);
      }
    }
  }
  join_empty();
}

void SendQueue::count_gone(Entry& entry, std::uint8_t victim, std::uint32_t gone, std::int64_t first_ns,
                           std::int64_t last_ns) {
  auto& batch = std::get<wire::Batch>(entry.body);
  // size_of() counts the capacity: without this nothing would be freed.
  batch.events.shrink_to_fit();
  // The interval is half open.
  if (gone != 0) add_dropped(batch, gone, first_ns, last_ns + 1);
  shed_ += gone;
  // Not set to 0: watermarks that stayed are still of this class.
  entry.counts[victim] -= gone;
  bytes_ -= entry.bytes;
  entry.bytes = size_of(entry.body);
  bytes_ += entry.bytes;
}

void SendQueue::join_empty() {
  // Empty batches still carry their drop counts: each is merged into the next one. Neighbours only: a text or
  // a table between them has its place in time, and a batch is not moved across it. The last entry stays,
  // since no batch follows that could take its count.
  for (std::size_t i = 0; i + 1 < entries_.size(); ++i) {
    auto* batch = std::get_if<wire::Batch>(&entries_[i].body);
    auto* next = std::get_if<wire::Batch>(&entries_[i + 1].body);
    if (batch == nullptr || next == nullptr || !batch->events.empty()) continue;
    if (batch->dropped_here != 0) add_dropped(*next, batch->dropped_here, batch->begin_ns, batch->end_ns);
    // The merged batch begins at the first of its source's messages.
    if (batch->relay && next->relay) next->relay->source_first = batch->relay->source_first;
    bytes_ -= entries_[i].bytes;
    entries_[i].bytes = 0;
    entries_[i].body = wire::Ping{};  // marks it for removal
  }
  std::erase_if(entries_, [](const Entry& entry) { return entry.bytes == 0; });
}

}  // namespace shardscope::instrumentation
