#include "app/store/block_codec.h"

#include <span>
#include <stdexcept>

#include "app/store/bytes.h"
#include "app/store/packed.h"
#include "instrumentation/possible_time.h"

namespace shardscope::store {
namespace {

/// 2: says how many lanes it holds.
constexpr std::uint8_t kBlockVersion = 2;
/// 2: says how many lanes it holds, and does not end with the statuses. 3: shares in fewer steps.
constexpr std::uint8_t kPageVersion = 3;
constexpr std::uint32_t kPageSteps = 255;
constexpr std::uint8_t kStatusesVersion = 1;
constexpr std::size_t kFineBuckets = std::size_t{1} << 16;
constexpr std::size_t kMaxDepth = 64;

/// Times near another one; a few values have a meaning of their own.
class Writer : public ByteWriter {
 public:
  Writer(std::vector<std::byte>& out, std::int64_t base_ns) : ByteWriter(out), base_ns_(base_ns) {}
  void time(std::int64_t ns) {
    if (ns == Lane::kNever) return varint(0);
    if (ns == kOpen) return varint(1);
    // Times are below 2^62, so that neither the difference nor the sum overflows.
    varint(zigzag(ns - base_ns_) + 2);
  }
  void id(std::uint32_t value) { varint(value + 1U); }  // kNoId becomes 0
  void number(std::int64_t value) { varint(zigzag(value)); }

 private:
  std::int64_t base_ns_;
};

class Reader : public ByteReader {
 public:
  using ByteReader::ByteReader;
  void set_base(std::int64_t ns) { base_ns_ = ns; }
  std::int64_t time() {
    const std::uint64_t value = varint();
    if (value == 0) return Lane::kNever;
    if (value == 1) return kOpen;
    return after(base_ns_, unzigzag(value - 2));
  }
  /// Refuses what is beyond the times that are written, which differences of times could not hold.
  std::int64_t after(std::int64_t base_ns, std::int64_t ns) {
    const auto sum =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(base_ns) + static_cast<std::uint64_t>(ns));
    if (!instrumentation::is_time(sum)) fail("has a time that cannot be");
    return sum;
  }
  std::uint32_t id() { return static_cast<std::uint32_t>(varint()) - 1U; }
  std::int64_t number() { return unzigzag(varint()); }
  template <typename T>
  T small() {
    return static_cast<T>(varint());
  }
  /// As so many time() or other integers, which are not wanted.
  void skip(std::size_t count) {
    varints(count, [](std::uint64_t) {});
  }
  /// A number of things of at least a byte each.
  std::size_t count() {
    const std::uint64_t value = varint();
    if (value > left()) fail("names more than it holds");
    return value;
  }

 private:
  std::int64_t base_ns_ = 0;
};

void write(Writer& out, const Span& span) {
  out.varint(static_cast<std::uint64_t>(span.kind));
  out.varint(span.code);
  out.time(span.begin_ns);
  out.time(span.end_ns);
  out.varint(span.mark_ns == 0 ? 0 : 1);
  if (span.mark_ns != 0) out.time(span.mark_ns);
  out.id(span.a);
  out.id(span.b);
  out.id(span.c);
  out.number(span.v0);
  out.number(span.v1);
}

Span read_span(Reader& in, std::uint8_t depth) {
  Span span;
  span.depth = depth;
  span.kind = in.small<ev::EventKind>();
  span.code = in.small<std::uint8_t>();
  span.begin_ns = in.time();
  span.end_ns = in.time();
  if (in.varint() != 0) span.mark_ns = in.time();
  span.a = in.id();
  span.b = in.id();
  span.c = in.id();
  span.v0 = in.number();
  span.v1 = in.number();
  return span;
}

/// As read_span().
void skip_span(Reader& in) {
  in.skip(2);
  (void)in.time();
  (void)in.time();
  if (in.varint() != 0) (void)in.time();
  in.skip(5);
}

void write(Writer& out, const CategoryBytes& bytes) {
  for (const std::int64_t value : bytes) out.number(value);
}

CategoryBytes read_bytes(Reader& in) {
  CategoryBytes out;
  for (std::int64_t& value : out) value = in.number();
  return out;
}

void read_version(Reader& in, std::uint8_t known) {
  if (in.fixed<std::uint8_t>() != known) in.fail("has a version that this program does not know");
}

/// Reads the number of lanes. A later program's further lanes cannot be shown by this one.
std::size_t read_lane_count(Reader& in) {
  const std::uint64_t lanes = in.varint();
  if (lanes > ev::kStreamCount) in.fail("has lanes that this program does not know");
  return lanes;
}

void write(Writer& out, const RankKeyframe& keyframe) {
  for (const Lane::Keyframe& lane : keyframe.lanes) {
    out.time(lane.last_ns);
    out.varint(lane.open.size());
    for (const Lane::Open& open : lane.open) {
      write(out, open.span);
      out.time(open.certain_ns);
    }
  }
  for (const MemoryIndex::Keyframe& pool : keyframe.memory) {
    out.varint(pool.any ? 1 : 0);
    if (!pool.any) continue;
    out.time(pool.at_ns);
    write(out, pool.bytes);
  }
  out.varint(keyframe.buckets.size());
  for (const BucketState& bucket : keyframe.buckets) {
    out.id(bucket.bucket);
    out.id(bucket.buffer);
    out.time(bucket.since_ns);
    out.number(bucket.elems);
    out.varint(bucket.params.size());
    for (const std::uint32_t param : bucket.params) out.id(param);
  }
}

RankKeyframe read_keyframe(Reader& in, std::size_t lanes) {
  in.now_reading("keyframe");
  RankKeyframe out;
  for (Lane::Keyframe& lane : std::span(out.lanes).first(lanes)) {
    lane.last_ns = in.time();
    const std::size_t open = in.count();
    if (open > kMaxDepth) in.fail("has too many open spans");
    for (std::size_t d = 0; d < open; ++d) {
      Lane::Open& span = lane.open.emplace_back();
      span.span = read_span(in, static_cast<std::uint8_t>(d));
      span.certain_ns = in.time();
    }
  }
  for (MemoryIndex::Keyframe& pool : out.memory) {
    pool.any = in.varint() != 0;
    if (!pool.any) continue;
    pool.at_ns = in.time();
    pool.bytes = read_bytes(in);
  }
  const std::size_t buckets = in.count();
  for (std::size_t b = 0; b < buckets; ++b) {
    BucketState& bucket = out.buckets.emplace_back();
    bucket.bucket = in.id();
    bucket.buffer = in.id();
    bucket.since_ns = in.time();
    bucket.elems = in.number();
    bucket.params.resize(in.count());
    for (std::uint32_t& param : bucket.params) param = in.id();
  }
  return out;
}

/// As read_keyframe().
void skip_keyframe(Reader& in, std::size_t lanes) {
  in.now_reading("keyframe");
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    (void)in.time();
    const std::size_t open = in.count();
    if (open > kMaxDepth) in.fail("has too many open spans");
    for (std::size_t d = 0; d < open; ++d) {
      skip_span(in);
      (void)in.time();
    }
  }
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
    if (in.varint() == 0) continue;
    (void)in.time();
    in.skip(ev::kMemoryCategoryCount);
  }
  const std::size_t buckets = in.count();
  for (std::size_t b = 0; b < buckets; ++b) {
    in.skip(2);
    (void)in.time();
    in.skip(1);
    in.skip(in.count());
  }
}

void write(Writer& out, const MemorySample& sample) {
  out.time(sample.at_ns);
  write(out, sample.bytes);
}

MemorySample read_sample(Reader& in) {
  MemorySample out;
  out.at_ns = in.time();
  out.bytes = read_bytes(in);
  return out;
}

void write_memory(Writer& out, const Block& block) {
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
    const BlockMemory& pool = block.memory[p];
    out.varint(pool.changes);
    if (pool.changes == 0) continue;
    write(out, block.peaks[p].all);
    write(out, block.peaks[p].model_state);
    out.varint(pool.leaves.size());
    for (const MemoryIndex::Leaf& leaf : pool.leaves) {
      out.time(leaf.begin_ns);
      write(out, leaf.highest);
    }
    out.varint(block.corrections[p].size());
    for (const MemoryIndex::Change& change : block.corrections[p]) {
      out.time(change.at_ns);
      out.number(change.delta);
      out.number(change.after);
      out.varint(static_cast<std::uint64_t>(change.category));
    }
  }
}

void read_memory(Reader& in, Block& block) {
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
      change.category = static_cast<ev::MemoryCategory>(in.varint() % ev::kMemoryCategoryCount);
    }
  }
}

/// As read_memory(), without what lies between the peaks.
void read_peaks(Reader& in, BlockHead& head) {
  in.now_reading("memory");
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
    head.has_memory[p] = in.small<std::uint32_t>() != 0;
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

void write_sums(Writer& out, const Block& block) {
  out.varint(block.counts.size());
  for (const InstantCount& count : block.counts) {
    out.varint(static_cast<std::uint64_t>(count.kind));
    out.varint(count.code);
    out.varint(count.count);
  }
  out.varint(block.gates);
  out.varint(block.carried.size());
  for (const Block::Carried& carried : block.carried) {
    out.varint(carried.stream);
    out.varint(carried.depth);
    out.time(carried.end_ns);
    out.varint(carried.mark_ns == 0 ? 0 : 1);
    if (carried.mark_ns != 0) out.time(carried.mark_ns);
  }
  out.varint(block.totals.size());
  for (const SpanTotal& total : block.totals) {
    out.varint(static_cast<std::uint64_t>(total.lane.stream));
    out.varint(static_cast<std::uint64_t>(total.kind));
    out.varint(total.code);
    for (const std::int64_t value : {total.count, total.total_ns, total.min_ns, total.max_ns})
      out.number(value);
  }
  out.varint(block.notable.size());
  for (const ev::Event& event : block.notable) {
    out.time(static_cast<std::int64_t>(event.ticks));
    out.varint(static_cast<std::uint64_t>(event.kind));
    out.varint(event.code);
    out.id(event.a);
    out.fixed(event.v0);
  }
}

void read_carried(Reader& in, Block::Carried& carried) {
  carried.stream = in.small<std::uint8_t>();
  carried.depth = in.small<std::uint8_t>();
  carried.end_ns = in.time();
  if (in.varint() != 0) carried.mark_ns = in.time();
  if (carried.stream >= ev::kStreamCount) in.fail("names a lane that is not there");
}

std::vector<Block::Carried>* carried_of(Block& block) { return &block.carried; }
std::vector<Block::Carried>* carried_of(BlockHead&) { return nullptr; }

/// Of a Block or a BlockHead.
template <typename Sums>
void read_sums(Reader& in, Sums& block) {
  in.now_reading("sums");
  block.counts.resize(in.count());
  for (InstantCount& count : block.counts) {
    count.kind = in.small<ev::EventKind>();
    count.code = in.small<std::uint8_t>();
    count.count = in.small<std::uint32_t>();
  }
  block.gates = in.small<std::uint32_t>();
  const std::size_t carried = in.count();
  for (std::size_t i = 0; i < carried; ++i) {
    Block::Carried one;
    read_carried(in, one);
    if (auto* const all = carried_of(block)) all->push_back(one);
  }
  block.totals.resize(in.count());
  for (SpanTotal& total : block.totals) {
    total.lane = {block.rank, in.small<ev::StreamId>()};
    total.kind = in.small<ev::EventKind>();
    total.code = in.small<std::uint8_t>();
    for (std::int64_t* value : {&total.count, &total.total_ns, &total.min_ns, &total.max_ns}) {
      *value = in.number();
    }
  }
  block.notable.resize(in.count());
  for (ev::Event& event : block.notable) {
    event.ticks = static_cast<std::uint64_t>(in.time());
    event.kind = in.small<ev::EventKind>();
    event.code = in.small<std::uint8_t>();
    event.a = in.id();
    event.v0 = in.fixed<std::int64_t>();
  }
}

std::vector<ParamState> read_statuses(Reader& in) {
  in.now_reading("statuses");
  const std::size_t params = in.count();
  if (params > StatusIndex::kMaxParams) in.fail("are of more parameters than can be");
  std::vector<ParamState> statuses(params);
  for (ParamState& param : statuses) {
    const std::uint64_t code = in.varint();
    param.status = code & 0xFU;
    param.cause = static_cast<ev::StatusCause>(code >> 4 & 0xFU);
  }
  std::int64_t last = 0;
  for (ParamState& param : statuses) {
    param.since_ns = StatusIndex::kNever;
    if (in.varint() == 0) continue;
    param.since_ns = last = in.after(last, in.number());
  }
  std::uint32_t before = 0;
  for (ParamState& param : statuses) {
    param.module = before += static_cast<std::uint32_t>(in.number());
  }
  before = 0;
  for (ParamState& param : statuses) {
    param.gather = before += static_cast<std::uint32_t>(in.number());
  }
  return statuses;
}

}  // namespace

DensityPyramid coarse(const DensityPyramid& fine) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  fine.encode(writer, kBlockBuckets);
  ByteReader reader(bytes.data(), bytes.size(), "level of detail");
  return DensityPyramid::decode(reader, DensityPyramid::Levels::finest);
}

std::vector<std::byte> encode_page(const RankState& state) {
  std::vector<std::byte> bytes;
  Writer out(bytes, 0);
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

std::vector<std::byte> encode_statuses(const RankState& state) {
  std::vector<std::byte> bytes;
  Writer out(bytes, 0);
  out.fixed(kStatusesVersion);
  const std::vector<ParamState>& statuses = state.status().before();
  out.varint(statuses.size());
  // Column by column: neighbours resemble each other.
  for (const ParamState& param : statuses) {
    out.varint(static_cast<std::uint64_t>(param.status) | static_cast<std::uint64_t>(param.cause) << 4);
  }
  std::int64_t last = 0;
  for (const ParamState& param : statuses) {
    out.varint(param.since_ns == StatusIndex::kNever ? 0 : 1);
    if (param.since_ns == StatusIndex::kNever) continue;
    out.number(param.since_ns - last);
    last = param.since_ns;
  }
  std::uint32_t before = 0;
  for (const ParamState& param : statuses) {
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

BlockPage decode_page(const std::byte* data, std::size_t size, DensityPyramid::Levels levels) {
  const std::vector<std::byte> bytes = unpack(data, size);
  Reader in(bytes.data(), bytes.size(), "page");
  read_version(in, kPageVersion);
  const std::size_t lanes = read_lane_count(in);
  BlockPage page;
  for (auto& lane : std::span(page.lanes).first(lanes)) {
    const std::size_t depths = in.count();
    if (depths > kMaxDepth) in.fail("has too many rows");
    for (std::size_t d = 0; d < depths; ++d) lane.push_back(DensityPyramid::decode(in, levels, kPageSteps));
  }
  page.waits = DensityPyramid::decode(in, levels, kPageSteps);
  if (in.left() != 0) in.fail("is followed by bytes that mean nothing");
  return page;
}

std::vector<ParamState> decode_statuses(const std::byte* data, std::size_t size) {
  const std::vector<std::byte> bytes = unpack(data, size);
  Reader in(bytes.data(), bytes.size(), "statuses");
  if (in.fixed<std::uint8_t>() != kStatusesVersion) in.fail("have a version that this program does not know");
  std::vector<ParamState> statuses = read_statuses(in);
  if (in.left() != 0) in.fail("are followed by bytes that mean nothing");
  return statuses;
}

std::vector<std::byte> encode_block(const Block& block) {
  std::vector<std::byte> bytes;
  Writer out(bytes, block.begin_ns);
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
  write(out, block.begin);
  for (const BlockLane& lane : block.lanes) {
    out.time(lane.end_ns);
    out.varint(lane.rows.size());
    for (const DensityPyramid& row : lane.rows) row.encode(out, kBlockBuckets);
    for (const std::uint8_t shift : lane.fine) out.varint(shift);
  }
  block.waits.encode(out, kBlockBuckets);
  write_memory(out, block);
  write_sums(out, block);
  return pack(bytes);
}

namespace {

void read_origin(Reader& in, BlockOrigin& block) {
  read_version(in, kBlockVersion);
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

Block decode_block(const std::byte* data, std::size_t size) {
  const std::vector<std::byte> bytes = unpack(data, size);
  Reader in(bytes.data(), bytes.size(), "block");
  Block block;
  read_origin(in, block);
  const std::size_t lanes = read_lane_count(in);
  block.begin = read_keyframe(in, lanes);
  for (BlockLane& lane : std::span(block.lanes).first(lanes)) {
    in.now_reading("lanes");
    lane.end_ns = in.time();
    const std::size_t depths = in.count();
    if (depths > kMaxDepth) in.fail("have too many rows");
    for (std::size_t d = 0; d < depths; ++d) {
      lane.rows.push_back(DensityPyramid::decode(in, DensityPyramid::Levels::finest));
    }
    for (std::size_t d = 0; d < depths; ++d) lane.fine.push_back(in.small<std::uint8_t>());
  }
  block.waits = DensityPyramid::decode(in, DensityPyramid::Levels::finest);
  read_memory(in, block);
  read_sums(in, block);
  if (in.left() != 0) in.fail("are followed by bytes that mean nothing");
  return block;
}

BlockHead decode_head(const std::byte* data, std::size_t size) {
  const std::vector<std::byte> bytes = unpack(data, size);
  Reader in(bytes.data(), bytes.size(), "block");
  BlockHead head;
  read_origin(in, head);
  const std::size_t lanes = read_lane_count(in);
  skip_keyframe(in, lanes);
  for (std::uint8_t& depth : std::span(head.depths).first(lanes)) {
    in.now_reading("lanes");
    (void)in.time();
    const std::size_t depths = in.count();
    if (depths > kMaxDepth) in.fail("have too many rows");
    for (std::size_t d = 0; d < depths; ++d) DensityPyramid::check(in);
    in.skip(depths);
    depth = static_cast<std::uint8_t>(depths);
  }
  DensityPyramid::check(in);
  read_peaks(in, head);
  read_sums(in, head);
  if (in.left() != 0) in.fail("are followed by bytes that mean nothing");
  return head;
}

}  // namespace shardscope::store
