// The sections of an encoded block, in the order of docs/recording.md ("Blocks"): keyframe, lanes, memory,
// sums. Each has functions that write it, read it whole, and read only what a BlockHead needs, side by
// side. A head's functions fail wherever the full ones fail. Lanes are short and in block_codec.cpp.
#pragma once

#include "app/store/block.h"
#include "app/store/block_bytes.h"

namespace shardscope::store {

// keyframe_section.cpp
void write_keyframe(BlockWriter& out, const RankKeyframe& keyframe);
[[nodiscard]] RankKeyframe read_keyframe(BlockReader& in, std::size_t lanes);
void skip_keyframe(BlockReader& in, std::size_t lanes);

// memory_section.cpp
void write_memory(BlockWriter& out, const Block& block);
void read_memory(BlockReader& in, Block& block);
/// The peaks alone.
void read_memory(BlockReader& in, BlockHead& head);

// sums_section.cpp
void write_sums(BlockWriter& out, const Block& block);
void read_sums(BlockReader& in, Block& block);
/// All but Block::carried.
void read_sums(BlockReader& in, BlockHead& head);

// Bytes by category, in keyframes and samples.
inline void write_categories(BlockWriter& out, const CategoryBytes& bytes) {
  for (const std::int64_t value : bytes) out.number(value);
}

[[nodiscard]] inline CategoryBytes read_categories(BlockReader& in) {
  CategoryBytes out;
  for (std::int64_t& value : out) value = in.number();
  return out;
}

}  // namespace shardscope::store
