// Data stored besides a block and read on demand: its page (fine levels of detail) and the
// status of every parameter at its begin.
#include <span>

#include "app/store/block_bytes.h"
#include "app/store/block_codec.h"
#include "app/store/packed.h"

namespace shardscope::store {
namespace {

/// 2: begins with its number of lanes, and does not end with the statuses. 3: shares with fewer steps.
constexpr std::uint8_t kPageVersion = 3;
// Steps of a bucket's share. Half of the values take one byte as a varint; with 4095 steps one in 32 does.
constexpr std::uint32_t kPageSteps = 255;
constexpr std::uint8_t kStatusesVersion = 1;
// 65,536 buckets a row at most.
constexpr std::size_t kFineBuckets = std::size_t{1} << 16;

/// Four columns, as written by encode_statuses().
std::vector<ParamState> read_statuses(BlockReader& in) {
  in.now_reading("statuses");
  const std::size_t params = in.count();
  if (params > StatusIndex::kMaxParams) in.fail("are of more parameters than can be");
  std::vector<ParamState> statuses(params);
  for (ParamState& param : statuses) {
    const auto code = static_cast<std::uint8_t>(in.varint());
    param.status = ev::held_status_of(code);
    param.cause = ev::cause_of(code);
  }
  std::int64_t last = 0;
  for (ParamState& param : statuses) {
    param.since_ns = StatusIndex::kNever;
    if (in.varint() == 0) continue;
    // Relative to the last parameter that has a time; the sum is checked, because differences may add up to
    // anything.
    param.since_ns = last = in.after(last, in.number());
  }
  std::uint32_t before = 0;
  for (ParamState& param : statuses) {
    // Modulo 2^32, so that kNoId is a neighbour of 0.
    param.module = before += static_cast<std::uint32_t>(in.number());
  }
  before = 0;
  for (ParamState& param : statuses) {
    param.gather = before += static_cast<std::uint32_t>(in.number());
  }
  return statuses;
}

}  // namespace

/// u8 version; varint lanes; for each lane varint depths and a level of detail for each; that of the waits.
/// Base 0: the only times of a page are those of its levels of detail, which store their own base.
std::vector<std::byte> encode_page(const RankState& state) {
  std::vector<std::byte> bytes;
  BlockWriter out(bytes, 0);
  out.fixed(kPageVersion);
  out.varint(ev::kStreamCount);
  for (const Lane& lane : state.lanes()) {
    out.varint(lane.depth_count());
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d)
      lane.pyramid(d).encode(out, kFineBuckets, kPageSteps);
  }
  state.lane(ev::StreamId::compute).waits().encode(out, kFineBuckets, kPageSteps);
  return pack(bytes);
}

/// u8 version; varint n; then n codes, n since, n module, n gather, in the order of parameter ids.
std::vector<std::byte> encode_statuses(const RankState& state) {
  std::vector<std::byte> bytes;
  BlockWriter out(bytes, 0);
  out.fixed(kStatusesVersion);
  const std::vector<ParamState>& statuses = state.status().before();
  out.varint(statuses.size());
  // Column by column: consecutive values are similar.
  for (const ParamState& param : statuses) {
    out.varint(ev::status_code(param.status, param.cause));
  }
  std::int64_t last = 0;
  for (const ParamState& param : statuses) {
    // As a difference kNever would take up to ten bytes, and so would the step back from it; a flag
    // takes one.
    out.varint(param.since_ns == StatusIndex::kNever ? 0 : 1);
    if (param.since_ns == StatusIndex::kNever) continue;
    out.number(param.since_ns - last);
    last = param.since_ns;
  }
  std::uint32_t before = 0;
  for (const ParamState& param : statuses) {
    // The wrapped difference as a signed one: small steps back are short too.
    out.number(static_cast<std::int32_t>(param.module - before));
    before = param.module;
  }
  before = 0;
  for (const ParamState& param : statuses) {
    out.number(static_cast<std::int32_t>(param.gather - before));
    before = param.gather;
  }
  return pack(bytes);
}

/// `levels`: finest for a reader that computes the wider levels itself or needs none.
BlockPage decode_page(const std::byte* data, std::size_t size, DensityPyramid::Levels levels) {
  const std::vector<std::byte> bytes = unpack(data, size);
  BlockReader in(bytes.data(), bytes.size(), "page");
  in.version(kPageVersion);
  const std::size_t lanes = in.lane_count();
  BlockPage page;
  for (auto& lane : std::span(page.lanes).first(lanes)) {
    const std::size_t depths = in.count();
    if (depths > Lane::kMaxDepth) in.fail("has too many rows");
    for (std::size_t d = 0; d < depths; ++d) lane.push_back(DensityPyramid::decode(in, levels, kPageSteps));
  }
  page.waits = DensityPyramid::decode(in, levels, kPageSteps);
  if (in.left() != 0) in.fail("is followed by bytes that mean nothing");
  return page;
}

std::vector<ParamState> decode_statuses(const std::byte* data, std::size_t size) {
  const std::vector<std::byte> bytes = unpack(data, size);
  BlockReader in(bytes.data(), bytes.size(), "statuses");
  if (in.fixed<std::uint8_t>() != kStatusesVersion) in.fail("have a version that this program does not know");
  std::vector<ParamState> statuses = read_statuses(in);
  if (in.left() != 0) in.fail("are followed by bytes that mean nothing");
  return statuses;
}

}  // namespace shardscope::store
