// One Python function for each kind of event: shardscope._core.events.step_begin(step=0).
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// Adds `events` to the module. Arguments are the kind's fields, by the names of docs/events.md, preceded by
/// `lane` for kinds without a fixed lane. If the kind's detail level is disabled, the call costs only
/// itself.
void bind_events(nanobind::module_& module);

}  // namespace shardscope::python
