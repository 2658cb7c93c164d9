// Viewers' requests to this process: `_core.next_request()`, `_core.answer()`, and the callback of the C
// interface between them.
#pragma once

#include <nanobind/nanobind.h>

#include "shardscope/shardscope.h"

namespace shardscope::python {

void add_requests(nanobind::module_& module);
/// From now on Python's thread, which waits in next_request(), answers the run's requests.
void answer_requests_of(shardscope_run* run);

}  // namespace shardscope::python
