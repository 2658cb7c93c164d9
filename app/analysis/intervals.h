// Makes IntervalSet (interval_set.h) available in namespace analysis.
#pragma once

#include "app/store/interval_set.h"

namespace shardscope::analysis {

using store::Interval;
using store::IntervalSet;

}  // namespace shardscope::analysis
