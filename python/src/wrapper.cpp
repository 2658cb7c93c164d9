#include "wrapper.h"

#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <vector>

#include "native_hook.h"

namespace shardscope::python {
namespace {

struct Switch {
  PyObject_HEAD bool on;
};

/// Calls before(*arguments) or a NativeHook's; then the function; then after(token, result, *arguments),
/// where `token` is the result of before(), or raised(token) if the function raised. Exceptions of these
/// hooks are passed to failed(error) and not rethrown. Each may be null. Written against the stable ABI by
/// hand.
struct Wrapper {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *inner, *before, *after, *raised, *failed, *toggle;
  const NativeHook *native_before, *native_after;  ///< before and after, if they are NativeHooks
  PyObject* dict;  ///< __name__, __wrapped__, ...: functools.update_wrapper writes them
};

PyTypeObject* switch_type = nullptr;
PyObject* method_type = nullptr;  ///< types.MethodType

bool is_on(const Wrapper* self) { return switch_is_on(self->toggle); }
bool report(const Wrapper* self) { return report_failure(self->failed); }

/// Null: it threw, and Python's exception is set.
template <typename Call>
PyObject* call_native(const Call& call) {
  try {
    return call().release().ptr();
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

/// Calls after(token, result, *arguments). False: an exception that must propagate is set.
bool call_after(Wrapper* self, PyObject* token, PyObject* result, PyObject* const* arguments,
                Py_ssize_t positional, PyObject* names) {
  if (self->native_after != nullptr) {
    PyObject* done = call_native([&] {
      self->native_after->after(token == nullptr ? Py_None : token, result, {arguments, positional, names});
      return nanobind::none();
    });
    if (done == nullptr) return report(self);
    Py_DECREF(done);
    return true;
  }
  const Py_ssize_t all = positional + (names == nullptr ? 0 : PyTuple_Size(names));
  std::array<PyObject*, 16> few;
  std::vector<PyObject*> many;
  PyObject** passed = few.data();
  if (all + 2 > static_cast<Py_ssize_t>(few.size())) {
    many.resize(static_cast<std::size_t>(all) + 2);
    passed = many.data();
  }
  passed[0] = token == nullptr ? Py_None : token;
  passed[1] = result;
  std::copy(arguments, arguments + all, passed + 2);
  PyObject* done = PyObject_Vectorcall(self->after, passed, static_cast<std::size_t>(positional) + 2, names);
  if (done == nullptr) return report(self);
  Py_DECREF(done);
  return true;
}

void call_raised(Wrapper* self, PyObject* token) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* done = PyObject_CallFunctionObjArgs(self->raised, token == nullptr ? Py_None : token, nullptr);
  if (done == nullptr && !report(self)) PyErr_Clear();
  Py_XDECREF(done);
  PyErr_Restore(type, value, trace);
}

PyObject* call(PyObject* of, PyObject* const* arguments, std::size_t flags, PyObject* names) {
  auto* self = reinterpret_cast<Wrapper*>(of);
  if (!is_on(self)) return PyObject_Vectorcall(self->inner, arguments, flags, names);
  const Py_ssize_t positional = PyVectorcall_NARGS(flags);
  PyObject* token = nullptr;
  if (self->native_before != nullptr) {
    token = call_native([&] { return self->native_before->before({arguments, positional, names}); });
    if (token == nullptr && !report(self)) return nullptr;
  } else if (self->before != nullptr) {
    token = PyObject_Vectorcall(self->before, arguments, static_cast<std::size_t>(positional), names);
    if (token == nullptr && !report(self)) return nullptr;
  }
  PyObject* result = PyObject_Vectorcall(self->inner, arguments, static_cast<std::size_t>(positional), names);
  if (result == nullptr) {
    if (self->raised != nullptr && is_on(self)) call_raised(self, token);
  } else if (self->after != nullptr && is_on(self) &&
             !call_after(self, token, result, arguments, positional, names)) {
    Py_CLEAR(result);
  }
  Py_XDECREF(token);
  return result;
}

/// Like a function: read on an instance it gives a bound method.
PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyObject_CallFunctionObjArgs(method_type, self, instance, nullptr);
}

const NativeHook* native(PyObject* value, bool after) {
  if (value == nullptr || !nanobind::isinstance<NativeHook>(value)) return nullptr;
  const auto* hook = nanobind::inst_ptr<NativeHook>(value);
  return (after ? hook->after != nullptr : hook->before != nullptr) ? hook : nullptr;
}

PyObject* given(PyObject* value) { return value == Py_None ? nullptr : Py_NewRef(value); }

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *inner = nullptr, *before = nullptr, *after = nullptr, *raised = nullptr, *failed = nullptr,
           *toggle = nullptr;
  if (PyArg_ParseTuple(arguments, "OOOOOO", &inner, &before, &after, &raised, &failed, &toggle) == 0)
    return nullptr;
  if (!is_switch(toggle)) {
    PyErr_SetString(PyExc_TypeError, "Wrapper: the last argument is a Switch");
    return nullptr;
  }
  auto* self = reinterpret_cast<Wrapper*>(PyType_GenericAlloc(type, 0));
  if (self == nullptr) return nullptr;
  self->vectorcall = call;
  self->inner = Py_NewRef(inner);
  self->before = given(before);
  self->after = given(after);
  self->raised = given(raised);
  self->native_before = native(self->before, false);
  self->native_after = native(self->after, true);
  self->failed = Py_NewRef(failed);
  self->toggle = Py_NewRef(toggle);
  return reinterpret_cast<PyObject*>(self);
}

int visit_all(PyObject* of, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Wrapper*>(of);
  Py_VISIT(Py_TYPE(of));
  Py_VISIT(self->inner);
  Py_VISIT(self->before);
  Py_VISIT(self->after);
  Py_VISIT(self->raised);
  Py_VISIT(self->failed);
  Py_VISIT(self->toggle);
  Py_VISIT(self->dict);
  return 0;
}
int clear(PyObject* of) {
  auto* self = reinterpret_cast<Wrapper*>(of);
  self->native_before = self->native_after = nullptr;
  Py_CLEAR(self->before);
  Py_CLEAR(self->after);
  Py_CLEAR(self->raised);
  Py_CLEAR(self->dict);
  return 0;
}
void destroy(PyObject* of) {
  auto* self = reinterpret_cast<Wrapper*>(of);
  PyTypeObject* type = Py_TYPE(of);
  PyObject_GC_UnTrack(of);
  clear(of);
  Py_XDECREF(self->inner);
  Py_XDECREF(self->failed);
  Py_XDECREF(self->toggle);
  PyObject_GC_Del(of);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, static_cast<Py_ssize_t>(offsetof(Wrapper, vectorcall)), READONLY,
     nullptr},
    {"__dictoffset__", T_PYSSIZET, static_cast<Py_ssize_t>(offsetof(Wrapper, dict)), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef attributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(visit_all)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                       {Py_tp_members, members},
                       {Py_tp_getset, attributes},
                       {0, nullptr}};
PyType_Spec spec = {
    "shardscope._core.Wrapper", sizeof(Wrapper), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    slots};

PyMemberDef switch_members[] = {{"on", T_BOOL, static_cast<Py_ssize_t>(offsetof(Switch, on)), 0, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};
PyType_Slot switch_slots[] = {{Py_tp_members, switch_members}, {0, nullptr}};
PyType_Spec switch_spec = {"shardscope._core.Switch", sizeof(Switch), 0, Py_TPFLAGS_DEFAULT, switch_slots};

}  // namespace

bool is_switch(PyObject* object) { return Py_TYPE(object) == switch_type; }
bool switch_is_on(PyObject* toggle) { return reinterpret_cast<const Switch*>(toggle)->on; }

bool report_failure(PyObject* failed) {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return false;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject* done = PyObject_CallFunctionObjArgs(failed, value, nullptr);
  Py_XDECREF(done);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  PyErr_Clear();
  return true;
}

void add_wrapper(nanobind::module_& module) {
  PyObject* toggle = PyType_FromSpec(&switch_spec);
  PyObject* type = toggle == nullptr ? nullptr : PyType_FromSpec(&spec);
  if (type == nullptr) throw nanobind::python_error();
  switch_type = reinterpret_cast<PyTypeObject*>(toggle);
  method_type = nanobind::object(nanobind::module_::import_("types").attr("MethodType")).release().ptr();
  module.attr("Switch") = nanobind::borrow(toggle);
  module.attr("Wrapper") = nanobind::steal(type);
}

}  // namespace shardscope::python
