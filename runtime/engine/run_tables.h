// The static tables of a run: modules, parameters, owners of elements, configuration, machine.
#pragma once

#include <cstdint>
#include <string>

#include "instrumentation/emitter.h"
#include "runtime/config/config.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

/// Ids in the tables of a run with shardscope.data_parallel_groups.
inline constexpr std::uint32_t kDataParallelGroup = 0;
inline constexpr std::uint32_t kModelParallelPeers = 1;

/// Contents of the tables beyond model and configuration.
struct RunIdentity {
  std::string run_id;
  std::string device;  ///< Device::describe()
  std::string versions;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t local_world = 1;
};

/// The tables of one rank. `persistent` parameters are computed as the scheduler does (stage 3).
[[nodiscard]] instrumentation::RunTables make_run_tables(const plan::ModelPlan& model,
                                                         const config::TrainingConfig& config,
                                                         const RunIdentity& identity);

}  // namespace shardscope::engine
