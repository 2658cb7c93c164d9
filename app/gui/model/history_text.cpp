#include "app/gui/model/history_text.h"

#include <algorithm>

#include "app/gui/model/format.h"

namespace shardscope::gui {

std::string details_from(const store::Store& store) {
  const store::Store::Evicted gone = store.evicted();
  return gone.events == 0 ? std::string() : "details from " + duration(gone.until_ns).text() + " on";
}

std::string steps_kept(const Session& run) {
  const Analysis& analysis = *run.analysis();
  if (analysis.evicted_steps == 0 && run.store().evicted().steps == 0) return {};
  return "the last " + grouped(static_cast<std::int64_t>(analysis.steps)) + " steps";
}

std::string eviction_text(const store::Store& store) {
  const store::Store::Evicted gone = store.evicted();
  return "To bound memory, " + grouped(static_cast<std::int64_t>(gone.events)) + " events and the rows of " +
         grouped(static_cast<std::int64_t>(gone.steps)) +
         " steps from the start of the run were dropped. Only coarse levels of detail, peaks, sums and "
         "counts of them remain; a recording has all";
}

}  // namespace shardscope::gui
