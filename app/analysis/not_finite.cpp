#include "app/analysis/not_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/analysis/unrecorded.h"
#include "app/store/module_name.h"

namespace shardscope::analysis {

namespace {

using NotFinite = ev::Fields<ev::EventKind::gradient_not_finite>;

/// Whether `a` came before `b` in backward. Positions are comparable where both ranks know theirs.
bool earlier(const NotFinite& a, const NotFinite& b) {
  if (a.position != ev::kNoId && b.position != ev::kNoId) return a.position < b.position;
  return a.param > b.param;
}

/// Further parameters than `first` that a rank whose event has `of` found; -1: not counted.
std::int64_t further(const NotFinite& of, const NotFinite& first) {
  return of.other_params < 0 ? -1 : of.other_params + (of.param != first.param ? 1 : 0);
}

/// Whether what any rank found in a step is there: else a rank without an event may have found something.
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
    // What was found is the least there was; that there was no more takes every rank's answer.
    if (of.other_params == 0 && !counted) of.other_params = -1;
    out.push_back(of);
  }
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
