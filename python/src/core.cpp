// The extension `shardscope._core`: events and gates of the C interface for Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "buckets.h"
#include "collective_lane.h"
#include "coordinator_hooks.h"
#include "describe.h"
#include "events.h"
#include "fetch_counters.h"
#include "fetch_waits.h"
#include "fsdp2_hooks.h"
#include "gate.h"
#include "gpu_records.h"
#include "gradient_hook.h"
#include "group_calls.h"
#include "held_tensors.h"
#include "memory_level.h"
#include "memory_slots.h"
#include "module_calls.h"
#include "module_hooks.h"
#include "native_hook.h"
#include "open_spans.h"
#include "param_statuses.h"
#include "parts.h"
#include "requests.h"
#include "resident_memory.h"
#include "session.h"
#include "shardscope/shardscope.h"
#include "watched_attribute.h"
#include "wrapper.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  // Hooks intentionally stay in the framework's classes until the process exits; nanobind would report them
  // on standard error.
  nb::set_leak_warnings(false);
  module.attr("NO_ID") = SHARDSCOPE_NO_ID;
  shardscope::python::bind_events(module);
  module.def("enabled", [](std::int32_t detail) { return shardscope_enabled(detail) != 0; });
  module.def("now_ns", &shardscope_now_ns);
  module.def("gate", &shardscope::python::pass_gate);
  module.def("version", [] { return std::string(shardscope_version()); });
  module.def("abi_version", &shardscope_abi_version);
  shardscope::python::add_run(module);
  shardscope::python::add_collective_lane(module);
  shardscope::python::add_fetch_counters(module);
  shardscope::python::add_memory_level(module);
  shardscope::python::add_held_tensors(module);
  shardscope::python::add_memory_slots(module);
  shardscope::python::add_resident_memory(module);
  shardscope::python::add_open_spans(module);
  shardscope::python::add_session(module);
  shardscope::python::add_param_statuses(module);
  shardscope::python::add_parts(module);
  shardscope::python::add_native_hook(module);
  shardscope::python::add_buckets(module);
  shardscope::python::add_fsdp2_hooks(module);
  shardscope::python::add_module_hooks(module);
  shardscope::python::add_gradient_hook(module);
  shardscope::python::add_module_calls(module);
  shardscope::python::add_coordinator_hooks(module);
  shardscope::python::add_fetch_waits(module);
  shardscope::python::add_group_calls(module);
  shardscope::python::add_watched_attribute(module);
  shardscope::python::add_requests(module);
  shardscope::python::add_gpu_records(module);
  shardscope::python::add_wrapper(module);
}
