#include "app/gui/model/find_names.h"

#include "app/gui/model/format.h"
#include "app/gui/model/match.h"
#include "app/gui/model/names.h"
#include "app/store/span_time.h"

namespace shardscope::gui {

const char* word(NameKind kind) noexcept {
  switch (kind) {
    case NameKind::step:
      return "step";
    case NameKind::rank:
      return "rank";
    case NameKind::finding:
      return "finding";
    case NameKind::module:
      return "module";
    case NameKind::param:
      return "parameter";
  }
  return "";
}

std::vector<NameHit> find_names(const AppState& app, std::string_view typed, std::size_t most) {
  std::vector<NameHit> out;
  if (typed.find_first_not_of(' ') == std::string_view::npos) return out;
  const store::Store& data = app.store();
  std::size_t taken = 0;
  const auto add = [&](NameKind kind, std::uint32_t id, std::string text, const auto& detail) {
    if (taken >= most || !matches(text, typed)) return;
    ++taken;
    out.push_back({kind, id, std::move(text), detail()});
  };
  for (const store::StepRow& step : data.steps()) {
    add(NameKind::step, step.step, "step " + std::to_string(step.step),
        [&] { return duration(store::time_of(data, step).running_ns).text(); });
  }
  taken = 0;
  for (const store::RankRow& rank : data.ranks())
    add(NameKind::rank, rank.rank, "rank " + std::to_string(rank.rank), [&] { return rank.host; });
  taken = 0;
  const auto& findings = app.run->findings();
  for (std::size_t i = 0; i < findings.size(); ++i)
    add(NameKind::finding, static_cast<std::uint32_t>(i), findings[i].title, [] { return std::string(); });
  if (!data.has_tables()) return out;
  taken = 0;
  for (const ev::ModuleInfo& module : data.tables().modules)
    add(NameKind::module, module.id, module_name(data, module.id), [&] { return module.type; });
  taken = 0;
  for (const ev::ParamInfo& param : data.tables().params)
    add(NameKind::param, param.id, param.name, [&] { return shape_text(param.shape) + " " + param.dtype; });
  return out;
}

void go_to_name(AppState& app, const NameHit& hit) {
  switch (hit.kind) {
    case NameKind::step:
      if (app.go_to_step(hit.id)) app.select_step(hit.id);
      return;
    case NameKind::rank:
      app.select_rank(hit.id);
      app.show_rank(hit.id);
      return;
    case NameKind::finding:
      if (hit.id < app.run->findings().size()) app.show_finding(app.run->findings()[hit.id]);
      return;
    case NameKind::module:
      app.select_module(hit.id, app.stepper_rank);
      return;
    case NameKind::param:
      app.select_param(hit.id, app.stepper_rank);
      return;
  }
}

}  // namespace shardscope::gui
