#include "app/analysis/held_long.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "app/analysis/spans.h"
#include "app/store/framework.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/param_status.h"

namespace shardscope::analysis {
namespace {

/// [begin, end) of each span of a module, by begin.
using Uses = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Uses by module.
std::map<std::uint32_t, Uses> uses_in(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                      std::int64_t end_ns) {
  std::map<std::uint32_t, Uses> uses;
  for_each_span(store, {rank, ev::StreamId::compute}, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.kind != ev::EventKind::module_begin || span.end_ns == store::kOpen) return;
    uses[ev::as<ev::EventKind::module_begin>(span).module].emplace_back(span.begin_ns, span.end_ns);
  });
  for (auto& [module, spans] : uses) std::ranges::sort(spans);
  return uses;
}

bool has_groups(store::Framework framework) {
  return framework == store::Framework::fsdp1 || framework == store::Framework::fsdp2;
}

/// The state of a rank's parameters while its events are read in order of time.
class Reader {
 public:
  Reader(const store::Store& store, std::uint32_t rank, const store::StepRow& step)
      : tables_(store.tables()),
        groups_(has_groups(store::framework_of(tables_))),
        uses_(uses_in(store, rank, step.begin_ns, step.end_ns)),
        held_(tables_.params.size()) {
    // Parameters gathered before the step count from its begin.
    std::vector<store::ParamState> states(held_.size());
    store.param_states(rank, step.begin_ns, states);
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (ev::status_of(states[i].status) == static_cast<std::uint8_t>(plan::ParamStatus::available))
        begins(static_cast<std::uint32_t>(i), step.begin_ns, states[i].cause, states[i].module);
    }
  }
  void read(const ev::Event& event) {
    if (event.kind == ev::EventKind::release_kept) {
      const auto kept = ev::as<ev::EventKind::release_kept>(event);
      if (kept.param < held_.size()) held_[kept.param].reasons.push_back(kept.reason);
      return;
    }
    if (event.kind != ev::EventKind::param_status) return;
    const auto change = ev::as<ev::EventKind::param_status>(event);
    if (change.param >= held_.size()) return;
    ++changes_;
    const auto at = static_cast<std::int64_t>(event.ticks);
    if (change.status.status() == plan::ParamStatus::available) {
      if (!held_[change.param].since) begins(change.param, at, change.cause, change.module);
    } else {
      ends(change.param, at, Ending::released);
    }
  }
  /// Closes the stretch of each parameter that is still gathered at the end of the step.
  void finish(std::int64_t at) {
    for (std::uint32_t param = 0; param < held_.size(); ++param) {
      ends(param, at, Ending::step);
      add_reasons(held_[param]);
    }
    std::erase_if(out_, [](const auto& one) { return one.second.total_ns == 0; });
  }
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  [[nodiscard]] std::map<std::uint32_t, HeldParam>& params() noexcept { return out_; }
  [[nodiscard]] std::vector<HeldStretch>& stretches() noexcept { return stretches_; }

 private:
  enum class Ending : std::uint8_t { released, step };
  struct Held {
    std::optional<std::int64_t> since;
    std::uint32_t gathered_for = ev::kNoId;  ///< module
    std::vector<plan::KeepReason> reasons;   ///< one per use after which it was kept, in order
    std::vector<HeldStretch> stretches;
    bool for_program = false;
  };

  void begins(std::uint32_t param, std::int64_t at, ev::StatusCause cause, std::uint32_t module) {
    if (tables_.params[param].persistent || cause == ev::StatusCause::persistent) return;
    held_[param].since = at;
    held_[param].gathered_for = module;
    held_[param].for_program = cause == ev::StatusCause::context;
  }

  /// Of the module, or of the innermost one around it that has spans: of FSDP1 only wrapped modules have.
  [[nodiscard]] std::map<std::uint32_t, Uses>::const_iterator uses_of_module(std::uint32_t module) const {
    auto found = uses_.find(module);
    // Tables of a damaged recording may hold a circle.
    for (std::size_t i = 0; groups_ && found == uses_.end() && i < tables_.modules.size(); ++i) {
      if (module >= tables_.modules.size()) break;
      module = tables_.modules[module].parent;
      found = uses_.find(module);
    }
    return found;
  }

  /// The uses of a parameter that overlap [from, to), by begin, each clipped to `to`. A group of parameters
  /// is used as a whole, by the module for which it was gathered (`gathered_for`), whatever modules are in
  /// it.
  [[nodiscard]] Uses uses_of(const ev::ParamInfo& param, std::uint32_t gathered_for, std::int64_t from,
                             std::int64_t to) const {
    Uses out;
    const bool as_group = groups_ && uses_.contains(gathered_for);
    const std::vector<std::uint32_t> group{gathered_for};
    for (const std::uint32_t module : as_group ? group : param.modules) {
      const auto found = uses_of_module(module);
      if (found == uses_.end()) continue;
      for (const auto& [begin, end] : found->second)
        if (begin < to && end > from) out.emplace_back(begin, std::min(end, to));
    }
    std::ranges::sort(out);
    return out;
  }

  void ends(std::uint32_t param, std::int64_t at, Ending ending) {
    Held& held = held_[param];
    if (!held.since) return;
    const std::int64_t since = *held.since;
    held.since.reset();
    const Uses uses = uses_of(tables_.params[param], held.gathered_for, since, at);
    const std::int64_t bytes = tables_.params[param].elems * static_cast<std::int64_t>(tables_.param_bytes);
    std::int64_t used_until = since;
    bool used = false;
    const auto stays = [&](std::int64_t until, bool again) {
      HeldStretch one{.param = param, .bytes = bytes, .begin_ns = used_until, .end_ns = until};
      one.used_again = again;
      one.for_program = held.for_program;
      held.stretches.push_back(one);
    };
    for (const auto& [begin, end] : uses) {
      if (used) stays(std::max(begin, used_until), true);
      used_until = std::max(used_until, end);
      used = true;
    }
    if (used) stays(at, false);
    if (ending == Ending::step && !used) return;  // gathered at the end of the step for the next one
    HeldParam& one = out_[param];
    one.param = param;
    one.bytes = bytes;
    ++one.times;
    one.total_ns += at - used_until;
    if (at - used_until > one.longest_ns) {
      one.longest_ns = at - used_until;
      one.longest_at_ns = used_until;
    }
  }

  /// Hosts run ahead of their devices: a reason recorded in the step may belong to the previous or next step,
  /// so timestamps do not match reasons to stretches. With as many reasons as stretches before a next use
  /// they are matched in order, and released stretches get none. Otherwise stretches get a reason only if all
  /// reasons are equal, and released ones only if there are more reasons than next uses.
  void add_reasons(Held& held) {
    const auto kept =
        static_cast<std::size_t>(std::ranges::count_if(held.stretches, &HeldStretch::used_again));
    const std::size_t given = held.reasons.size();
    const bool alike =
        given > 0 && std::ranges::all_of(held.reasons, [&](auto one) { return one == held.reasons.front(); });
    std::size_t next = 0;
    for (HeldStretch& one : held.stretches) {
      if (one.used_again || given > kept) {
        if (given == kept) {
          one.reason = held.reasons[next++];
        } else if (alike) {
          one.reason = held.reasons.front();
        } else {
          one.unassigned = given > 0;
        }
      }
      if (one.length_ns() > 0 && one.reason != plan::KeepReason::persistent) stretches_.push_back(one);
    }
  }

  const ev::RunTables& tables_;
  bool groups_;  ///< whether the framework gathers groups of modules
  std::map<std::uint32_t, Uses> uses_;
  std::vector<Held> held_;  ///< by parameter
  std::map<std::uint32_t, HeldParam> out_;
  std::vector<HeldStretch> stretches_;
  std::uint64_t changes_ = 0;
};

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
  Reader reader(store, rank, step);
  store.for_each_instant(rank, step.begin_ns, step.end_ns,
                         [&](const ev::Event& event) { reader.read(event); });
  reader.finish(step.end_ns);
  if (reader.changes() == 0)
    out.missing = "no status of a parameter was recorded in this step (detail params)";
  for (const auto& [param, one] : reader.params()) out.params.push_back(one);
  std::ranges::stable_sort(out.params, std::greater{}, &HeldParam::byte_seconds);
  out.stretches = std::move(reader.stretches());
  std::ranges::sort(out.stretches, {},
                    [](const HeldStretch& one) { return std::pair(one.param, one.begin_ns); });
  return out;
}

}  // namespace shardscope::analysis
