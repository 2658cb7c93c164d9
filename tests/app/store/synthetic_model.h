// The static tables of the synthetic run: a GPT's modules and parameters and who holds what.
#pragma once

#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {

[[nodiscard]] ev::RunTables make_synthetic_tables(const SyntheticOptions& options);

}  // namespace shardscope::store
