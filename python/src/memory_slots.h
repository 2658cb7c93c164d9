// `_core.Slot` and `_core.Slots`: temporary memory within a step, and how it is reported.
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

/// Whether an attribute of an object, to which it holds a weak reference, is this value, by identity. For
/// slots; an equivalent property would run Python code for every group at every hook.
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

/// Temporary tensors of one category.
///
/// `tensors`: HeldTensors, or a function that returns the existing ones. `present`: a function or an
/// AttributeIs that returns which of them exist (false: none), a key of known sizes; True: the
/// pattern of HeldTensors; None: they are measured each time. `hooked`: hooks report all changes, so
/// a sample need not ask. `alike`: one of several with this object whose tensors come one by one, which hooks
/// report, and go together, which no hook does (gradient shards of a model's groups). Requires the GIL;
/// exceptions of `tensors` and `present` are passed to the caller.
class Slot {
 public:
  Slot(std::uint8_t category, nb::object present, nb::object tensors, bool host, bool hooked,
       nb::object alike);

  /// Bytes that a hook counts and reports itself: `bytes`(). A sample reads them nevertheless: the levels
  /// that it sets are those at its own time.
  Slot(std::uint8_t category, nb::object bytes);

  [[nodiscard]] std::int64_t current_bytes();
  /// In a full sample: add(category, tensor, host) counts each storage once overall and returns the newly
  /// counted bytes.
  std::int64_t count(nb::handle add);

  [[nodiscard]] nb::object key() const { return nb::make_tuple(pool_, category_); }
  [[nodiscard]] std::uint8_t pool() const { return pool_; }
  [[nodiscard]] std::uint8_t category() const { return category_; }
  [[nodiscard]] bool hooked() const { return hooked_; }
  [[nodiscard]] nb::handle alike() const { return alike_; }  ///< null: none
  std::int64_t now = 0;                                      ///< the last reported size

 private:
  /// Bytes of the existing tensors, known for their pattern or else from measure(). 0 if there are none.
  template <typename Measure>
  std::int64_t by_pattern(bool quick, const Measure& measure);
  [[nodiscard]] nb::object tensors() const;
  [[nodiscard]] std::int64_t measured() const;

  std::uint8_t pool_, category_;
  nb::object present_, tensors_, alike_, kept_;
  HeldTensors* held_ = nullptr;         ///< tensors_, if it is a HeldTensors
  const AttributeIs* state_ = nullptr;  ///< present_, if it is an AttributeIs
  bool host_ = false, hooked_ = false;
  std::vector<std::pair<std::string, std::int64_t>> known_;  ///< sizes by pattern of held_
  nb::dict sizes_;                                           ///< sizes by result of present()
};

/// Slots that change together at a hook, or all slots.
class Slots {
 public:
  /// `level`(pool, category) -> MemoryLevel, the reported level. `toggle`: a Switch for changed().
  /// `failed`(error): receives exceptions of changed(), which are not rethrown.
  Slots(nb::list slots, nb::object level, nb::object toggle, nb::object failed);

  /// Reports the changed slots, if memory is recorded.
  void changed();
  /// Measures the slots that no hook reports. Of those that are alike the first, the middle and the last; if
  /// one of them has changed, and after kTrusted such times in a row, all.
  void refresh();
  /// Bytes of all categories: `fixed` ((pool, category) -> bytes) and the slots' last reported ones.
  [[nodiscard]] nb::dict with(const nb::dict& fixed) const;

 private:
  struct Entry {
    nb::object owner;
    Slot* slot;
    nb::object level;  ///< set when its size first changes
  };
  struct Alike {
    std::vector<Slot*> slots;  ///< of entries_
    std::size_t trusted = 0;   ///< times that only some were measured, in a row

    void refresh();
  };
  void report_changes();

  std::vector<Entry> entries_;
  std::vector<Alike> alike_;  ///< by Slot::alike()
  nb::object level_, toggle_, failed_;
};

void add_memory_slots(nb::module_& module);

}  // namespace shardscope::python
