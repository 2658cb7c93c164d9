#include "app/store/losses.h"

namespace shardscope::store {

Losses losses_of(const Store& store) {
  Losses out;
  out.dropped = store.dropped_count();
  for (const Gap& gap : store.gaps()) {
    out.shed += gap.shed;
    if (gap.damaged) out.damaged_events += gap.events;
  }
  std::uint64_t taken_in = 0;
  for (const RankRow& row : store.ranks()) {
    out.lost_messages += row.lost_messages;
    taken_in += row.events;
  }
  const std::uint64_t accounted = store.event_count() + out.damaged_events;
  if (taken_in > accounted) out.absent_events = taken_in - accounted;
  for (const Store::UnmatchedEnds& row : store.unmatched_ends()) {
    out.unmatched_ends += row.count;
    out.explained_ends += row.explained;
  }
  return out;
}

std::string text_of(const Losses& losses) {
  std::string text = std::to_string(losses.dropped) + " dropped";
  if (losses.shed != 0) text += " (" + std::to_string(losses.shed) + " of them by a collector)";
  text += ", " + std::to_string(losses.lost_messages) +
          (losses.lost_messages == 1 ? " message lost" : " messages lost");
  if (losses.damaged_events != 0) text += ", " + std::to_string(losses.damaged_events) + " damaged";
  if (losses.absent_events != 0)
    text += ", " + std::to_string(losses.absent_events) + " not in the recording";
  if (losses.unmatched_ends != 0)
    text += ", " + unmatched_ends_text(losses.unmatched_ends, losses.explained_ends);
  return text;
}

std::string unmatched_ends_text(std::uint64_t count, std::uint64_t explained) {
  std::string text = std::to_string(count) + (count == 1 ? " unmatched span end" : " unmatched span ends");
  if (explained == 0) return text;
  return text + (explained == count ? "" : ", " + std::to_string(explained) + " of them") +
         (explained == count ? ", explained: " : " explained: ") + "events are missing there";
}

std::string unmatched_ends_by_rank(std::span<const Store::UnmatchedEnds> ends) {
  constexpr std::size_t kShown = 3;
  std::string text;
  std::size_t ranks = 0;
  std::optional<std::uint32_t> last;
  for (const Store::UnmatchedEnds& row : ends) {
    if (row.count == row.explained) continue;
    const bool same = last == row.rank;
    if (!same) ++ranks;
    last = row.rank;
    if (ranks > kShown) continue;
    if (!text.empty()) text += same ? ", " : "; ";
    if (!same) text += "rank " + std::to_string(row.rank) + ": ";
    text += std::to_string(row.count - row.explained) + " " + ev::name_of(row.kind);
  }
  if (ranks > kShown) {
    text += "; " + std::to_string(ranks - kShown) + (ranks == kShown + 1 ? " more rank" : " more ranks");
  }
  return text;
}

}  // namespace shardscope::store
