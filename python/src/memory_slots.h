// `_core.Slot` and `_core.Slots`: memory that comes and goes within a step, and what is reported of it.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "held_tensors.h"

namespace shardscope::python {

/// Tensors of one category that exist only at times.
///
/// `tensors`: HeldTensors, or a function that returns those that are there. `present`: a function that says
/// which of them are (something false: none), by which sizes are known again; True: the pattern of
/// HeldTensors; None: they are measured each time. `hooked`: all changes are seen by hooks that report them,
/// so a sample need not ask. Used under the GIL; what `tensors` or `present` raises goes to the caller.
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
  [[nodiscard]] bool hooked() const { return hooked_; }
  std::int64_t now = 0;  ///< the size reported last

 private:
  [[nodiscard]] nb::object present(bool quick) const;
  [[nodiscard]] nb::object tensors() const;
  [[nodiscard]] std::int64_t measured() const;
  std::int64_t remember(nb::handle pattern, std::int64_t bytes);

  std::uint8_t pool_, category_;
  nb::object present_, tensors_, kept_;
  HeldTensors* held_ = nullptr;  ///< tensors_, where it is that
  bool host_ = false, hooked_ = false;
  nb::dict sizes_;  ///< by what present() said
};

/// Slots that change together at a hook, or all that there are.
class Slots {
 public:
  /// `level`(pool, category) -> MemoryLevel: what is reported of a category.
  Slots(nb::list slots, nb::object level);

  /// Reports those that have changed.
  void changed();
  /// The sizes of those that no hook reports.
  void refresh();
  /// (pool, category) -> bytes reported last.
  [[nodiscard]] nb::dict sums() const;

 private:
  struct Entry {
    nb::object owner;
    Slot* slot;
    nb::object key, level;  ///< the level: once it has changed
  };
  std::vector<Entry> entries_;
  nb::object level_;
};

void add_memory_slots(nb::module_& module);

}  // namespace shardscope::python
