// `_core.Slot` and `_core.Slots`: memory that comes and goes within a step, and what is reported of it.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attribute.h"
#include "held_tensors.h"

namespace shardscope::python {

/// A question to an object that it keeps alive as little as HeldTensors does: is its attribute this value, by
/// identity? For slots; a property of the same meaning is Python, for every group at every hook.
class AttributeIs {
 public:
  AttributeIs(nb::object object, const char* attribute, nb::object value)
      : object_(nb::weakref(object)), attribute_(attribute), value_(std::move(value)) {}
  [[nodiscard]] bool operator()() const {
    const nb::object object = object_();
    return !object.is_none() && attribute_.of(object).is(value_);
  }

 private:
  nb::object object_;
  Attribute attribute_;
  nb::object value_;
};

/// Tensors of one category that exist only at times.
///
/// `tensors`: HeldTensors, or a function that returns those that are there. `present`: a function or an
/// AttributeIs that says which of them are (something false: none), by which sizes are known again; True: the
/// pattern of HeldTensors; None: they are measured each time. `hooked`: all changes are seen by hooks that
/// report them, so a sample need not ask. Used under the GIL; what `tensors` or `present` raises goes to the
/// caller.
class Slot {
 public:
  Slot(std::uint8_t category, nb::object present, nb::object tensors, bool host, bool hooked);

  /// Bytes that a hook keeps count of and reports by itself: `bytes`(). A sample asks for them all the same:
  /// the levels that it sets are of its own time.
  Slot(std::uint8_t category, nb::object bytes);

  [[nodiscard]] std::int64_t current_bytes();
  /// At a full sample: add(category, tensor, host) counts a storage once among all and returns the bytes that
  /// were new.
  std::int64_t count(nb::handle add);

  [[nodiscard]] nb::object key() const { return nb::make_tuple(pool_, category_); }
  [[nodiscard]] std::uint8_t pool() const { return pool_; }
  [[nodiscard]] std::uint8_t category() const { return category_; }
  [[nodiscard]] bool hooked() const { return hooked_; }
  std::int64_t now = 0;  ///< the size reported last

 private:
  /// Bytes of what is there, known by its pattern or else measure(). Where nothing is: 0.
  template <typename Measure>
  std::int64_t by_pattern(bool quick, const Measure& measure);
  [[nodiscard]] nb::object tensors() const;
  [[nodiscard]] std::int64_t measured() const;

  std::uint8_t pool_, category_;
  nb::object present_, tensors_, kept_;
  HeldTensors* held_ = nullptr;         ///< tensors_, where it is that
  const AttributeIs* state_ = nullptr;  ///< present_, where it is that
  bool host_ = false, hooked_ = false;
  std::vector<std::pair<std::string, std::int64_t>> known_;  ///< sizes by patterns of held_
  nb::dict sizes_;                                           ///< by what present() said
};

/// Slots that change together at a hook, or all that there are.
class Slots {
 public:
  /// `level`(pool, category) -> MemoryLevel: what is reported of a category.
  /// `toggle`: a Switch, whether changed() does anything; failed(error): what it raised goes no further.
  Slots(nb::list slots, nb::object level, nb::object toggle, nb::object failed);

  /// Reports those that have changed, where memory is recorded.
  void changed();
  /// The sizes of those that no hook reports.
  void refresh();
  /// (pool, category) -> bytes reported last.
  [[nodiscard]] nb::dict sums() const;

 private:
  struct Entry {
    nb::object owner;
    Slot* slot;
    nb::object level;  ///< once it has changed
  };
  void report_changes();

  std::vector<Entry> entries_;
  nb::object level_, toggle_, failed_;
};

void add_memory_slots(nb::module_& module);

}  // namespace shardscope::python
