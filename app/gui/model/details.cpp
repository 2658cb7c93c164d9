#include "app/gui/model/details.h"

#include <algorithm>
#include <cstdlib>

#include "app/analysis/decision_text.h"
#include "app/analysis/param_groups.h"
#include "app/gui/model/details_fields.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_family.h"
#include "app/gui/model/span_text.h"
#include "app/gui/model/step_of.h"
#include "app/store/span_time.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

constexpr std::size_t kHistoryRows = 64, kChanges = 256;

/// Self time and enclosing spans. The panels Find and Statistics list similar spans.
void add_family(const AppState& app, store::LaneId lane, const store::Span& span, Details& out) {
  const SpanFamily& family = app.family.of(app.store(), lane, span);
  if (family.children > 0 && family.self_ns)
    add(out, "self time", duration(*family.self_ns),
        "duration - " + std::to_string(family.children) + " child spans on the same lane");
  for (const store::Span& parent : family.parents) {
    out.parents.push_back({label_of(app.store(), lane.rank, parent),
                           duration(store::time_of(app.store(), lane.rank, parent).running_ns).text(), lane,
                           parent});
  }
}

/// Related spans, by the ids of gathers and buckets (relations.h).
void add_relations(const AppState& app, store::LaneId lane, const store::Span& span, Details& out) {
  const Relations& relations = app.relations.of(app.store(), app.run->index(), lane, span);
  for (const Relation& relation : relations.list) {
    const auto is_it = [&](const RelationEnd& end) {
      return end.lane == lane && end.span.depth == span.depth && end.span.begin_ns == span.begin_ns;
    };
    const RelationEnd& other = is_it(relation.from) ? relation.to : relation.from;
    const std::string label = label_of(app.store(), lane.rank, other.span);
    out.related.push_back(
        {is_it(relation.from) ? std::string(word(relation.kind)) + " " + label
         : is_it(relation.to)
             ? "after " + label
             : label_of(app.store(), lane.rank, relation.from.span) + ", " + word(relation.kind) + " " +
                   label_of(app.store(), lane.rank, relation.to.span),
         duration(std::max<std::int64_t>(relation.to.at_ns - relation.from.at_ns, 0)).text(),
         is_it(relation.from) || is_it(relation.to) ? other.lane : relation.to.lane,
         is_it(relation.from) || is_it(relation.to) ? other.span : relation.to.span});
  }
}

/// Memory change, children by name and messages.
void add_inside(const AppState& app, store::LaneId lane, const store::Span& span, Details& out) {
  const SpanInside& inside = app.inside.of(app.store(), lane, span);
  if (inside.memory_bytes && *inside.memory_bytes != 0)
    add(out, "memory",
        (*inside.memory_bytes > 0 ? "+" : "\u2212") + bytes(std::abs(*inside.memory_bytes)).text(),
        "bytes on the device at its end - at its begin");
  for (std::size_t i = 0; i < std::min(inside.children.size(), kHistoryRows); ++i) {
    const SpanInside::Children& group = inside.children[i];
    const std::string times = group.count > 1 ? grouped(static_cast<std::int64_t>(group.count)) + " x, " : "";
    out.inside.push_back({group.first_ns, group.name, times + duration(group.time_ns).text()});
  }
  add_count_left_out(inside.children.size(), kHistoryRows, out.inside);
  for (const std::size_t message : inside.messages) {
    const store::Message& entry = app.store().messages()[message];
    out.inside.push_back({entry.at_ns, entry.text, "message"});
  }
}

}  // namespace

std::string text_of(const analysis::ShardPlace& rest) {
  std::string text = "on the device";
  if (rest.place == plan::ShardPlace::nvme) text = "on NVMe";
  if (rest.place == plan::ShardPlace::host) text = rest.pinned ? "in pinned host memory" : "in host memory";
  return rest.int8 ? text + ", as int8" : text;
}

std::string status_text(const store::ParamState& state, bool persistent) {
  const auto status = static_cast<plan::ParamStatus>(ev::status_of(state.status));
  std::string text = word(status);
  if (persistent && status == plan::ParamStatus::available) text += ", persistent";
  if (ev::secondary_held(state.status)) text += ", secondary copy held";
  return text;
}

Details describe_param(const AppState& app, std::uint32_t param, std::uint32_t rank, std::int64_t at_ns) {
  Details out;
  const store::Store& data = app.store();
  out.title = param_name(data, param);
  out.meaning = Meaning::compute;
  if (!data.has_tables() || param >= data.tables().params.size()) return out;
  const ev::RunTables& tables = data.tables();
  const ev::ParamInfo& info = tables.params[param];
  out.subtitle = shape_text(info.shape) + " " + info.dtype;
  add(out, "elements", grouped(info.elems));
  add(out, "size", bytes(info.elems * tables.param_bytes), "elements x bytes of one stored element");
  if (info.frozen) add(out, "training", "frozen: no gradient and no optimizer states");
  if (const std::string group = analysis::param_group_text(tables, param); !group.empty())
    add(out, "parameter group", group);
  if (rank == ev::kNoId) rank = data.ranks().empty() ? 0 : data.ranks().front().rank;
  if (tables.stage == 3) {
    add(out, "shard per rank", grouped(info.shard_elems));
    if (info.padding_elems > 0) add(out, "padding", grouped(info.padding_elems));
    if (const auto place = analysis::shard_location(tables, param))
      add(out, "shard location", text_of(*place));
  }
  const store::ParamState state = data.param_state(rank, param, at_ns);
  const bool known = data.is_known(rank, at_ns);
  const std::string status = "status on rank " + std::to_string(rank);
  if (known) {
    add(out, status, status_text(state, info.persistent));
    add(out, "since", duration(at_ns - state.since_ns));
  } else {
    add(out, status, not_kept_text());
  }
  std::string users;
  for (const std::uint32_t module : info.modules)
    users += (users.empty() ? "" : ", ") + module_name(data, module);
  out.fields.push_back({"used by", users, "", ""});
  if (!known) return out;
  out.reason =
      reason_of(data, ev::status_code(state.status, state.cause), state.module, std::span(&param, 1));
  if (state.cause == ev::StatusCause::invalidation) {
    const auto invalidation = analysis::invalidation_before(data, rank, state.since_ns);
    if (invalidation) out.reason += ": " + analysis::explain(data, *invalidation);
  }
  return out;
}

namespace {

/// The parameter's changes of status: all of the step that is looked at, so that the list stays while one
/// goes through it, and those before it. Not for tips: there may be many.
void add_changes(const AppState& app, std::uint32_t param, std::uint32_t rank, std::int64_t at_ns,
                 Details& out) {
  const store::Store& data = app.store();
  if (rank == ev::kNoId) rank = data.ranks().empty() ? 0 : data.ranks().front().rank;
  if (!data.has_tables() || param >= data.tables().params.size() || !data.is_known(rank, at_ns)) return;
  const auto steps = data.steps();
  const auto step = step_of(steps, at_ns);
  const std::int64_t until =
      step && steps[*step].end_ns != store::kOpen ? std::max(at_ns, steps[*step].end_ns) : data.end_ns();
  const auto history = data.status_history(rank, param, until, kChanges);
  out.history_title = step ? "Changes up to the end of step " + std::to_string(steps[*step].step) : "Changes";
  for (auto change = history.rbegin(); change != history.rend(); ++change) {
    out.history.push_back({change->at_ns, word(static_cast<plan::ParamStatus>(change->state.status)),
                           cause_word(data, change->state.cause), ev::kNoId, change->at_ns > at_ns});
  }
  if (history.size() >= kChanges)
    out.history.push_back({std::nullopt, "earlier changes", "move the cursor back to list them"});
}

}  // namespace

Details describe_selection(const AppState& app) {
  const Selection& selection = app.selection;
  switch (selection.kind) {
    case SelectionKind::none:
      return {};
    case SelectionKind::param: {
      Details out = describe_param(app, selection.param, selection.rank, app.now_ns());
      add_changes(app, selection.param, selection.rank, app.now_ns(), out);
      return out;
    }
    case SelectionKind::rank:
      return describe_rank(app, selection.rank);
    case SelectionKind::step:
      return describe_step(app, selection.step);
    case SelectionKind::module: {
      Details out;
      out.meaning = Meaning::compute;
      out.title = module_name(app.store(), selection.module);
      describe_module(app, selection.module, out);
      if (!selection.span) {
        describe_unplaced_module(app, selection.module, selection.rank, out);
      } else {
        out.subtitle += std::string(out.subtitle.empty() ? "" : ", ") +
                        word(ev::as<ev::EventKind::module_begin>(*selection.span).pass) + ", rank " +
                        std::to_string(selection.rank);
        add_span_times(app, selection.rank, *selection.span, out);
        add_family(app, selection.lane, *selection.span, out);
        add_relations(app, selection.lane, *selection.span, out);
        add_inside(app, selection.lane, *selection.span, out);
      }
      return out;
    }
    case SelectionKind::collective:
    case SelectionKind::wait:
    case SelectionKind::span: {
      if (!selection.span) return {};
      Details out = describe_span(app, selection.lane, *selection.span);
      add_family(app, selection.lane, *selection.span, out);
      add_relations(app, selection.lane, *selection.span, out);
      const Fetch* fetch = selection.gather == ev::kNoId
                               ? nullptr
                               : app.run->index().fetch_by_id(selection.rank, selection.gather);
      std::vector<std::uint32_t> params;
      if (fetch != nullptr) {
        params = fetch->params;
      } else if (selection.kind == SelectionKind::collective) {
        const auto parts = app.run->index().parts(selection.rank, selection.collective);
        params.assign(parts.begin(), parts.end());
      }
      if (!params.empty()) out.history_title = "Parameters (" + std::to_string(params.size()) + ")";
      for (std::size_t i = 0; i < std::min(params.size(), kHistoryRows); ++i) {
        out.history.push_back(
            {std::nullopt, param_name(app.store(), params[i]),
             app.store().has_tables() && params[i] < app.store().tables().params.size()
                 ? count(static_cast<double>(app.store().tables().params[params[i]].elems)).text()
                 : "",
             params[i]});
      }
      add_count_left_out(params.size(), kHistoryRows, out.history);
      add_inside(app, selection.lane, *selection.span, out);
      return out;
    }
  }
  return {};
}

}  // namespace shardscope::gui
