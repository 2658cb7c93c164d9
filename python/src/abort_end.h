// The end of a run whose process aborts (an uncaught C++ exception, as of gloo or NCCL's watchdog; a failed
// assertion): its last events and the exception's text are sent before the process ends.
#pragma once

#include "shardscope/shardscope.h"

namespace shardscope::python {

/// From now on an abort of this process ends `run`, with exit code 134, before it takes its course: handlers
/// of SIGABRT and std::terminate that were set before still run. For one run at a time.
void end_on_abort(shardscope_run* run);
/// Before the run is freed. Handlers are as they were, unless others have been set since.
void end_no_more_on_abort();

}  // namespace shardscope::python
