// A block's keyframe: spans, memory and buckets that are open at the block's begin.
#include <span>

#include "app/store/block_sections.h"

namespace shardscope::store {
namespace {

/// varint kind, code; time begin, end; varint 0, or 1 and time mark; id a, b, c; number v0, v1.
void write_span(BlockWriter& out, const Span& span) {
  out.varint(static_cast<std::uint64_t>(span.kind));
  out.varint(span.code);
  out.time(span.begin_ns);
  out.time(span.end_ns);
  // mark_ns: when every rank had entered; 0: none.
  out.varint(span.mark_ns == 0 ? 0 : 1);
  if (span.mark_ns != 0) out.time(span.mark_ns);
  out.id(span.a);
  out.id(span.b);
  out.id(span.c);
  out.number(span.v0);
  out.number(span.v1);
}

Span read_span(BlockReader& in, std::uint8_t depth) {
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

/// Skips one span.
/// In step with read_span(): its times are read and checked, the rest is skipped.
void skip_span(BlockReader& in) {
  in.skip(2);
  (void)in.time();
  (void)in.time();
  if (in.varint() != 0) (void)in.time();
  in.skip(5);
}

}  // namespace

/// For each lane: time last; varint n; n times (span, time certain). For each pool: varint 0, or 1, time and
/// kMemoryCategoryCount numbers. Varint n; n times (id bucket, buffer; time since; number elems; varint m;
/// m ids). docs/recording.md, "Blocks", 1.
void write_keyframe(BlockWriter& out, const RankKeyframe& keyframe) {
  for (const Lane::Keyframe& lane : keyframe.lanes) {
    out.time(lane.last_ns);
    out.varint(lane.open.size());
    // Outermost first; the depth is the index in the list and is not stored.
    for (const Lane::Open& open : lane.open) {
      write_span(out, open.span);
      // The last instant before a gap at which the span was certainly open; never if there is none.
      out.time(open.certain_ns);
    }
  }
  // Every pool is written: no number of pools is stored.
  for (const MemoryIndex::Keyframe& pool : keyframe.memory) {
    out.varint(pool.any ? 1 : 0);
    if (!pool.any) continue;
    out.time(pool.at_ns);
    write_categories(out, pool.bytes);
  }
  out.varint(keyframe.buckets.size());
  // Open gradient buckets with their parameters so far.
  for (const BucketState& bucket : keyframe.buckets) {
    out.id(bucket.bucket);
    out.id(bucket.buffer);
    out.time(bucket.since_ns);
    out.number(bucket.elems);
    out.varint(bucket.params.size());
    for (const std::uint32_t param : bucket.params) out.id(param);
  }
}

RankKeyframe read_keyframe(BlockReader& in, std::size_t lanes) {
  in.now_reading("keyframe");
  RankKeyframe out;
  for (Lane::Keyframe& lane : std::span(out.lanes).first(lanes)) {
    lane.last_ns = in.time();
    const std::size_t open = in.count();
    if (open > Lane::kMaxDepth) in.fail("has too many open spans");
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
    pool.bytes = read_categories(in);
  }
  const std::size_t buckets = in.count();
  for (std::size_t b = 0; b < buckets; ++b) {
    // One by one: a bucket takes more memory than its encoding, and a wrong number must not allocate it all
    // at once.
    BucketState& bucket = out.buckets.emplace_back();
    bucket.bucket = in.id();
    bucket.buffer = in.id();
    bucket.since_ns = in.time();
    bucket.elems = in.number();
    // count() is at most the remaining bytes: a damaged count allocates at most four bytes for each of
    // them.
    bucket.params.resize(in.count());
    for (std::uint32_t& param : bucket.params) param = in.id();
  }
  return out;
}

/// As read_keyframe().
void skip_keyframe(BlockReader& in, std::size_t lanes) {
  in.now_reading("keyframe");
  // In step with read_keyframe(), call for call: rejects the same input.
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    (void)in.time();
    const std::size_t open = in.count();
    if (open > Lane::kMaxDepth) in.fail("has too many open spans");
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
    // Parameter ids are any 32 bits, so there is nothing to check.
    in.skip(in.count());
  }
}

}  // namespace shardscope::store
