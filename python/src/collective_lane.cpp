#include "collective_lane.h"

#include <Python.h>

#include <deque>
#include <memory>
#include <utility>

#include "attribute.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// Torch makes a Python thread state for each call of a callback, and one more to free the callback, if the
/// thread has none: gloo's threads do not, and both take longer than everything done here. The state made
/// here is not released, so the thread keeps it, and the interpreter does too (a few hundred bytes for each
/// thread that completes collectives), until it exits. Requires the GIL.
void keep_thread_state() {
  thread_local const bool kept = [] {
    const bool has_one = PyGILState_GetThisThreadState() != nullptr;
    if (has_one) (void)PyGILState_Ensure();
    return has_one;
  }();
  (void)kept;
}

}  // namespace

void Lane::close() {
  while (!closed_ && !waiting_.empty()) {
    // A reference: reading the value releases the GIL, and the callback may end the collective meanwhile.
    const std::shared_ptr<Collective> front = waiting_.front();
    const nb::object future = front->future;
    if (!future.is_valid() || !is_done(future)) break;
    const bool by_error = failed(future, Result::future);
    if (front->ended) continue;
    front->code |= SHARDSCOPE_END_IS_BOUND;
    // Completed ones behind it begin and end now, too.
    for (const std::shared_ptr<Collective>& each : waiting_) {
      if (each->ended) each->code |= SHARDSCOPE_END_IS_BOUND;
    }
    ended(*front, by_error);
  }
  closed_ = true;
  const std::deque<std::shared_ptr<Collective>> dropped = std::exchange(waiting_, {});
  // Their callbacks may still be called and find them in no lane: a future that holds its own callback would
  // never be freed.
  for (const std::shared_ptr<Collective>& each : dropped) each->future.reset();
}

bool failed(nb::handle complete, Result result) {
  // Never freed: threads of the communication library may use them while the interpreter ends.
  static const Attribute* const value = new Attribute("value");
  static const Attribute* const wait = new Attribute("wait");
  try {
    (void)(result == Result::future ? value : wait)->call(complete);
    return false;
  } catch (nb::python_error& error) {
    // A Work without this method has no exception to report.
    return !error.matches(PyExc_AttributeError);
  }
}

bool is_done(nb::handle future) {
  static const Attribute* const done_of = new Attribute("done");
  try {
    const int done = PyObject_IsTrue(done_of->call(future).ptr());
    if (done < 0) throw nb::python_error();
    return done != 0;
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return false;
  }
}

bool has_exception(nb::handle work) {
  static const Attribute* const exception = new Attribute("exception");
  try {
    return !exception->call(work).is_none();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return false;
  }
}

void add_collective_lane(nb::module_& module) {
  nb::class_<CollectiveEnded>(module, "CollectiveEnded")
      .def("__call__", [](const CollectiveEnded& self, nb::handle outcome) {
        if (PyBool_Check(outcome.ptr())) return self.lane->ended(*self.which, outcome.ptr() == Py_True);
        self.lane->ended(*self.which, failed(outcome, Result::future));
        keep_thread_state();
      });
  nb::class_<CollectiveLane>(module, "CollectiveLane")
      .def("__init__", [](CollectiveLane* self,
                          std::uint8_t lane) { new (self) CollectiveLane{std::make_shared<Lane>(lane)}; })
      .def("close", [](const CollectiveLane& self) { self.lane->close(); });
}

}  // namespace shardscope::python
