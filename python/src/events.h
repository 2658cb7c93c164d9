// One Python function for each kind of event: shardscope._core.events.step_begin(step=0).
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// Adds `events` to the module. Arguments are the kind's fields, by the names of docs/events.md, with `lane`
/// before them where a kind has no lane of its own. Below the detail that is wanted a call costs itself and
/// no more.
void bind_events(nanobind::module_& module);

}  // namespace shardscope::python
