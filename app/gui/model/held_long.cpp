#include "app/gui/model/held_long.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {
namespace {

/// Begin and end of each span of a module, by end.
using ModuleUses = std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::int64_t>>>;

ModuleUses uses_in(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                   std::int64_t end_ns) {
  ModuleUses uses;
  const store::LaneId lane{rank, ev::StreamId::compute};
  for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth) {
    store.for_each_span(lane, depth, begin_ns, end_ns, [&](const store::Span& span) {
      if (span.kind != ev::EventKind::module_begin || span.end_ns == store::kOpen) return;
      uses[ev::as<ev::EventKind::module_begin>(span).module].emplace_back(span.begin_ns, span.end_ns);
    });
  }
  for (auto& [module, spans] : uses) std::ranges::sort(spans);
  return uses;
}

/// The end of the last use that began in [from, to); one that goes on at `to` ends there. `from` without any.
std::int64_t last_use(const ModuleUses& uses, const ev::ParamInfo& param, std::int64_t from,
                      std::int64_t to) {
  std::int64_t last = from;
  for (const std::uint32_t module : param.modules) {
    const auto found = uses.find(module);
    if (found == uses.end()) continue;
    const auto after = std::ranges::lower_bound(found->second, std::pair(to, std::int64_t{0}));
    if (after == found->second.begin()) continue;
    last = std::max(last, std::min(std::prev(after)->second, to));
  }
  return last;
}

}  // namespace

double HeldLong::mean_bytes() const noexcept {
  double sum = 0;
  for (const HeldParam& one : params)
    sum += static_cast<double>(one.bytes) * static_cast<double>(one.total_ns);
  return step_ns > 0 ? sum / static_cast<double>(step_ns) : 0;
}

HeldLong held_long(const store::Store& store, std::uint32_t rank, const store::StepRow& step) {
  HeldLong out;
  if (!store.has_tables() || store.tables().stage != 3) {
    out.missing = "parameters are gathered and released in stage 3";
    return out;
  }
  if (step.end_ns == store::kOpen) {
    out.missing = "the step has not ended";
    return out;
  }
  out.step_ns = step.end_ns - step.begin_ns;
  const auto& params = store.tables().params;
  const ModuleUses uses = uses_in(store, rank, step.begin_ns, step.end_ns);
  // What was whole when the step began counts from there.
  std::vector<store::ParamState> states(params.size());
  store.param_states(rank, step.begin_ns, states);
  std::vector<std::optional<std::int64_t>> there(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (ev::status_of(states[i].status) == static_cast<std::uint8_t>(plan::ParamStatus::available))
      there[i] = step.begin_ns;
  }
  std::map<std::uint32_t, HeldParam> held;
  std::uint64_t changes = 0;
  store.for_each_instant(rank, step.begin_ns, step.end_ns, [&](const ev::Event& event) {
    if (event.kind != ev::EventKind::param_status) return;
    const auto fields = ev::as<ev::EventKind::param_status>(event);
    if (fields.param >= params.size() || params[fields.param].persistent) return;
    ++changes;
    const auto at = static_cast<std::int64_t>(event.ticks);
    std::optional<std::int64_t>& since = there[fields.param];
    if (fields.status.status() == plan::ParamStatus::available) {
      since = since.value_or(at);
      return;
    }
    if (!since) return;
    const std::int64_t from = last_use(uses, params[fields.param], *since, at);
    since.reset();
    HeldParam& one = held[fields.param];
    one.param = fields.param;
    one.bytes = params[fields.param].elems * static_cast<std::int64_t>(store.tables().param_bytes);
    ++one.times;
    one.total_ns += at - from;
    if (at - from > one.longest_ns) {
      one.longest_ns = at - from;
      one.longest_at_ns = from;
    }
  });
  if (changes == 0) out.missing = "no status of a parameter was recorded in this step (detail params)";
  for (const auto& [param, one] : held) {
    if (one.total_ns > 0) out.params.push_back(one);
  }
  std::ranges::stable_sort(out.params, std::greater{}, &HeldParam::byte_seconds);
  return out;
}

Table held_table(const store::Store& store, const HeldLong& held) {
  Table table;
  table.columns = {
      {.name = "parameter", .weight = 2, .smallest = 140},
      {"bytes", 0.6F, true, "Of the whole parameter"},
      {"longest", 0.6F, true, "From the end of its last use to its release, the longest of the step"},
      {"all", 0.6F, true, "The same, summed over the step"},
      {"times", 0.4F, true, "Released in the step"},
      {"bytes \u00d7 time", 0.8F, true, "What it took from others: bytes times the summed time"}};
  for (const HeldParam& one : held.params) {
    const double kib_s = one.byte_seconds() / 1024;
    table.add({{param_name(store, one.param), {}, Tone::normal, Meaning::gather, ""},
               number_cell(static_cast<double>(one.bytes), bytes(one.bytes).text()),
               number_cell(static_cast<double>(one.longest_ns), duration(one.longest_ns).text()),
               number_cell(static_cast<double>(one.total_ns), duration(one.total_ns).text()),
               number_cell(one.times, std::to_string(one.times)),
               number_cell(one.byte_seconds(), decimal(kib_s, kib_s < 10 ? 3 : 0) + " KiB\u00b7s")});
  }
  return table;
}

}  // namespace shardscope::gui
