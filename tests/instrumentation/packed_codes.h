// How codes of some events are packed, written out once more: what the table (event_kinds.def) packs is
// compared with this, and events are made with it whose slots a test fills in itself.
#pragma once

#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::test {

/// c of nccl_kernel: channels that were timed in bits 0-15, channels that ran in bits 16-31.
constexpr std::uint32_t nccl_channels(std::uint32_t timed, std::uint32_t used) {
  return (timed & 0xFFFFU) | used << 16U;
}
/// code of gpu_memory: pool in the low 4 bits (managed memory counts as device), 1 in bit 4 if it was freed.
constexpr std::uint8_t gpu_memory_code(instrumentation::MemoryPool pool, bool freed) {
  return static_cast<std::uint8_t>((static_cast<std::uint8_t>(pool) & 0xF) | (freed ? 0x10 : 0));
}
/// code of memory events: category in the low 4 bits, pool in the high 4.
constexpr std::uint8_t memory_code(instrumentation::MemoryPool pool,
                                   instrumentation::MemoryCategory category) {
  return static_cast<std::uint8_t>((static_cast<std::uint8_t>(category) & 0xF) |
                                   (static_cast<std::uint8_t>(pool) << 4));
}

}  // namespace shardscope::test
