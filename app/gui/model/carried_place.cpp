#include "app/gui/model/carried_place.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "app/store/module_name.h"

namespace shardscope::gui {
namespace {

std::int64_t end_of(const store::Store& store, const store::StepRow& step) {
  return step.end_ns == store::kOpen ? store.end_ns() : step.end_ns;
}

const store::StepRow* step_in(const store::Store& store, std::uint32_t number) {
  const std::span<const store::StepRow> steps = store.steps();
  const auto found = std::ranges::lower_bound(steps, number, {}, &store::StepRow::step);
  return found == steps.end() || found->step != number ? nullptr : &*found;
}

/// Recorded times can be any number: so sums and differences of three of them fit.
std::int64_t bounded(std::int64_t at_ns) {
  constexpr std::int64_t kFarthest = INT64_MAX / 8;  // 36 years
  return std::clamp(at_ns, -kFarthest, kFarthest);
}

/// A step of both runs.
struct CommonStep {
  const store::StepRow *from = nullptr, *to = nullptr;
};

/// The last one that has begun at a time, else the first one; nulls without any.
CommonStep common_step(const store::Store& from, const store::Store& to, std::int64_t at_ns) {
  const std::span<const store::StepRow> steps = from.steps();
  const auto after = std::ranges::upper_bound(steps, at_ns, {}, &store::StepRow::begin_ns);
  for (auto step = after; step != steps.begin();) {
    --step;
    if (const store::StepRow* const same = step_in(to, step->step)) return {&*step, same};
  }
  for (auto step = after; step != steps.end(); ++step)
    if (const store::StepRow* const same = step_in(to, step->step)) return {&*step, same};
  return {};
}

}  // namespace

std::int64_t carried_time(const store::Store& from, const store::Store& to, std::int64_t at_ns) {
  const auto [in_from, in_to] = common_step(from, to, at_ns);
  at_ns = bounded(at_ns);
  if (in_from == nullptr) return at_ns;
  const std::int64_t begin = bounded(in_from->begin_ns), end = bounded(end_of(from, *in_from));
  const std::int64_t begin_to = bounded(in_to->begin_ns), end_to = bounded(end_of(to, *in_to));
  if (at_ns <= begin || end <= begin) return begin_to + (at_ns - begin);
  if (at_ns >= end) return end_to + (at_ns - end);
  const double part = static_cast<double>(at_ns - begin) / static_cast<double>(end - begin);
  return begin_to + static_cast<std::int64_t>(part * static_cast<double>(end_to - begin_to));
}

TimeRange carried_range(const store::Store& from, const store::Store& to, TimeRange range) {
  const TimeRange out{carried_time(from, to, range.begin_ns), carried_time(from, to, range.end_ns)};
  return out.length() > 0 ? out
                          : TimeRange{out.begin_ns, out.begin_ns + std::max<std::int64_t>(range.length(), 1)};
}

std::uint32_t param_named(const store::Store& store, std::string_view name) {
  if (!store.has_tables()) return ev::kNoId;
  const auto& params = store.tables().params;
  const auto found = std::ranges::find(params, name, &ev::ParamInfo::name);
  return found == params.end() ? ev::kNoId : static_cast<std::uint32_t>(found - params.begin());
}

std::uint32_t carried_param(const store::Store& from, const store::Store& to, std::uint32_t param) {
  if (!from.has_tables() || !to.has_tables()) return ev::kNoId;
  const auto &here = from.tables().params, &there = to.tables().params;
  if (param >= here.size()) return ev::kNoId;
  // Mostly the same model, with the same ids.
  if (param < there.size() && there[param].name == here[param].name) return param;
  return param_named(to, here[param].name);
}

std::uint32_t carried_module(const store::Store& from, const store::Store& to, std::uint32_t module) {
  if (!from.has_tables() || !to.has_tables() || module >= from.tables().modules.size()) return ev::kNoId;
  const std::string name = store::module_name(from, module);
  const std::size_t count = to.tables().modules.size();
  if (module < count && store::module_name(to, module) == name) return module;
  for (std::uint32_t i = 0; i < count; ++i)
    if (store::module_name(to, i) == name) return i;
  return ev::kNoId;
}

bool knows_rank(const store::Store& store, std::uint32_t rank) {
  return std::ranges::any_of(store.ranks(), [&](const store::RankRow& row) { return row.rank == rank; });
}

std::optional<Selection> carried_selection(const store::Store& from, const store::Store& to,
                                           const Selection& selection) {
  Selection out;
  out.kind = selection.kind;
  out.rank = selection.rank;
  if (selection.rank != ev::kNoId && !knows_rank(to, selection.rank)) return std::nullopt;
  switch (selection.kind) {
    case SelectionKind::none:
    case SelectionKind::rank:
      return out;
    case SelectionKind::step:
      out.step = selection.step;
      return step_in(to, selection.step) != nullptr ? std::optional(out) : std::nullopt;
    case SelectionKind::param:
      out.param = carried_param(from, to, selection.param);
      if (out.param == ev::kNoId) return std::nullopt;
      if (const auto& modules = to.tables().params[out.param].modules; !modules.empty())
        out.module = modules.front();
      return out;
    case SelectionKind::module:
      out.module = carried_module(from, to, selection.module);
      return out.module != ev::kNoId ? std::optional(out) : std::nullopt;
    case SelectionKind::collective:
    case SelectionKind::wait:
    case SelectionKind::span:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace shardscope::gui
