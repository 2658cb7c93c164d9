#include "app/gui/model/stage_memory.h"

#include <algorithm>

#include "app/analysis/framework.h"
#include "app/analysis/zero_settings.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::gui {

std::array<StageMemory, 4> stage_memory(const store::Store& store, const analysis::Summary& summary,
                                        const store::Store* other, const analysis::Summary* other_summary) {
  std::array<StageMemory, 4> out;
  if (!store.has_tables()) return out;
  const instrumentation::RunTables& tables = store.tables();
  const auto world = static_cast<double>(analysis::copy_size(tables));
  std::int64_t frozen = 0;
  for (const instrumentation::ParamInfo& param : tables.params) frozen += param.frozen ? param.elems : 0;
  const auto trained = static_cast<double>(tables.elems - frozen);
  const plan::StateBytes bytes = analysis::state_bytes_of(tables);
  for (std::uint32_t stage = 0; stage < out.size(); ++stage) {
    StageMemory& row = out[stage];
    row.stage = static_cast<std::int32_t>(stage);
    row.expression = plan::state_expression(stage, bytes).text();
    const auto of = [&](const plan::StateBytes& part) {
      return plan::state_expression(stage, part).bytes(trained, world);
    };
    row.params = of({bytes.param, 0, 0, 0, 0});
    row.gradients = of({0, bytes.gradient, 0, 0, 0});
    row.optimizer = of({0, 0, bytes.master, bytes.momentum, bytes.variance});
    if (frozen > 0) {
      const plan::StateExpression weights = plan::frozen_expression(stage, bytes);
      row.params += weights.bytes(static_cast<double>(frozen), world);
      row.expression += " + " + weights.text("F");
    }
  }
  const auto measured = [&](const store::Store& run, const analysis::Summary& of) {
    if (!run.has_tables() || run.tables().stage < 0 || run.tables().stage > 3) return;
    StageMemory& row = out[static_cast<std::size_t>(run.tables().stage)];
    if (!row.measured) row.measured = of.memory_model.measured_bytes_per_rank;
  };
  measured(store, summary);
  // Only a run with the same model size and world is comparable to the formula.
  if (other != nullptr && other_summary != nullptr && other->has_tables() &&
      other->tables().elems == tables.elems && other->tables().world == tables.world)
    measured(*other, *other_summary);
  return out;
}

}  // namespace shardscope::gui
