// A block's sums: instants by kind, spans carried on from before it, totals of spans, notable events.
#include "app/store/block_sections.h"

namespace shardscope::store {
namespace {

/// stream is an index later: checked here.
void read_carried(BlockReader& in, Block::Carried& carried) {
  carried.stream = in.small<std::uint8_t>();
  carried.depth = in.small<std::uint8_t>();
  carried.end_ns = in.time();
  if (in.varint() != 0) carried.mark_ns = in.time();
  if (carried.stream >= ev::kStreamCount) in.fail("names a lane that is not there");
}

/// The type decides what a head leaves out: one function reads both, so both reject the same
/// input.
std::vector<Block::Carried>* carried_of(Block& block) { return &block.carried; }
std::vector<Block::Carried>* carried_of(BlockHead&) { return nullptr; }

/// `Sums`: Block or BlockHead.
template <typename Sums>
void read_sums_of(BlockReader& in, Sums& block) {
  in.now_reading("sums");
  // At most the remaining bytes: an element takes at least one.
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
    // Read in either case, to find the next list and to reject an unknown lane.
    if (auto* const all = carried_of(block)) all->push_back(one);
  }
  block.totals.resize(in.count());
  for (SpanTotal& total : block.totals) {
    // The rank is the block's and not stored with each.
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

}  // namespace

/// Each list after its varint count: counts (varint kind, code, count); then varint gates; carried (varint
/// stream, depth; time end; varint 0, or 1 and time mark); totals (varint stream, kind, code; number count,
/// total, shortest, longest, ns); notable (time; varint kind, code; id a; i64 v0). docs/recording.md,
/// "Blocks", 4.
void write_sums(BlockWriter& out, const Block& block) {
  out.varint(block.counts.size());
  for (const InstantCount& count : block.counts) {
    out.varint(static_cast<std::uint64_t>(count.kind));
    out.varint(count.code);
    out.varint(count.count);
  }
  out.varint(block.gates);
  // Spans that were open at the block's begin, with their end as known in this block.
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

void read_sums(BlockReader& in, Block& block) { read_sums_of(in, block); }
void read_sums(BlockReader& in, BlockHead& head) { read_sums_of(in, head); }

}  // namespace shardscope::store
