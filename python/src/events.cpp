#include "events.h"

#include <shardscope/shardscope.h>

namespace shardscope::python {

namespace nb = nanobind;
using namespace nb::literals;

void bind_events(nb::module_& module) {
  nb::module_ events = module.def_submodule("events", "Emits an event, now, on the calling thread.");
#include "events.inc"
}

}  // namespace shardscope::python
