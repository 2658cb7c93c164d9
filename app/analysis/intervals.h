// Sets of time intervals under the name that analysis uses: interval_set.h says what they are.
#pragma once

#include "app/store/interval_set.h"

namespace shardscope::analysis {

using store::Interval;
using store::IntervalSet;

}  // namespace shardscope::analysis
