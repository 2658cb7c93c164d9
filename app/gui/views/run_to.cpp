#include "app/gui/views/run_to.h"

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"

namespace shardscope::gui {

void pick_run_to(Context& ctx, const Rect& anchor, RunToKind kind) {
  AppState& app = ctx.app;
  const store::Store& data = app.store();
  std::vector<OverlayItem> items;
  const auto add = [&](std::string label, std::string hint, std::uint32_t id) {
    items.push_back({std::move(label), std::move(hint), true, false, [&app, kind, id] {
                       app.run_to({kind, id}, Direction::forward);
                     }});
  };
  switch (kind) {
    case RunToKind::module:
      for (const ev::ModuleInfo& module : data.tables().modules) {
        if (module.hooks) add(module_name(data, module.id), module.type, module.id);
      }
      ctx.picker(anchor, "Run to module", std::move(items));
      return;
    case RunToKind::param:
      for (const ev::ParamInfo& param : data.tables().params) {
        add(param.name, count(static_cast<double>(param.elems)).text(), param.id);
      }
      ctx.picker(anchor, "Run to the next use of parameter", std::move(items));
      return;
    case RunToKind::step: {
      const std::uint32_t here = data.steps().empty() ? 0 : data.steps().back().step;
      if (app.run->live()) {
        for (const std::uint32_t ahead : {1U, 2U, 5U, 10U, 20U, 50U, 100U, 1000U}) {
          add("step " + std::to_string(here + ahead), "in " + std::to_string(ahead), here + ahead);
        }
      } else {
        for (const store::StepRow& step : data.steps())
          add("step " + std::to_string(step.step), "", step.step);
      }
      ctx.picker(anchor, "Run to step", std::move(items));
      return;
    }
  }
}

}  // namespace shardscope::gui
