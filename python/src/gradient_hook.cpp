#include "gradient_hook.h"

#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "wrapper.h"

namespace shardscope::python {
namespace {

/// Written against the stable ABI by hand: a module of every pass makes and calls two or more of them.
struct GradientHook {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* owner;  ///< of `hooks`
  BackwardHooks* hooks;
  std::shared_ptr<const ModuleCall> call;
  bool begins;
};

PyTypeObject* hook_type = nullptr;

PyObject* call(PyObject* of, PyObject* const*, std::size_t, PyObject*) {
  const auto* self = reinterpret_cast<GradientHook*>(of);
  BackwardHooks& hooks = *self->hooks;
  if (!hooks.on) Py_RETURN_NONE;
  try {
    if (self->begins)
      hooks.backward.begin(self->call);
    else
      hooks.backward.end(self->call);
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
  self->call.~shared_ptr();
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

nanobind::object gradient_hook(BackwardHooks& hooks, nanobind::handle owner,
                               std::shared_ptr<const ModuleCall> of, bool begins) {
  PyObject* made = PyType_GenericAlloc(hook_type, 0);
  if (made == nullptr) throw nanobind::python_error();
  auto* self = reinterpret_cast<GradientHook*>(made);
  self->vectorcall = call;
  self->owner = Py_NewRef(owner.ptr());
  self->hooks = &hooks;
  new (&self->call) std::shared_ptr<const ModuleCall>(std::move(of));
  self->begins = begins;
  return nanobind::steal(made);
}

void add_gradient_hook(nanobind::module_& module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw nanobind::python_error();
  hook_type = reinterpret_cast<PyTypeObject*>(type);
  module.attr("GradientHook") = nanobind::borrow(type);
}

}  // namespace shardscope::python
