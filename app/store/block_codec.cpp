#include "app/store/block_codec.h"

#include <span>

#include "app/store/block_sections.h"
#include "app/store/packed.h"

namespace shardscope::store {
namespace {

/// 2: stores its number of lanes.
constexpr std::uint8_t kBlockVersion = 2;

/// In the order of encode_block(). begin_ns comes first, because all later times are relative to it.
void read_origin(BlockReader& in, BlockOrigin& block) {
  in.version(kBlockVersion);
  block.begin_ns = in.fixed<std::int64_t>();
  in.set_base(block.begin_ns);
  block.rank = in.small<std::uint32_t>();
  block.sequence = in.varint();
  block.parts = in.small<std::uint32_t>();
  block.events = in.small<std::uint32_t>();
  block.dropped_before = in.varint();
  block.lost_before = in.varint();
  block.shed_before = in.varint();
  block.lost_between = in.varint();
  block.missing_begin_ns = in.number();
  block.missing_end_ns = in.number();
  block.clock_offset_ns = in.number();
  block.clock_residual_ns = in.number();
  block.end_ns = in.time();
  block.gap = in.varint() != 0;
}

}  // namespace

/// Through the codec itself, so that a live run and its recording show the same
/// rounding.
DensityPyramid coarse(const DensityPyramid& fine) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  fine.encode(writer, kBlockBuckets);
  ByteReader reader(bytes.data(), bytes.size(), "level of detail");
  // The finest level only: upper levels are computed from it where they are needed.
  return DensityPyramid::decode(reader, DensityPyramid::Levels::finest);
}

/// origin, number of lanes, keyframe, lanes, waits, memory, sums; docs/recording.md, "Blocks".
std::vector<std::byte> encode_block(const Block& block) {
  std::vector<std::byte> bytes;
  BlockWriter out(bytes, block.begin_ns);
  out.fixed(kBlockVersion);
  out.fixed(block.begin_ns);
  out.varint(block.rank);
  out.varint(block.sequence);
  out.varint(block.parts);
  out.varint(block.events);
  out.varint(block.dropped_before);
  out.varint(block.lost_before);
  out.varint(block.shed_before);
  out.varint(block.lost_between);
  out.number(block.missing_begin_ns);
  out.number(block.missing_end_ns);
  out.number(block.clock_offset_ns);
  out.number(block.clock_residual_ns);
  out.time(block.end_ns);
  out.varint(block.gap ? 1 : 0);
  out.varint(ev::kStreamCount);
  // State at the block's begin, so that its events can be decoded without those before it.
  write_keyframe(out, block.begin);
  // kStreamCount of them, the number written above.
  for (const BlockLane& lane : block.lanes) {
    out.time(lane.end_ns);
    out.varint(lane.rows.size());
    // The finest level of each row that has at most kBlockBuckets buckets; finer ones are in the page.
    for (const DensityPyramid& row : lane.rows) row.encode(out, kBlockBuckets);
    for (const std::uint8_t shift : lane.fine) out.varint(shift);
  }
  block.waits.encode(out, kBlockBuckets);
  write_memory(out, block);
  write_sums(out, block);
  return pack(bytes);
}

Block decode_block(const std::byte* data, std::size_t size) {
  const std::vector<std::byte> bytes = unpack(data, size);
  BlockReader in(bytes.data(), bytes.size(), "block");
  Block block;
  read_origin(in, block);
  // May be less than kStreamCount, never more: lane_count() rejects more.
  const std::size_t lanes = in.lane_count();
  block.begin = read_keyframe(in, lanes);
  // A program with fewer lanes may have written it: the others stay empty.
  for (BlockLane& lane : std::span(block.lanes).first(lanes)) {
    in.now_reading("lanes");
    lane.end_ns = in.time();
    const std::size_t depths = in.count();
    // count() has rejected more than there are bytes; this rejects more than a lane can have.
    if (depths > Lane::kMaxDepth) in.fail("have too many rows");
    for (std::size_t d = 0; d < depths; ++d) {
      lane.rows.push_back(DensityPyramid::decode(in, DensityPyramid::Levels::finest));
    }
    // The page's bucket widths: whether reading the page is worthwhile.
    for (std::size_t d = 0; d < depths; ++d) lane.fine.push_back(in.small<std::uint8_t>());
  }
  block.waits = DensityPyramid::decode(in, DensityPyramid::Levels::finest);
  read_memory(in, block);
  read_sums(in, block);
  // Bytes after the last field: a format that this program does not know, or damage.
  if (in.left() != 0) in.fail("are followed by bytes that mean nothing");
  return block;
}

/// The same bytes with less memory: depths, peaks and sums are read, levels of detail and memory intervals
/// skipped. Rejects whatever decode_block() rejects, so that damage is found where only
/// heads are read.
BlockHead decode_head(const std::byte* data, std::size_t size) {
  const std::vector<std::byte> bytes = unpack(data, size);
  BlockReader in(bytes.data(), bytes.size(), "block");
  BlockHead head;
  read_origin(in, head);
  const std::size_t lanes = in.lane_count();
  skip_keyframe(in, lanes);
  for (std::uint8_t& depth : std::span(head.depths).first(lanes)) {
    in.now_reading("lanes");
    // Read, not skipped: rejects an impossible time.
    (void)in.time();
    const std::size_t depths = in.count();
    if (depths > Lane::kMaxDepth) in.fail("have too many rows");
    // Levels of detail do not store their size: each is skipped by its own counts.
    for (std::size_t d = 0; d < depths; ++d) DensityPyramid::check(in);
    in.skip(depths);
    // Fits: checked against kMaxDepth above.
    depth = static_cast<std::uint8_t>(depths);
  }
  DensityPyramid::check(in);
  read_memory(in, head);
  read_sums(in, head);
  if (in.left() != 0) in.fail("are followed by bytes that mean nothing");
  return head;
}

}  // namespace shardscope::store
