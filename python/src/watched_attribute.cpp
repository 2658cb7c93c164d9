#include "watched_attribute.h"

#include <Python.h>

#include <exception>

#include "param_statuses.h"
#include "wrapper.h"

namespace shardscope::python {
namespace {

/// The value stays in the instance dictionary under the same name, so that reading, copying and pickling of
/// instances work as before. Written against the stable ABI by hand: reads are frequent, and cost a lookup
/// here.
struct Watched {
  PyObject_HEAD PyObject* name;
  PyObject* on_set;         ///< called as on_set(instance, value) after each assignment
  ParamStatuses* statuses;  ///< on_set, if it is one: its changed() is called
  PyObject* failed;         ///< called with an exception of on_set, which is not rethrown
  PyObject* toggle;         ///< a Switch: whether on_set is called
};

PyObject* get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  PyObject* name = reinterpret_cast<Watched*>(self)->name;
  PyObject* values = PyObject_GenericGetDict(instance, nullptr);
  if (values == nullptr) return nullptr;
  PyObject* value = PyDict_GetItemWithError(values, name);
  Py_XINCREF(value);
  Py_DECREF(values);
  if (value == nullptr && PyErr_Occurred() == nullptr) PyErr_SetObject(PyExc_AttributeError, name);
  return value;
}

int set(PyObject* self, PyObject* instance, PyObject* value) {
  auto* watched = reinterpret_cast<Watched*>(self);
  PyObject* values = PyObject_GenericGetDict(instance, nullptr);
  if (values == nullptr) return -1;
  const int failed =
      value == nullptr ? PyDict_DelItem(values, watched->name) : PyDict_SetItem(values, watched->name, value);
  Py_DECREF(values);
  if (failed != 0 || value == nullptr) {
    if (value == nullptr && PyErr_ExceptionMatches(PyExc_KeyError) != 0) {
      PyErr_Clear();
      PyErr_SetObject(PyExc_AttributeError, watched->name);
    }
    return failed;
  }
  if (!switch_is_on(watched->toggle)) return 0;
  if (watched->statuses != nullptr) {
    try {
      watched->statuses->changed(instance, value);
      return 0;
    } catch (nanobind::python_error& error) {
      error.restore();
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return report_failure(watched->failed) ? 0 : -1;
  }
  PyObject* arguments[] = {instance, value};
  PyObject* result = PyObject_Vectorcall(watched->on_set, arguments, 2, nullptr);
  if (result == nullptr) return report_failure(watched->failed) ? 0 : -1;
  Py_DECREF(result);
  return 0;
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *name = nullptr, *on_set = nullptr, *failed = nullptr, *toggle = nullptr;
  if (PyArg_ParseTuple(arguments, "UOOO", &name, &on_set, &failed, &toggle) == 0) return nullptr;
  if (!is_switch(toggle)) {
    PyErr_SetString(PyExc_TypeError, "WatchedAttribute: the last argument is a Switch");
    return nullptr;
  }
  auto* self = reinterpret_cast<Watched*>(PyType_GenericAlloc(type, 0));
  if (self == nullptr) return nullptr;
  self->name = Py_NewRef(name);
  self->on_set = Py_NewRef(on_set);
  self->statuses =
      nanobind::isinstance<ParamStatuses>(on_set) ? nanobind::inst_ptr<ParamStatuses>(on_set) : nullptr;
  self->failed = Py_NewRef(failed);
  self->toggle = Py_NewRef(toggle);
  return reinterpret_cast<PyObject*>(self);
}

void destroy(PyObject* self) {
  auto* watched = reinterpret_cast<Watched*>(self);
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(watched->name);
  Py_XDECREF(watched->on_set);
  Py_XDECREF(watched->failed);
  Py_XDECREF(watched->toggle);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(get)},
                       {Py_tp_descr_set, reinterpret_cast<void*>(set)},
                       {0, nullptr}};
PyType_Spec spec = {"shardscope._core.WatchedAttribute", sizeof(Watched), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void add_watched_attribute(nanobind::module_& module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw nanobind::python_error();
  module.attr("WatchedAttribute") = nanobind::steal(type);
}

}  // namespace shardscope::python
