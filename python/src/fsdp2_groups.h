// FSDP2's groups of parameters, as its hooks need them.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "attribute.h"
#include "memory_slots.h"
#include "number_table.h"
#include "parts.h"
#include "shardscope/shardscope.h"

namespace shardscope::python {

/// Temporary tensors of a group that change together, reported at one hook.
class HookedMemory {
 public:
  HookedMemory() = default;  ///< without slots: no memory is recorded
  explicit HookedMemory(nb::object slots) : owner_(std::move(slots)), slots_(nb::cast<Slots*>(owner_)) {}
  void changed() const {
    if (slots_ != nullptr) slots_->changed();
  }

 private:
  nb::object owner_;
  Slots* slots_ = nullptr;
};

/// An FSDPParamGroup. Until its model is described only its memory is known.
struct Fsdp2Group {
  std::uint32_t module = SHARDSCOPE_NO_ID;  ///< its module
  const Parts* parts = nullptr;
  std::uint32_t gather = SHARDSCOPE_NO_ID;  ///< its current gather, until it is resharded
  std::uint8_t cause = SHARDSCOPE_CAUSE_FETCH;
  std::int64_t bytes = 0, shard = 0;  ///< of the gathered group; of this rank's shard
  std::int64_t secondary = 0;         ///< of its shard of a secondary copy
  bool secondary_held = false;        ///< from the reshard after the forward until the gather from it
  std::size_t count = 0;              ///< number of described parameters
  nb::object parts_owner;
  HookedMemory issued, available, released, backward, reduced;
  nb::object gone;  ///< weak reference that removes this entry with its group

  [[nodiscard]] bool described() const { return parts != nullptr && parts->size() > 0; }
};

/// All groups, by identity. Requires the GIL.
class Fsdp2Groups {
 public:
  Fsdp2Groups() = default;
  Fsdp2Groups(const Fsdp2Groups&) = delete;  // weak references take entries out of this one
  Fsdp2Groups& operator=(const Fsdp2Groups&) = delete;

  /// Null if it is not recorded.
  [[nodiscard]] Fsdp2Group* of(nb::handle group) const {
    const std::uint32_t number = numbers_.of(group);
    return number == SHARDSCOPE_NO_ID ? nullptr : all_[number].get();
  }
  Fsdp2Group& add(nb::handle group) {
    if (Fsdp2Group* known = of(group); known != nullptr) return *known;
    const auto key = reinterpret_cast<std::uintptr_t>(group.ptr());
    numbers_.set(key, static_cast<std::uint32_t>(all_.size()));
    Fsdp2Group& made = *all_.emplace_back(std::make_unique<Fsdp2Group>());
    made.gone = nb::weakref(group, nb::cpp_function([this, key](nb::handle) {
                              const std::uint32_t number = numbers_.of(key);
                              numbers_.erase(key);
                              // Destroyed after the table is consistent again.
                              if (number != SHARDSCOPE_NO_ID) const auto entry = std::move(all_[number]);
                            }));
    return made;
  }

 private:
  NumberTable numbers_;
  std::vector<std::unique_ptr<Fsdp2Group>> all_;
};

/// Whether an attribute of a group has a given enumeration value, by identity. If the framework stores it
/// under another name, its equivalent property is called.
class IsInState {
 public:
  IsInState(nb::object value, const char* property)
      : value_(std::move(value)), state_("_sharded_state"), property_(property) {}
  [[nodiscard]] bool operator()(nb::handle group) const {
    return value_.is_none() ? property_.is_true(group) : state_.of(group).is(value_);
  }

 private:
  nb::object value_;
  Attribute state_, property_;
};

}  // namespace shardscope::python
