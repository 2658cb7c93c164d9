// What viewers ask of this process: `_core.next_request()`, `_core.answer()`, and the function of the C
// interface between them.
#pragma once

#include <nanobind/nanobind.h>

#include "shardscope/shardscope.h"

namespace shardscope::python {

void add_requests(nanobind::module_& module);
/// From now on Python's thread answers, the one in next_request().
void answer_requests_of(shardscope_run* run);

}  // namespace shardscope::python
