// Attributes of Python objects, by names that are interned once.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

namespace shardscope::python {

namespace nb = nanobind;

/// The instance dictionary of an object.
inline nb::object own_attributes(nb::handle object) {
  nb::object own = nb::steal(PyObject_GenericGetDict(object.ptr(), nullptr));
  if (!own.is_valid()) throw nb::python_error();
  return own;
}

/// One attribute. All functions may throw Python's exception as nb::python_error.
class Attribute {
 public:
  explicit Attribute(const char* name) : name_(nb::steal(PyUnicode_InternFromString(name))) {}

  [[nodiscard]] nb::object of(nb::handle object) const {
    nb::object value = nb::steal(PyObject_GetAttr(object.ptr(), name_.ptr()));
    if (!value.is_valid()) throw nb::python_error();
    return value;
  }
  template <typename T>
  [[nodiscard]] T as(nb::handle object) const {
    return nb::cast<T>(of(object));
  }
  /// None if it does not exist.
  [[nodiscard]] nb::object or_none(nb::handle object) const {
    nb::object value = nb::steal(PyObject_GetAttr(object.ptr(), name_.ptr()));
    if (value.is_valid()) return value;
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw nb::python_error();
    PyErr_Clear();
    return nb::none();
  }
  /// The entry of the same name in a dictionary; None if it does not exist.
  [[nodiscard]] nb::object in(nb::handle dict) const {
    PyObject* value = PyDict_GetItemWithError(dict.ptr(), name_.ptr());
    if (value == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    return value == nullptr ? nb::object(nb::none()) : nb::borrow(value);
  }
  [[nodiscard]] bool is_true(nb::handle object) const {
    const int truth = PyObject_IsTrue(of(object).ptr());
    if (truth < 0) throw nb::python_error();
    return truth != 0;
  }
  void set(nb::handle object, nb::handle value) const {
    if (PyObject_SetAttr(object.ptr(), name_.ptr(), value.ptr()) < 0) throw nb::python_error();
  }
  /// Calls a method without arguments, without making a bound method.
  [[nodiscard]] nb::object call(nb::handle object) const {
    PyObject* const arguments[] = {object.ptr()};
    nb::object value = nb::steal(PyObject_VectorcallMethod(name_.ptr(), arguments, 1, nullptr));
    if (!value.is_valid()) throw nb::python_error();
    return value;
  }
  /// The same with one argument.
  nb::object call(nb::handle object, nb::handle argument) const {
    PyObject* const arguments[] = {object.ptr(), argument.ptr()};
    nb::object value = nb::steal(PyObject_VectorcallMethod(name_.ptr(), arguments, 2, nullptr));
    if (!value.is_valid()) throw nb::python_error();
    return value;
  }
  /// The value in the instance dictionary `own` of `object`, or else the attribute: most attributes of
  /// parameters are there, and a dictionary is quicker to read several times than an object.
  [[nodiscard]] nb::object in_or_of(nb::handle own, nb::handle object) const {
    PyObject* value = PyDict_GetItemWithError(own.ptr(), name_.ptr());
    if (value != nullptr) return nb::borrow(value);
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return of(object);
  }

 private:
  nb::object name_;
};

}  // namespace shardscope::python
