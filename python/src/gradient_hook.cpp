#include "gradient_hook.h"

#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "wrapper.h"

namespace shardscope::python {
namespace {

/// The begin or the end of a call's backward.
struct Edge {
  std::shared_ptr<const ModuleCall> call;
  bool begins = false;
};

/// Written against the stable ABI by hand: a module of every pass makes and calls one or two of them.
struct GradientHook {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* owner;  ///< of `hooks`
  BackwardHooks* hooks;
  std::vector<Edge> edges;  ///< in the order of the forward
};

PyTypeObject* hook_type = nullptr;

PyObject* call(PyObject* of, PyObject* const*, std::size_t, PyObject*) {
  const auto* self = reinterpret_cast<GradientHook*>(of);
  BackwardHooks& hooks = *self->hooks;
  if (!hooks.on) Py_RETURN_NONE;
  try {
    for (std::size_t left = self->edges.size(); left > 0; --left) {
      const Edge edge = self->edges[left - 1];  // a copy: a gate may let another thread add one
      if (edge.begins)
        hooks.backward.begin(edge.call);
      else
        hooks.backward.end(edge.call);
    }
    Py_RETURN_NONE;  // the gradient stays as it is
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  if (!report_failure(hooks.failed.ptr())) return nullptr;
  Py_RETURN_NONE;
}

void destroy(PyObject* of) {
  auto* self = reinterpret_cast<GradientHook*>(of);
  PyTypeObject* type = Py_TYPE(of);
  self->edges.~vector();
  Py_DECREF(self->owner);
  PyObject_Free(of);
  Py_DECREF(type);
}

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET,
                          static_cast<Py_ssize_t>(offsetof(GradientHook, vectorcall)), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"shardscope._core.GradientHook", sizeof(GradientHook), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

nanobind::object gradient_hook(BackwardHooks& hooks, std::shared_ptr<const ModuleCall> of, bool begins) {
  PyObject* made = PyType_GenericAlloc(hook_type, 0);
  if (made == nullptr) throw nanobind::python_error();
  auto* self = reinterpret_cast<GradientHook*>(made);
  self->vectorcall = call;
  self->owner = Py_NewRef(hooks.owner.ptr());
  self->hooks = &hooks;
  new (&self->edges) std::vector<Edge>();
  nanobind::object whole = nanobind::steal(made);
  self->edges.push_back({std::move(of), begins});
  return whole;
}

bool added_to_hook(nanobind::handle table, const BackwardHooks& hooks,
                   const std::shared_ptr<const ModuleCall>& of, bool begins) {
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(table.ptr(), &at, nullptr, &value) != 0;) {
    auto* hook = reinterpret_cast<GradientHook*>(value);
    if (Py_TYPE(value) != hook_type || hook->hooks != &hooks) continue;
    const Edge& last = hook->edges.back();
    if (last.call != of || last.begins != begins) hook->edges.push_back({of, begins});
    return true;
  }
  return false;
}

void add_gradient_hook(nanobind::module_& module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw nanobind::python_error();
  hook_type = reinterpret_cast<PyTypeObject*>(type);
  module.attr("GradientHook") = nanobind::borrow(type);
}

}  // namespace shardscope::python
