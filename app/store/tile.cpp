#include "app/store/tile.h"

#include <bit>

#include "app/store/bytes.h"
#include "app/store/packed.h"

namespace shardscope::store {
namespace {

constexpr std::uint8_t kTileVersion = 1;
/// The covered share of a bucket in steps of 1/127 of its width: a varint of one byte.
constexpr std::uint32_t kTileSteps = 127;

}  // namespace

/// A tile has at most kTileLeaves buckets of 2^n ns over its time, with the smallest such n if its
/// blocks are of similar lengths (tile.h explains why it may be larger).
bool tile_may_cover(std::int64_t length_ns, double bucket_ns) noexcept {
  const auto leaves = static_cast<std::uint64_t>(length_ns > 0 ? length_ns - 1 : 0) / kTileLeaves;
  return DensityPyramid::covers(static_cast<unsigned>(std::bit_width(leaves)), bucket_ns);
}

/// Joins the finest buckets: DensityPyramid::append doubles widths until they fit, and recomputes the
/// upper levels.
void TileMaker::add(std::uint32_t row, const DensityPyramid& levels) {
  if (!levels.empty()) rows_[row].append(levels, kTileLeaves);
}

void TileMaker::append(const BlockPage& page) {
  for (std::size_t s = 0; s < page.lanes.size(); ++s) {
    for (std::size_t d = 0; d < page.lanes[s].size(); ++d) {
      add(tile_row(static_cast<ev::StreamId>(s), static_cast<std::uint8_t>(d)), page.lanes[s][d]);
    }
  }
  // Waits are spans of the compute lane with a row of their own, without a depth.
  add(tile_row(ev::StreamId::compute, Store::kWaits), page.waits);
}

void TileMaker::append(const RankState& ended) {
  for (std::size_t s = 0; s < ended.lanes().size(); ++s) {
    const Lane& lane = ended.lanes()[s];
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d)
      add(tile_row(static_cast<ev::StreamId>(s), d), lane.pyramid(d));
  }
  add(tile_row(ev::StreamId::compute, Store::kWaits), ended.lane(ev::StreamId::compute).waits());
}

std::size_t TileMaker::bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& [row, levels] : rows_) bytes += sizeof levels + levels.bytes();
  return bytes;
}

const DensityPyramid* TileMaker::levels(std::uint32_t row) const {
  const auto known = rows_.find(row);
  if (known == rows_.end()) return nullptr;
  known->second.settle();
  return &known->second;
}

std::vector<TileRow> TileMaker::rows() const {
  std::vector<TileRow> out;
  std::vector<std::byte> bytes;
  for (const auto& [row, levels] : rows_) {
    bytes.clear();
    ByteWriter writer(bytes);
    writer.fixed(kTileVersion);
    levels.encode(writer, kTileLeaves, kTileSteps);
    out.push_back({.row = row, .bytes = pack(bytes)});
  }
  return out;
}

DensityPyramid decode_tile(const std::byte* data, std::size_t size) {
  const std::vector<std::byte> bytes = unpack(data, size);
  ByteReader in(bytes.data(), bytes.size(), "tile");
  if (in.fixed<std::uint8_t>() != kTileVersion) in.fail("has a version that this program does not know");
  DensityPyramid out = DensityPyramid::decode(in, DensityPyramid::Levels::all, kTileSteps);
  if (in.left() != 0) in.fail("is followed by bytes that mean nothing");
  return out;
}

}  // namespace shardscope::store
