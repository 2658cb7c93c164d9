// `_core.Parts`: emits the events of all parameters of a gather or a bucket in one call.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shardscope/shardscope.h"

namespace shardscope::python {

using Part = std::pair<std::uint32_t, std::int64_t>;  // parameter, its elements

/// Parameters of one gather or one bucket, with their elements, in order. A Python loop over them would cost
/// more than everything else in their hooks: after a matrix product little of the interpreter is left in the
/// caches.
class Parts {
 public:
  explicit Parts(std::vector<Part> parts) : parts_(std::move(parts)) {
    for (const Part& part : parts_) elems_ += part.second;
  }

  [[nodiscard]] std::size_t size() const { return parts_.size(); }
  [[nodiscard]] std::int64_t elems() const { return elems_; }
  [[nodiscard]] std::uint32_t first() const { return parts_.empty() ? SHARDSCOPE_NO_ID : parts_[0].first; }

  /// Changes every parameter's status, in order. `change`: 1 if gathered elements are added, -1 if removed, 0
  /// if they stay. Returns `available` with this change: the elements that are available afterwards.
  [[nodiscard]] std::int64_t status(std::uint8_t lane, std::uint8_t status, std::uint8_t cause,
                                    std::uint32_t module, std::uint32_t gather, std::int64_t available,
                                    int change) const {
    for (const auto& [param, elems] : parts_) {
      available += change * elems;
      shardscope_param_status(lane, status, cause, param, module, gather, elems, available);
    }
    return available;
  }

  void kept(std::uint8_t reason, std::uint32_t module) const {
    for (const auto& [param, elems] : parts_) shardscope_release_kept(reason, module, param, elems);
  }

  /// Records each as a part of collective `sequence`; `size`: bytes of an element there.
  void in_collective(std::uint8_t op, std::uint32_t sequence, std::int64_t size) const {
    for (const auto& [param, elems] : parts_)
      shardscope_collective_part(op, sequence, param, elems, elems * size);
  }

  /// Adds them to an empty bucket.
  void fill(std::uint32_t bucket) const {
    std::int64_t filled = 0;
    for (const auto& [param, elems] : parts_) {
      filled += elems;
      shardscope_bucket_add(bucket, param, elems, filled);
    }
  }

 private:
  std::vector<Part> parts_;
  std::int64_t elems_ = 0;
};

void add_parts(nanobind::module_& module);

}  // namespace shardscope::python
