// `_core.HeldTensors`: tensors that objects hold, found again by the names of attributes.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attribute.h"

namespace shardscope::python {

/// Bytes of the storages of tensors, each storage once. Reads no data; a DTensor counts with its local
/// tensor.
class StorageBytes {
 public:
  void add(nb::handle tensor);
  [[nodiscard]] std::int64_t sum() const { return sum_; }

 private:
  nb::object first_;                  ///< storage
  std::vector<std::uintptr_t> seen_;  ///< addresses, where there is more than one
  std::int64_t sum_ = 0;
};

/// Of objects that it keeps alive as little as what they hold. `path`: attributes separated by dots, where
/// `*` stands for every element of a list or tuple ("reduce_scatter_states.*.reduce_scatter_input"). What is
/// None or not there on the way is no tensor. In C++ because it is asked at every hook of a group of
/// parameters (fsdp2_memory.py).
class HeldTensors {
 public:
  HeldTensors(nb::list owners, const std::string& path);
  HeldTensors(const HeldTensors&) = delete;  // weak references tell this one when an owner goes
  HeldTensors& operator=(const HeldTensors&) = delete;

  /// Which are there: a byte of 0 or 1 for each owner, by which sizes are known again. None where none is.
  /// Only for a path without `*`. `quick`: the same as before where the first, the middle and the last of
  /// those that ever had one are as before: gradients come and go together, and to ask a DTensor for its own
  /// takes 0.3 us. Frozen parameters never have one, so they are not among these.
  [[nodiscard]] nb::object pattern(bool quick);
  /// The same; null: none. Valid until the next look.
  [[nodiscard]] const std::string* look(bool quick);
  [[nodiscard]] nb::list tensors() const;
  [[nodiscard]] std::int64_t bytes() const;

 private:
  [[nodiscard]] bool has(std::size_t owner) const;
  [[nodiscard]] bool looks_as_before() const;
  /// Calls visit(tensor) for each from `object` on.
  template <typename Visit>
  void walk(nb::object object, std::size_t from, const Visit& visit) const;
  template <typename Visit>
  void each(const Visit& visit) const;

  struct Owner {
    PyObject* object;  ///< null once it has gone
    nb::object weak;   ///< weak reference; its callback sets `object` to null
  };
  std::vector<Owner> owners_;
  std::vector<Attribute> path_;
  std::vector<bool> all_;          ///< of path_: every element instead of an attribute
  std::vector<std::size_t> seen_;  ///< owners that ever had a tensor, in order
  std::string there_;              ///< the last pattern; empty: pattern() has not run yet
};

void add_held_tensors(nb::module_& module);

}  // namespace shardscope::python
