// `_core.HeldTensors`: tensors held by objects, found by paths of attributes.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attribute.h"

namespace shardscope::python {

/// Times in a row that a few are checked and the others assumed, before all are checked. Every 17th check of
/// all, and not every 16th, comes at another of the four samples of a step each time.
inline constexpr std::size_t kTrusted = 16;

/// Bytes of the storages of tensors, each storage once. Reads no data; a DTensor counts as its local
/// tensor.
class StorageBytes {
 public:
  void add(nb::handle tensor);
  [[nodiscard]] std::int64_t sum() const { return sum_; }

 private:
  nb::object first_;                  ///< storage
  std::vector<std::uintptr_t> seen_;  ///< addresses, if there is more than one
  std::int64_t sum_ = 0;
};

/// Holds weak references to the owners and their tensors. `path`: attributes separated by dots, where `*`
/// stands for every element of a list or tuple ("reduce_scatter_states.*.reduce_scatter_input"). A value on
/// the path that is None or missing gives no tensor. In C++ because it is evaluated at every hook of a
/// parameter group (fsdp2_memory.py).
class HeldTensors {
 public:
  HeldTensors(nb::list owners, const std::string& path);
  HeldTensors(const HeldTensors&) = delete;  // callbacks of weak references refer to this object
  HeldTensors& operator=(const HeldTensors&) = delete;

  /// Which tensors exist: a byte 0 or 1 per owner, used as a key of known sizes. None if there are none. Only
  /// for a path without `*`. `quick`: assumes the previous pattern if the first, the middle and the last
  /// owner that ever had a tensor are unchanged: gradients change together, and reading a DTensor's own takes
  /// 0.3 us. If they have changed, assumes the pattern that all full checks have found with these three as
  /// they are now, if there were kAlike of them in a row. After kTrusted quick checks in a row all owners are
  /// checked again, and after as many that assumed the same pattern because of a change. Frozen parameters
  /// never have a tensor, so they are not checked. If no owner had one in many full checks, the first, the
  /// middle and the last of all are checked.
  [[nodiscard]] nb::object pattern(bool quick);
  /// The same; null if there are none. Valid until the next call.
  [[nodiscard]] const std::string* look(bool quick);
  [[nodiscard]] nb::list tensors() const;
  [[nodiscard]] std::int64_t bytes() const;

 private:
  /// What full checks have found with the three checked owners in one state.
  struct Likely {
    std::string pattern;
    std::size_t alike = 0;  ///< such checks in a row that found this pattern
    std::size_t used = 0;   ///< times that it has been assumed since, after a change
  };

  [[nodiscard]] bool has(std::size_t owner) const;
  [[nodiscard]] bool none_as_before() const;
  /// The checked owners of seen_, which is not empty: their state is a number of three bits.
  template <typename Has>
  [[nodiscard]] std::size_t state_of_checked(const Has& has) const;
  void check_all();
  /// Calls visit(tensor) for each tensor, from `object` on.
  template <typename Visit>
  void walk(nb::object object, std::size_t from, const Visit& visit) const;
  template <typename Visit>
  void each(const Visit& visit) const;

  struct Owner {
    PyObject* object;  ///< null after it was freed
    nb::object weak;   ///< weak reference; its callback sets `object` to null
  };
  std::vector<Owner> owners_;
  std::vector<Attribute> path_;
  std::vector<bool> all_;          ///< for each element of path_: `*` instead of an attribute
  std::vector<std::size_t> seen_;  ///< owners that ever had a tensor, in order
  std::string there_;              ///< the last pattern; empty: pattern() has not been called
  std::size_t found_none_ = 0;     ///< full checks without a tensor, in a row
  std::size_t trusted_ = 0;        ///< checks of only some owners, in a row
  std::array<Likely, 8> likely_;   ///< by state_of_checked()
};

void add_held_tensors(nb::module_& module);

}  // namespace shardscope::python
