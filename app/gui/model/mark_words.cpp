#include "app/gui/model/mark_words.h"

namespace shardscope::gui {

std::string meaning_of(Mark mark, const store::Vocabulary& words) {
  const std::string gather = words.gather;
  switch (mark) {
    case Mark::hatched_gather:
      return "part of a collective until the last rank had arrived: it waited";
    case Mark::late:
      return gather + " that came late: computation waited for it";
    case Mark::tail:
      return gather + " that came early: until its parameters were used";
    case Mark::unused:
      return gather + " that nothing used";
    case Mark::flush:
      return words.has_buckets ? "bucket flushed: full, the next gradient did not fit" : "";
    case Mark::flush_rest:
      return words.has_buckets ? std::string("bucket flushed: backward or gradient accumulation had ended")
                               : std::string(words.bucket) + " begins: " + words.flushed;
    case Mark::gap:
      return "events are missing here";
    case Mark::strip:
      return "rank whose lanes are hidden: computation, " + gather + "s, reductions";
    case Mark::skipped:
      return "step that was skipped (overflow)";
  }
  return "";
}

}  // namespace shardscope::gui
