// Measures how fast a data type computes that the recorded run did not use, by a trial on the same
// machine.
#pragma once

#include <cstdint>
#include <string>

#include "instrumentation/run_tables.h"

namespace shardscope::cli {

/// Factors on the rates fitted to a recording.
struct RateChange {
  double matrix = 1;       ///< of matrix products
  double memory = 1;       ///< of the device's memory, as used by the optimizer
  double host_memory = 1;  ///< of host memory, where the optimizer is offloaded
};

/// Trains `steps` steps with the recorded settings, then with the changed run's data types, on as
/// many ranks as recorded, and fits the cost model to both. Returns the factors between their rates. Both
/// configurations are JSON. Throws UserError where the run was simulated, was made on another machine or on a
/// GPU, or where training fails or is interrupted.
[[nodiscard]] RateChange try_data_type(const instrumentation::RunTables& tables, const std::string& model,
                                       const std::string& recorded_config, const std::string& changed_config,
                                       std::int64_t steps);

}  // namespace shardscope::cli
