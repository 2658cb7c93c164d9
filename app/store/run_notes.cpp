#include "app/store/run_notes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "app/store/merge_in_time.h"

namespace shardscope::store {
namespace {

/// A gap that can be merged with its neighbour: neither damage nor an unknown number of events.
bool may_be_joined(const Gap& gap) noexcept {
  return !gap.damaged && !gap.cut_off && !gap.evicted && !gap.not_kept &&
         (gap.events != 0 || gap.messages != 0);
}

void join_into(Gap& gap, const Gap& next) noexcept {
  gap.begin_ns = std::min(gap.begin_ns, next.begin_ns);
  gap.end_ns = std::max(gap.end_ns, next.end_ns);
  gap.events += next.events;
  gap.shed += next.shed;
  gap.messages += next.messages;
  gap.messages_between += next.messages_between;
  gap.stretches += next.stretches;
}

std::size_t size_of(const Message& message) noexcept { return sizeof message + message.text.capacity(); }

}  // namespace

void GapList::add(const Gap& gap) {
  gaps_.push_back(gap);
  if (gaps_.size() > join_at_) join();
}

void GapList::add_evicted(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                          std::uint64_t events) {
  const auto known = std::find_if(gaps_.begin(), gaps_.end(),
                                  [rank](const Gap& gap) { return gap.evicted && gap.rank == rank; });
  if (known == gaps_.end()) {
    gaps_.push_back(
        {.rank = rank, .begin_ns = begin_ns, .end_ns = end_ns, .events = events, .evicted = true});
    return;
  }
  known->begin_ns = std::min(known->begin_ns, begin_ns);
  known->end_ns = std::max(known->end_ns, end_ns);
  known->events += events;
}

void GapList::add_not_kept(const Gap& gap, bool adjacent) {
  const auto last = std::find_if(gaps_.rbegin(), gaps_.rend(), [&gap](const Gap& other) {
    return other.not_kept && other.rank == gap.rank;
  });
  if (!adjacent || last == gaps_.rend()) return add(gap);
  last->begin_ns = std::min(last->begin_ns, gap.begin_ns);
  last->end_ns = std::max(last->end_ns, gap.end_ns);
  last->events += gap.events;
}

void GapList::join() {
  std::vector<Gap> joined;
  std::map<std::uint32_t, std::size_t> alone;  // by rank: index in `joined` of a gap to merge the next into
  for (const Gap& gap : gaps_) {
    const auto first = alone.find(gap.rank);
    if (!may_be_joined(gap)) {
      if (first != alone.end()) alone.erase(first);
      joined.push_back(gap);
    } else if (first == alone.end()) {
      alone.emplace(gap.rank, joined.size());
      joined.push_back(gap);
    } else {
      join_into(joined[first->second], gap);
      alone.erase(first);
    }
  }
  gaps_ = std::move(joined);
  join_at_ = gaps_.size() > kMost / 4 * 3 ? 2 * gaps_.size() : kMost;
}

void GapList::shift(std::int64_t delta_ns) {
  for (Gap& gap : gaps_) {
    gap.begin_ns += delta_ns;
    gap.end_ns += delta_ns;
  }
}

void MessageList::add(Message message) {
  bytes_ += size_of(message);
  messages_.push_back(std::move(message));
  merge_in_time(messages_, messages_.size() - 1, [](const Message& m) { return m.at_ns; });
  if (bytes_ > most_bytes_) forget();
}

/// Removes a quarter at once, so that one pass over the list serves many calls.
void MessageList::forget() {
  Message note;
  note.severity = ev::Severity::warning;
  const std::size_t enough = most_bytes_ / 4 * 3;
  for (const ev::Severity severity : {ev::Severity::info, ev::Severity::warning, ev::Severity::error}) {
    std::vector<Message> kept;
    kept.reserve(messages_.size());
    for (Message& message : messages_) {
      const bool note_before = message.stands_for != 0;
      if (!note_before && (bytes_ <= enough || message.severity != severity)) {
        kept.push_back(std::move(message));
        continue;
      }
      bytes_ -= size_of(message);
      note.stands_for += note_before ? message.stands_for : 1;
      note.at_ns = std::max(note.at_ns, message.at_ns);
    }
    messages_ = std::move(kept);
    if (bytes_ <= enough) break;
  }
  note.text = std::to_string(note.stands_for) +
              " texts up to here are not kept: there are too many; a recording has them in table messages";
  bytes_ += size_of(note);
  messages_.push_back(std::move(note));
  merge_in_time(messages_, messages_.size() - 1, [](const Message& m) { return m.at_ns; });
}

void MessageList::shift(std::int64_t delta_ns) {
  for (Message& message : messages_) message.at_ns += delta_ns;
}

}  // namespace shardscope::store
