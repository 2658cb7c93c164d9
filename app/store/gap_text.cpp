#include "app/store/gap_text.h"

namespace shardscope::store {

std::string what_is_missing(const Gap& gap) {
  if (gap.damaged) {
    return (gap.events == 0 ? "an unknown number of" : std::to_string(gap.events)) +
           std::string(gap.events == 1 ? " event" : " events") + " that the recording holds damaged";
  }
  if (gap.cut_off) {
    return gap.events == 0 ? "the recording ends here"
                           : std::to_string(gap.events) + (gap.events == 1 ? " event" : " events") +
                                 " that were received and are not in the recording, which ends here";
  }
  if (gap.not_kept) {
    return std::to_string(gap.events) +
           " events that the recorder did not keep (--max-age, --max-size), or whose file is not here "
           "(--max-files): their sums, levels of detail and peaks remain";
  }
  if (gap.evicted) {
    return std::to_string(gap.events) +
           " events that were evicted to keep memory bounded: their sums and levels of detail remain, and a "
           "recording has them";
  }
  std::string text;
  const auto part = [&text](std::uint64_t count, const char* noun, const char* where) {
    if (count == 0) return;
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + noun + (count == 1 ? "" : "s") + " " + where;
  };
  part(gap.events - gap.shed, "event", "dropped by the rank");
  part(gap.shed, "event", "shed by a collector");
  part(gap.messages - gap.messages_between, "message", "lost between rank and collector");
  part(gap.messages_between, "message", "lost between collectors");
  if (text.empty()) return "an unknown number of events";
  if (gap.stretches > 1) text += ", in " + std::to_string(gap.stretches) + " stretches";
  return text;
}

}  // namespace shardscope::store
