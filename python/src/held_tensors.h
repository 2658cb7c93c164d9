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
  std::vector<std::uintptr_t> seen_;
  std::int64_t sum_ = 0;
};

/// Of objects that it keeps alive as little as what they hold. `path`: attributes separated by dots, where
/// `*` stands for every element of a list or tuple ("reduce_scatter_states.*.reduce_scatter_input"). What is
/// None or not there on the way is no tensor. In C++ because it is asked at every hook of a group of
/// parameters (fsdp2_memory.py).
class HeldTensors {
 public:
  HeldTensors(nb::list owners, const std::string& path);

  /// Which are there: a byte of 0 or 1 for each owner, by which sizes are known again. None where none is.
  /// Only for a path without `*`. `quick`: the same as before where the first, the middle and the last of
  /// those that ever had one are as before: gradients come and go together, and to ask a DTensor for its own
  /// takes 0.3 us. Frozen parameters never have one, so they are not among these.
  [[nodiscard]] nb::object pattern(bool quick);
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

  std::vector<nb::object> owners_;  ///< weak references
  std::vector<Attribute> path_;
  std::vector<bool> all_;          ///< of path_: every element instead of an attribute
  std::vector<std::size_t> seen_;  ///< owners that ever had a tensor, in order
  std::string there_;              ///< the last pattern; empty: pattern() has not run yet
};

void add_held_tensors(nb::module_& module);

}  // namespace shardscope::python
