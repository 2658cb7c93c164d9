// `_core.Numbers`: numbers of objects in the run, by identity.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shardscope/shardscope.h"

namespace shardscope::python {

namespace nb = nanobind;

/// id(object) -> number, open addressing in one array, so that a hook finds its module or parameter with one
/// cache line: Python's dict needs an integer object for the key and four or five. Requires the GIL.
class NumberTable {
 public:
  /// SHARDSCOPE_NO_ID if there is none.
  [[nodiscard]] std::uint32_t of(std::uintptr_t key) const {
    if (slots_.empty()) return SHARDSCOPE_NO_ID;
    for (std::size_t at = place(key);; at = next(at)) {
      if (slots_[at].key == key) return slots_[at].number;
      if (slots_[at].key == 0) return SHARDSCOPE_NO_ID;
    }
  }
  [[nodiscard]] std::uint32_t of(nb::handle object) const {
    return of(reinterpret_cast<std::uintptr_t>(object.ptr()));
  }
  void set(std::uintptr_t key, std::uint32_t number) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    std::size_t at = place(key);
    while (slots_[at].key != 0 && slots_[at].key != key) at = next(at);
    size_ += static_cast<std::size_t>(slots_[at].key == 0);
    slots_[at] = {key, number};
  }
  void erase(std::uintptr_t key) {
    if (of(key) == SHARDSCOPE_NO_ID) return;
    std::size_t gap = place(key);
    while (slots_[gap].key != key) gap = next(gap);
    // Later entries move up, so that a search that skipped this slot still finds them.
    for (std::size_t at = next(gap); slots_[at].key != 0; at = next(at)) {
      const std::size_t wanted = place(slots_[at].key);
      const bool stays = gap < at ? gap < wanted && wanted <= at : gap < wanted || wanted <= at;
      if (!stays) slots_[std::exchange(gap, at)] = slots_[at];
    }
    slots_[gap] = {};
    --size_;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uintptr_t key = 0;
    std::uint32_t number = SHARDSCOPE_NO_ID;
  };

  /// Addresses differ from bit 4 on.
  [[nodiscard]] std::size_t place(std::uintptr_t key) const {
    return static_cast<std::size_t>((key >> 4) * 0x9E3779B97F4A7C15U >> 20) & (slots_.size() - 1);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }
  void grow() {
    const std::vector<Slot> before =
        std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 64 : 2 * slots_.size()));
    size_ = 0;
    for (const Slot& slot : before)
      if (slot.key != 0) set(slot.key, slot.number);
  }

  std::vector<Slot> slots_;  ///< their number is a power of two; key 0: free
  std::size_t size_ = 0;
};

}  // namespace shardscope::python
