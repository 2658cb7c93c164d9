// Details of a module: static facts, and its times in a step.
#include <algorithm>
#include <vector>

#include "app/gui/model/details_fields.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

constexpr std::size_t kMostParams = 64;

/// Own parameters, then those of nested modules; shared parameters once.
std::vector<std::uint32_t> params_of(const ev::RunTables& tables, std::uint32_t module) {
  std::vector<std::uint32_t> out;
  std::vector<bool> taken(tables.params.size(), false);
  const auto take = [&](const ev::ModuleInfo& info) {
    for (const std::uint32_t param : info.params) {
      if (param >= taken.size() || taken[param]) continue;
      taken[param] = true;
      out.push_back(param);
    }
  };
  const auto lies_in = [&](std::uint32_t inner) {
    // Bounded, as the parents in a damaged table may form a cycle.
    for (std::size_t up = 0; up < tables.modules.size() && inner < tables.modules.size(); ++up) {
      inner = tables.modules[inner].parent;
      if (inner == module) return true;
    }
    return false;
  };
  take(tables.modules[module]);
  for (std::uint32_t inner = 0; inner < tables.modules.size(); ++inner)
    if (inner != module && lies_in(inner)) take(tables.modules[inner]);
  return out;
}

std::int64_t elems_of(const ev::RunTables& tables, const std::vector<std::uint32_t>& params) {
  std::int64_t elems = 0;
  for (const std::uint32_t param : params)
    if (param < tables.params.size()) elems += tables.params[param].elems;
  return elems;
}

bool is_known(const AppState& app, std::uint32_t module) {
  return app.store().has_tables() && module < app.store().tables().modules.size();
}

}  // namespace

void describe_module(const AppState& app, std::uint32_t module, Details& out) {
  if (!is_known(app, module)) return;
  const ev::RunTables& tables = app.store().tables();
  const ev::ModuleInfo& info = tables.modules[module];
  out.subtitle = info.type;
  if (info.parent != ev::kNoId) add(out, "part of", module_name(app.store(), info.parent));
  const std::vector<std::uint32_t> params = params_of(tables, module);
  add(out, "own parameters", std::to_string(info.params.size()));
  if (params.size() > info.params.size())
    add(out, "with child modules", std::to_string(params.size()), "each shared parameter counted once");
  const std::int64_t elems = elems_of(tables, params);
  if (elems <= 0) return;
  add(out, "elements", grouped(elems));
  add(out, "size", bytes(elems * tables.param_bytes), "elements x bytes of one stored element");
}

void describe_unplaced_module(const AppState& app, std::uint32_t module, std::uint32_t rank, Details& out) {
  if (!is_known(app, module)) return;
  const store::Store& data = app.store();
  if (rank == ev::kNoId) rank = data.ranks().empty() ? 0 : data.ranks().front().rank;
  const std::int64_t at_ns = app.now_ns();
  if (const auto& ran = app.module_in_step.of(data, rank, module, at_ns)) {
    const std::string where = "step " + std::to_string(ran->step) + " of rank " + std::to_string(rank);
    for (const ModuleInStep::Pass& pass : ran->passes) {
      const std::string times =
          pass.count > 1 ? grouped(static_cast<std::int64_t>(pass.count)) + " x, together " : "";
      add(out, word(pass.pass), times + duration(pass.time_ns).text(), where + ", child spans included");
    }
    if (ran->passes.empty()) add(out, "ran", "not in " + where);
  }
  const std::vector<std::uint32_t> params = params_of(data.tables(), module);
  if (params.empty()) return;
  const bool known = data.tables().stage == 3 && data.is_known(rank, at_ns);
  out.history_title = "Parameters (" + std::to_string(params.size()) + ")";
  if (known) out.history_title += ", status on rank " + std::to_string(rank);
  for (std::size_t i = 0; i < std::min(params.size(), kMostParams); ++i) {
    const std::uint32_t param = params[i];
    const bool persistent = data.tables().params[param].persistent;
    out.history.push_back({std::nullopt, param_name(data, param),
                           known ? status_text(data.param_state(rank, param, at_ns), persistent)
                                 : count(static_cast<double>(data.tables().params[param].elems)).text(),
                           param});
  }
  add_count_left_out(params.size(), kMostParams, out.history);
}

}  // namespace shardscope::gui
