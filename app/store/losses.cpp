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
  return text;
}

}  // namespace shardscope::store
