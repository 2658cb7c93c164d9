// `_core.MemoryLevel`: the bytes of a category in a pool.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>

#include "shardscope/shardscope.h"

namespace shardscope::python {

/// The reported level is absolute: an unchanged one emits no event (shardscope_memory_level). Requires the
/// GIL.
class MemoryLevel {
 public:
  MemoryLevel(std::uint8_t pool, std::uint8_t category) : pool_(pool), category_(category) {}

  void add(std::int64_t bytes) { set(bytes_ + bytes); }
  void set(std::int64_t bytes) {
    bytes_ = std::max<std::int64_t>(bytes, 0);
    shardscope_memory_level(pool_, category_, bytes_);
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::uint8_t pool_, category_;
  std::int64_t bytes_ = 0;
};

void add_memory_level(nanobind::module_& module);

}  // namespace shardscope::python
