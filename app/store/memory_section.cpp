// A block's memory: peaks, intervals and corrections by pool.
#include "app/store/block_sections.h"

namespace shardscope::store {
namespace {

void write_sample(BlockWriter& out, const MemorySample& sample) {
  out.time(sample.at_ns);
  write_categories(out, sample.bytes);
}

/// time, then kMemoryCategoryCount numbers: bytes by category.
MemorySample read_sample(BlockReader& in) {
  MemorySample out;
  out.at_ns = in.time();
  out.bytes = read_categories(in);
  return out;
}

}  // namespace

/// For each pool: varint changes; if not 0: sample with the highest total, sample with the highest model
/// states, varint n and n times (time begin, sample highest), varint m and m times (time; number delta,
/// after; varint category). docs/recording.md, "Blocks", 3.
void write_memory(BlockWriter& out, const Block& block) {
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
    const BlockMemory& pool = block.memory[p];
    out.varint(pool.changes);
    if (pool.changes == 0) continue;
    write_sample(out, block.peaks[p].all);
    write_sample(out, block.peaks[p].model_state);
    out.varint(pool.leaves.size());
    // A leaf: begin of its first change, and its highest sample.
    for (const MemoryIndex::Leaf& leaf : pool.leaves) {
      out.time(leaf.begin_ns);
      write_sample(out, leaf.highest);
    }
    // Changes that the index inserted for bytes whose events are missing: after a gap, or from before the
    // first event.
    out.varint(block.corrections[p].size());
    for (const MemoryIndex::Change& change : block.corrections[p]) {
      out.time(change.at_ns);
      out.number(change.delta);
      out.number(change.after);
      out.varint(static_cast<std::uint64_t>(change.category));
    }
  }
}

void read_memory(BlockReader& in, Block& block) {
  in.now_reading("memory");
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
    BlockMemory& pool = block.memory[p];
    pool.changes = in.small<std::uint32_t>();
    if (pool.changes == 0) continue;
    block.peaks[p].all = read_sample(in);
    block.peaks[p].model_state = read_sample(in);
    pool.leaves.resize(in.count());
    for (MemoryIndex::Leaf& leaf : pool.leaves) {
      leaf.begin_ns = in.time();
      leaf.highest = read_sample(in);
    }
    block.corrections[p].resize(in.count());
    for (MemoryIndex::Change& change : block.corrections[p]) {
      change.at_ns = in.time();
      change.delta = in.number();
      change.after = in.number();
      // The value may be anything: the remainder keeps the index within the arrays by category.
      change.category = static_cast<ev::MemoryCategory>(in.varint() % ev::kMemoryCategoryCount);
    }
  }
}

/// Peaks are read; leaves (two times and the categories each) and corrections (a time and three integers) are
/// skipped. Their times are read, so that an impossible one is rejected here too.
void read_memory(BlockReader& in, BlockHead& head) {
  in.now_reading("memory");
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
    head.has_memory[p] = in.small<std::uint32_t>() != 0;
    // 0 changes: the pool has no more bytes in the block.
    if (!head.has_memory[p]) continue;
    head.peaks[p] = {.all = read_sample(in), .model_state = read_sample(in)};
    const std::size_t leaves = in.count();
    for (std::size_t i = 0; i < leaves; ++i) {
      (void)in.time();
      (void)in.time();
      in.skip(ev::kMemoryCategoryCount);
    }
    const std::size_t corrections = in.count();
    for (std::size_t i = 0; i < corrections; ++i) {
      (void)in.time();
      in.skip(3);
    }
  }
}

}  // namespace shardscope::store
