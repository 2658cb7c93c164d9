#include "collective_lane.h"

#include <Python.h>

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// Torch makes a Python thread state for each call of a callback, and one more to free the callback, where
/// the thread has none: gloo's threads do not, and both take longer than all that is done here. What is
/// ensured is not released, so the thread keeps the state that it has now, and the interpreter has it (a few
/// hundred bytes for each thread that ends collectives) until it ends itself. Under the GIL.
void keep_thread_state() {
  thread_local const bool kept = [] {
    const bool has_one = PyGILState_GetThisThreadState() != nullptr;
    if (has_one) (void)PyGILState_Ensure();
    return has_one;
  }();
  (void)kept;
}

}  // namespace

bool failed(nb::handle complete, const char* method) {
  try {
    (void)complete.attr(method)();
    return false;
  } catch (nb::python_error& error) {
    // What has no such method does not say.
    return !error.matches(PyExc_AttributeError);
  }
}

bool has_exception(nb::handle work) {
  try {
    return !work.attr("exception")().is_none();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return false;
  }
}

void add_collective_lane(nb::module_& module) {
  nb::class_<CollectiveEnded>(module, "CollectiveEnded")
      .def("__call__",
           [](const CollectiveEnded& self, bool failed) { self.lane->ended(*self.which, failed); })
      .def("__call__", [](const CollectiveEnded& self, nb::handle future) {
        self.lane->ended(*self.which, failed(future, "value"));
        keep_thread_state();
      });
  nb::class_<CollectiveLane>(module, "CollectiveLane")
      .def("__init__", [](CollectiveLane* self,
                          std::uint8_t lane) { new (self) CollectiveLane{std::make_shared<Lane>(lane)}; })
      .def("close", [](const CollectiveLane& self) { self.lane->close(); });
}

}  // namespace shardscope::python
