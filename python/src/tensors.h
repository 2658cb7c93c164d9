// Tensors in a module's arguments and results, and hooks of them.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <utility>

#include "attribute.h"

namespace shardscope::python {

/// torch.Tensor as hooks need it, without torch's headers. All functions may throw Python's exception as
/// nb::python_error. Requires the GIL.
class Tensors {
 public:
  /// `type`: torch.Tensor. `make_table`: makes the table of a tensor's hooks as Tensor.register_hook() does;
  /// None: that is not known, and the method is called.
  Tensors(nb::object type, nb::object make_table)
      : type_(std::move(type)), make_table_(std::move(make_table)) {}

  /// Calls f(tensor) for `value`, or for those in a tuple, a list or a dict, one more tuple or list deep.
  template <typename F>
  void each_in(nb::handle value, const F& f) const {
    if (is_tensor(value)) return f(value);
    each_of(value, [&](nb::handle item) { each_in_item(item, f); });
  }
  /// The same for one of several arguments: itself, or those in a tuple or a list.
  template <typename F>
  void each_in_item(nb::handle item, const F& f) const {
    if (is_tensor(item))
      f(item);
    else if (is_list(item))
      each_of(item, [&](nb::handle inner) {
        if (is_tensor(inner)) f(inner);
      });
  }

  /// Tensor.register_hook(make()) without its handle, if a gradient flows through the tensor to an operation
  /// that made it: the hook is never removed. Not a call of it: it imports a module, and makes a handle with
  /// a weak reference, at each call. `added`(table): whether the hook that is meant is part of one in this
  /// table of the tensor's hooks already.
  template <typename Make, typename Added>
  void hook(nb::handle tensor, const Make& make, const Added& added) const {
    if (!nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr()))).is(type_)) {
      if (requires_grad_.is_true(tensor) && !is_leaf_.is_true(tensor))
        (void)register_hook_.call(tensor, make());
      return;
    }
    const nb::object node = grad_fn_.of(tensor);  // read first: it is made anew for a changed view
    if (node.is_none()) return;
    nb::object table = backward_hooks_.of(tensor);
    if (!table.is_none() && added(table)) return;
    const nb::object hook = make();
    if (make_table_.is_none()) {
      (void)register_hook_.call(tensor, hook);
      return;
    }
    if (table.is_none()) {
      table = make_table_();
      backward_hooks_.set(tensor, table);
      (void)register_table_.call(node, tensor);
    }
    // Handles use numbers as keys; torch reads only the values.
    if (PyObject_SetItem(table.ptr(), hook.ptr(), hook.ptr()) < 0) throw nb::python_error();
  }

 private:
  [[nodiscard]] bool is_tensor(nb::handle value) const {
    return PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(type_.ptr())) != 0;
  }
  static bool is_list(nb::handle value) {
    return PyTuple_Check(value.ptr()) != 0 || PyList_Check(value.ptr()) != 0;
  }
  /// Of a tuple, a list or the values of a dict; nothing of another object.
  template <typename F>
  void each_of(nb::handle value, const F& f) const {
    if (PyTuple_Check(value.ptr()) != 0) {
      for (Py_ssize_t i = 0; i < PyTuple_Size(value.ptr()); ++i) f(PyTuple_GetItem(value.ptr(), i));
    } else if (PyList_Check(value.ptr()) != 0) {
      for (Py_ssize_t i = 0; i < PyList_Size(value.ptr()); ++i) f(nb::borrow(PyList_GetItem(value.ptr(), i)));
    } else if (PyDict_Check(value.ptr()) != 0) {
      for (const nb::handle each : values_.call(value)) f(each);
    }
  }

  nb::object type_, make_table_;
  Attribute requires_grad_{"requires_grad"}, is_leaf_{"is_leaf"}, register_hook_{"register_hook"},
      backward_hooks_{"_backward_hooks"}, grad_fn_{"grad_fn"}, register_table_{"_register_hook_dict"},
      values_{"values"};
};

}  // namespace shardscope::python
