// Everything that is done with a store behind its reader: state at a time, densities, the summary and every
// export.
#pragma once

#include "app/store/store.h"

namespace shardscope::fuzz {

/// Ends the program unless each works and what should be JSON is JSON.
void read_all(const store::Store& store);

}  // namespace shardscope::fuzz
