#include "app/gui/model/module_in_step.h"

#include <algorithm>

#include "app/gui/model/step_of.h"
#include "app/gui/model/step_spans.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {

std::optional<ModuleInStep> module_in_step(const store::Store& store, std::uint32_t rank,
                                           std::uint32_t module, std::int64_t at_ns) {
  const auto at = measured_step_of(store.steps(), at_ns);
  if (!at) return std::nullopt;
  const store::StepRow& step = store.steps()[*at];
  const store::LaneId lane{rank, ev::StreamId::compute};
  struct Seen {
    ModuleInStep::Pass sum;
    std::int64_t first_ns = 0;
  };
  std::vector<Seen> seen;
  for_each_span_in_step(store, lane, step, ev::EventKind::module_begin, [&](const store::Span& span) {
    const auto fields = ev::as<ev::EventKind::module_begin>(span);
    if (fields.module != module) return;
    auto found = std::ranges::find_if(seen, [&](const Seen& one) { return one.sum.pass == fields.pass; });
    if (found == seen.end())
      found = seen.insert(seen.end(), {{.pass = fields.pass, .count = 0, .time_ns = 0}, span.begin_ns});
    found->first_ns = std::min(found->first_ns, span.begin_ns);
    ++found->sum.count;
    found->sum.time_ns += store::time_of(store, rank, span).running_ns;
  });
  std::ranges::stable_sort(seen, {}, &Seen::first_ns);
  ModuleInStep out{step.step, {}};
  for (const Seen& one : seen) out.passes.push_back(one.sum);
  return out;
}

const std::optional<ModuleInStep>& ModuleInStepCache::of(const store::Store& store, std::uint32_t rank,
                                                         std::uint32_t module, std::int64_t at_ns) {
  const Key key{store.revision(), rank, module, measured_step_of(store.steps(), at_ns)};
  if (key_ != key) {
    kept_ = module_in_step(store, rank, module, at_ns);
    key_ = key;
  }
  return kept_;
}

}  // namespace shardscope::gui
