#include "app/analysis/not_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/analysis/intervals.h"
#include "app/analysis/kept.h"
#include "app/analysis/unrecorded.h"
#include "app/store/module_name.h"
#include "instrumentation/capability.h"

namespace shardscope::analysis {

namespace {

using NotFinite = ev::Fields<ev::EventKind::gradient_not_finite>;

/// Whether `a` came before `b` in backward: by position if both are known, else by descending id.
bool earlier(const NotFinite& a, const NotFinite& b) {
  if (a.position != ev::kNoId && b.position != ev::kNoId) return a.position < b.position;
  return a.param > b.param;
}

/// Parameters other than `first` that the rank of event `of` found; -1: not counted.
std::int64_t further(const NotFinite& of, const NotFinite& first) {
  return of.other_params < 0 ? -1 : of.other_params + (of.param != first.param ? 1 : 0);
}

/// Whether all ranks' events of the step are in the store; otherwise a missing rank may have found something.
bool all_are_there(const store::Store& store, std::uint32_t step) {
  const auto steps = store.steps();
  const auto row = std::ranges::find(steps, step, &store::StepRow::step);
  if (row == steps.end() || row->end_ns == store::kOpen) return false;
  const auto ranks = store.ranks();
  if (store.has_tables() && ranks.size() < store.tables().world) return false;
  return std::ranges::all_of(ranks, [&](const store::RankRow& rank) {
    return recorded_in(store, rank.rank, row->begin_ns, row->end_ns)
        .whole(ev::detail_of(ev::EventKind::gradient_not_finite));
  });
}

}  // namespace

std::vector<FirstNotFinite> first_not_finite(const store::Store& store) {
  struct Seen {
    std::uint32_t rank = 0;
    std::int64_t at_ns = 0;
    NotFinite fields;
  };
  std::map<std::uint32_t, std::vector<Seen>> by_step;
  for (const store::RankRow& row : store.ranks()) {
    for (const ev::Event& event : store.instants_of(row.rank, ev::EventKind::gradient_not_finite)) {
      const auto fields = ev::as<ev::EventKind::gradient_not_finite>(event);
      by_step[fields.step].push_back({row.rank, static_cast<std::int64_t>(event.ticks), fields});
    }
  }
  std::vector<FirstNotFinite> out;
  for (const auto& [step, seen] : by_step) {
    const Seen* first = &seen.front();
    for (const Seen& one : seen) {
      if (earlier(one.fields, first->fields) ||
          (one.fields.param == first->fields.param && one.rank < first->rank))
        first = &one;
    }
    FirstNotFinite of{first->rank, first->at_ns, first->fields};
    bool counted = all_are_there(store, step);
    for (const Seen& one : seen) {
      if (&one != first && one.fields.param == first->fields.param) ++of.more_ranks;
      const std::int64_t others = further(one.fields, first->fields);
      counted = counted && others >= 0;
      of.other_params = std::max(of.other_params, others);
    }
    // The number is a lower bound: 0 is certain only with the events of every rank.
    if (of.other_params == 0 && !counted) of.other_params = -1;
    out.push_back(of);
  }
  if (out.empty() || (store.not_kept().events == 0 && store.evicted().events == 0)) return out;
  const IntervalSet gone = not_here(store);
  const auto deleted = [&](const FirstNotFinite& one) {
    const auto row = std::ranges::lower_bound(store.steps(), one.fields.step, {}, &store::StepRow::step);
    if (row == store.steps().end() || row->step != one.fields.step) return meets(gone, one.at_ns, one.at_ns);
    return meets(gone, row->begin_ns, row->end_ns);
  };
  out.erase(std::remove_if(out.begin() + 1, out.end(), deleted), out.end());
  return out;
}

std::optional<NotFiniteGradients> not_finite_gradients(const store::Store& store) {
  if (store.has_tables() && ev::why_not_recorded(store.tables(), ev::Capability::not_finite_gradients))
    return std::nullopt;
  NotFiniteGradients out;
  for (const store::RankRow& row : store.ranks())
    out.events += store.instant_count(row.rank, ev::EventKind::gradient_not_finite);
  if (out.events == 0) return out;
  const std::vector<FirstNotFinite> all = first_not_finite(store);
  if (all.empty()) return out;
  out.first = all.front();
  const auto& params = store.tables().params;
  if (out.first->fields.param < params.size()) out.param = params[out.first->fields.param].name;
  out.text = text_of(store, *out.first);
  return out;
}

nlohmann::json not_finite_json(const std::optional<NotFiniteGradients>& gradients) {
  if (!gradients) return nullptr;
  nlohmann::json out = {{"events", gradients->events}, {"first", nullptr}};
  if (!gradients->first) return out;
  out["first"] = {
      {"step", gradients->first->fields.step},
      {"rank", gradients->first->rank},
      {"param", gradients->param.empty() ? nlohmann::json(nullptr) : nlohmann::json(gradients->param)},
      {"at_ns", gradients->first->at_ns},
      {"text", gradients->text}};
  return out;
}

std::string param_and_module(const store::Store& store, std::uint32_t param) {
  const auto& params = store.tables().params;
  if (param >= params.size()) return fmt::format("parameter {}", param);
  const ev::ParamInfo& info = params[param];
  if (info.modules.empty()) return info.name;
  return fmt::format("{} (module {})", info.name, store::module_name(store, info.modules.front()));
}

std::string elements_text(const NotFinite& fields) {
  const char* what = fields.infinite && fields.nan ? "infinite or NaN"
                     : fields.nan                  ? "NaN"
                     : fields.infinite             ? "infinite"
                                                   : "not finite";
  if (fields.elems < 1) return fmt::format("at least one element {}", what);
  return fmt::format("{} element{} {}", fields.elems, fields.elems == 1 ? "" : "s", what);
}

std::string text_of(const store::Store& store, const FirstNotFinite& first) {
  std::string text = fmt::format(
      "In step {} the first gradient that was not finite{}, was that of {} on rank {}: {} in its partition",
      first.fields.step,
      first.ordered() ? ", in the order of backward" : ", taken for the one that is last in the model",
      param_and_module(store, first.fields.param), first.rank, elements_text(first.fields));
  if (first.more_ranks > 0) {
    text +=
        fmt::format(", and more in {} other rank{}", first.more_ranks, first.more_ranks == 1 ? "'s" : "s'");
  }
  if (first.other_params > 0) {
    text += fmt::format("; at least {} further parameter{} not finite", first.other_params,
                        first.other_params == 1 ? " was" : "s were");
  } else if (first.other_params == 0) {
    text += "; no other parameter was";
  }
  return text + ".";
}

}  // namespace shardscope::analysis
