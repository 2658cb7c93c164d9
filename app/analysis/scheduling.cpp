#include "app/analysis/scheduling.h"

#include <stdexcept>
#include <utility>

#include "app/analysis/missing_reason.h"
#include "app/analysis/zero_settings.h"
#include "instrumentation/gate.h"
#include "runtime/plan/scheduler_config.h"

namespace shardscope::analysis {

Scheduling compare_scheduling(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  Scheduling out;
  const auto missing = [&out](const std::string& why) {
    out.missing = why;
    return out;
  };
  if (!store.has_tables()) return missing("The rank's tables have not arrived.");
  const ev::RunTables& tables = store.tables();
  if (tables.stage != 3) return missing("Only stage 3 fetches and releases parameters.");
  if (!names_zero_settings(tables.config_json)) {
    return missing("The recording names no zero_optimization settings, so the limits are not known.");
  }
  if (!numbered_in_order(tables)) return missing("The tables of modules and parameters are not complete.");
  const std::optional<MicroStepGates> micro = micro_step_at(store, rank, at_ns);
  if (!micro) {
    return missing("No micro-step with its module boundaries yet: " +
                   missing_reason("gates", ev::Detail::modules, store.recorded_detail()) + ".");
  }
  const MicroStepGates& gates = *micro;
  for (std::size_t i = 0; i + 1 < gates.size(); ++i) {
    if (gates[i + 1].number != gates[i].number + 1 ||
        (visit_kind(gates[i].kind) && gates[i].id >= tables.modules.size())) {
      return missing("Module boundaries of this micro-step were lost, so its order is not known.");
    }
  }
  Boundaries boundaries = boundaries_of(store, rank, *micro);
  const plan::ZeroConfig zero = zero_of(tables);
  out.run = zero.compat.scheduler;
  out.other = out.run == plan::Compat::shardscope ? plan::Compat::deepspeed : plan::Compat::shardscope;
  out.micro_step = gates.front().id;
  out.gates = std::move(boundaries.gates);
  if (zero.offload_param.device == plan::OffloadDevice::nvme) {
    out.caveat = "Shards on NVMe are taken as resident: what reading ahead delays is left out.";
  }
  try {
    out.comparison =
        plan::compare_schedulers(model_of(tables), copy_size(tables), plan::make_scheduler_config(zero),
                                 boundaries.visits, out.run, out.other);
  } catch (const std::invalid_argument&) {
    return missing("The recorded limits are none that a scheduler could run with.");
  }
  return out;
}

Scheduling compare_scheduling(const store::Store& store) {
  const auto ranks = store.ranks();
  return compare_scheduling(store, ranks.empty() ? 0 : ranks.front().rank, store.end_ns());
}

std::string Scheduling::text() const {
  if (!missing.empty()) return missing;
  std::string text = comparison.summary(plan::to_string(run), plan::to_string(other));
  if (text.empty()) {
    text = std::string(plan::to_string(run)) + " and " + plan::to_string(other) + " decide alike at all " +
           std::to_string(gates.size()) + " module boundaries";
  }
  return text;
}

}  // namespace shardscope::analysis
