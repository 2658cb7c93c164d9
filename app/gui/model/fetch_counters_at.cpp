#include "app/gui/model/fetch_counters_at.h"

namespace shardscope::gui {

const std::optional<analysis::MicroStepCounters>& FetchCountersAt::of(const store::Store& store,
                                                                      std::uint32_t rank,
                                                                      std::int64_t at_ns) {
  const auto gate = store.gate_before(rank, at_ns + 1, [](const store::Store::GateRow& row) {
    return row.kind == instrumentation::GateKind::micro_step;
  });
  const Key key{&store, rank, gate ? gate->number : 0,
                store.instant_count(rank, instrumentation::EventKind::fetch_counter)};
  if (key_ != key) {
    counters_ = analysis::fetch_counters_at(store, rank, at_ns);
    key_ = key;
  }
  return counters_;
}

}  // namespace shardscope::gui
