// The Perfetto trace, read again by a small decoder of the wire format.
#include "app/export/perfetto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tests/app/analysis/run_builder.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;

/// One decoded message: by field, its values (numbers, or bytes of strings and messages).
struct Message {
  std::multimap<unsigned, std::uint64_t> numbers;
  std::multimap<unsigned, std::string> texts;
  [[nodiscard]] std::uint64_t number(unsigned field) const {
    const auto at = numbers.find(field);
    return at == numbers.end() ? 0 : at->second;
  }
  [[nodiscard]] bool has(unsigned field) const { return texts.count(field) > 0; }
  [[nodiscard]] std::string text(unsigned field) const { return has(field) ? texts.find(field)->second : ""; }
};

std::uint64_t varint(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at >= bytes.size()) throw std::runtime_error("ends within a number");
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("number too long");
}

Message decode(const std::string& bytes) {
  Message message;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t key = varint(bytes, at);
    const auto field = static_cast<unsigned>(key >> 3);
    switch (key & 7U) {
      case 0:
        message.numbers.emplace(field, varint(bytes, at));
        break;
      case 1: {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 8; ++i)
          value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(at++))) << (8 * i);
        message.numbers.emplace(field, value);
        break;
      }
      case 2: {
        const std::uint64_t size = varint(bytes, at);
        if (at + size > bytes.size()) throw std::runtime_error("ends within a field");
        message.texts.emplace(field, bytes.substr(at, size));
        at += size;
        break;
      }
      default:
        throw std::runtime_error("unknown wire type");
    }
  }
  return message;
}

std::vector<Message> packets(const store::Store& store, const ExportPart& part = {}) {
  std::ostringstream out;
  write_perfetto(out, store, part);
  std::vector<Message> all;
  const Message trace = decode(out.str());
  for (const auto& [field, bytes] : trace.texts) {
    EXPECT_EQ(field, 1U);
    all.push_back(decode(bytes));
  }
  return all;
}

TEST(Perfetto, TracksAreDescribedBeforeTheyAreUsed) {
  std::set<std::uint64_t> described;
  std::size_t events = 0;
  for (const Message& packet : packets(store::make_synthetic_store())) {
    EXPECT_EQ(packet.number(10), 1U);  // trusted_packet_sequence_id on every packet
    if (packet.has(60)) {
      const Message track = decode(packet.text(60));
      EXPECT_NE(track.number(1), 0U);
      if (track.number(5) != 0) {
        EXPECT_EQ(described.count(track.number(5)), 1U);
      }
      described.insert(track.number(1));
    }
    if (!packet.has(11)) continue;
    ++events;
    EXPECT_EQ(packet.numbers.count(8), 1U);  // a timestamp
    EXPECT_EQ(described.count(decode(packet.text(11)).number(11)), 1U);
  }
  EXPECT_GT(events, 6000U);
}

TEST(Perfetto, SlicesPairNestAndAreNamed) {
  const store::Store store = store::make_synthetic_store();
  std::map<std::uint64_t, std::vector<std::uint64_t>> open;  // begins by track
  std::map<std::uint64_t, std::uint64_t> last;
  std::map<std::uint64_t, std::string> names;
  std::set<std::string> used;
  std::size_t begins = 0;
  bool first = true;
  for (const Message& packet : packets(store)) {
    if (!packet.has(11)) continue;
    EXPECT_EQ(packet.number(13), first ? 1U : 2U);
    first = false;
    if (packet.has(12)) {
      const Message name = decode(decode(packet.text(12)).text(2));
      names[name.number(1)] = name.text(2);
    }
    const Message event = decode(packet.text(11));
    const std::uint64_t track = event.number(11);
    if (event.number(9) > 2) continue;
    EXPECT_GE(packet.number(8), last[track]);  // in order on each track
    last[track] = packet.number(8);
    if (event.number(9) == 1) {
      ++begins;
      open[track].push_back(packet.number(8));
      ASSERT_EQ(names.count(event.number(10)), 1U);  // interned before use
      used.insert(names[event.number(10)]);
    } else {
      ASSERT_FALSE(open[track].empty());
      open[track].pop_back();
    }
  }
  for (const auto& [track, stack] : open) EXPECT_TRUE(stack.empty()) << track;
  std::size_t spans = 0;
  for (const store::LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) spans += store.spans(lane, d).size();
  }
  EXPECT_EQ(begins, spans);
  EXPECT_EQ(used.count("transformer.h.0.attn.c_attn"), 1U);
  EXPECT_EQ(used.count("all_gather"), 1U);
}

TEST(Perfetto, EveryFlowThatEndsHasBegun) {
  std::set<std::uint64_t> begun, ended;
  for (const Message& packet : packets(store::make_synthetic_store())) {
    if (!packet.has(11)) continue;
    const Message event = decode(packet.text(11));
    for (auto [at, end] = event.numbers.equal_range(47); at != end; ++at) begun.insert(at->second);
    for (auto [at, end] = event.numbers.equal_range(48); at != end; ++at) ended.insert(at->second);
  }
  EXPECT_EQ(begun, ended);
  EXPECT_GT(begun.size(), 100U);
}

TEST(Perfetto, LossIsACounter) {
  const store::Store store = store::make_synthetic_store();
  std::vector<double> values;
  for (const Message& packet : packets(store)) {
    if (!packet.has(11)) continue;
    const Message event = decode(packet.text(11));
    if (event.number(11) == 1) values.push_back(std::bit_cast<double>(event.number(44)));
  }
  ASSERT_EQ(values.size(), store.steps().size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], store.steps()[i].loss);
}

TEST(Perfetto, SampledCountersHaveATrackWithTheirUnit) {
  test::RunBuilder run(1);
  for (const std::int64_t second : {1, 2})
    run.instant(0, second * 1'000'000'000, ev::EventKind::counter, ev::StreamId::host, 7, 8, ev::kNoId, 0,
                std::bit_cast<std::int64_t>(0.5 * static_cast<double>(second)));
  store::Store& store = run.build();
  store.add_name(0, 7, "reward");
  store.add_name(0, 8, "points");
  std::uint64_t track = 0;
  std::vector<double> values;
  for (const Message& packet : packets(store)) {
    if (packet.has(60)) {
      const Message described = decode(packet.text(60));
      if (described.text(2) != "reward") continue;
      track = described.number(1);
      EXPECT_EQ(decode(described.text(8)).text(6), "points");
    }
    if (!packet.has(11)) continue;
    const Message event = decode(packet.text(11));
    if (track != 0 && event.number(11) == track) values.push_back(std::bit_cast<double>(event.number(44)));
  }
  EXPECT_EQ(values, (std::vector<double>{0.5, 1}));
}

/// A slice as a reader has it: track, begin, end.
using Slice = std::tuple<std::uint64_t, std::int64_t, std::int64_t>;

struct Read {
  std::multiset<Slice> slices;
  std::set<std::string> categories;
  std::map<std::uint64_t, std::int64_t> first_value, first_at;  ///< of counters of integers, by track
  std::set<std::uint64_t> tracks;                               ///< that are described
};

Read read(const store::Store& store, const ExportPart& part) {
  Read out;
  std::map<std::uint64_t, std::vector<std::int64_t>> open;
  for (const Message& packet : packets(store, part)) {
    if (packet.has(60)) out.tracks.insert(decode(packet.text(60)).number(1));
    if (!packet.has(11)) continue;
    const Message event = decode(packet.text(11));
    const std::uint64_t track = event.number(11);
    const auto at = static_cast<std::int64_t>(packet.number(8));
    if (event.number(9) == 1) {
      open[track].push_back(at);
      out.categories.insert(event.text(22));
    } else if (event.number(9) == 2) {
      out.slices.emplace(track, open[track].back(), at);
      open[track].pop_back();
    } else if (event.number(9) == 4 && event.numbers.contains(30)) {
      out.first_value.try_emplace(track, static_cast<std::int64_t>(event.number(30)));
      out.first_at.try_emplace(track, at);
    }
  }
  return out;
}

TEST(Perfetto, ARangeIsWhatOverlapsItOfTheWhole) {
  const store::Store store = store::make_synthetic_store();
  const std::int64_t from = store.end_ns() / 3, to = store.end_ns() / 2;
  const Read whole = read(store, {}), part = read(store, {.ranks = {1, 3}, .range = {from, to}});
  std::multiset<Slice> expected;
  for (const Slice& slice : whole.slices) {
    const auto& [track, begin, end] = slice;
    const std::uint64_t rank = (track >> 16) - 1;
    if ((rank == 1 || rank == 3) && begin < to && (end > from || begin >= from)) expected.insert(slice);
  }
  EXPECT_EQ(part.slices, expected);
  EXPECT_GT(std::ranges::count_if(expected, [&](const Slice& s) { return std::get<1>(s) < from; }), 1)
      << "whole, not cut";
  for (const std::uint64_t track : part.tracks) {
    if (track >= 1U << 16) {
      EXPECT_TRUE((track >> 16) == 2 || (track >> 16) == 4) << track;
    }
  }
  // What is in use when the range begins: a counter of each category.
  std::int64_t sum = 0;
  for (const auto& [track, at] : part.first_at) {
    if (at != from || track >> 16 != 2 || (track & 0xFFFFU) >= 256 + 32) continue;
    sum += part.first_value.at(track);
  }
  EXPECT_EQ(sum, store.memory_at(1, ev::MemoryPool::device, from).total());
  EXPECT_GT(sum, 0);
}

TEST(Perfetto, ALevelLeavesOutWhatIsFiner) {
  const store::Store store = store::make_synthetic_store();
  const Read whole = read(store, {}), part = read(store, {.detail = ev::Detail::phases});
  EXPECT_TRUE(whole.categories.contains("module_begin"));
  EXPECT_TRUE(part.categories.contains("step_begin"));
  EXPECT_TRUE(part.categories.contains("phase_begin"));
  EXPECT_FALSE(part.categories.contains("module_begin"));
  EXPECT_FALSE(part.categories.contains("collective_begin"));
  EXPECT_TRUE(part.first_value.empty()) << "memory is of the level params";
  EXPECT_FALSE(whole.first_value.empty());
}

/// Arguments of a slice or instant by name: numbers in decimals, texts as they are.
using Arguments = std::map<std::string, std::string>;
Arguments arguments_of(const Message& event) {
  Arguments out;
  for (auto [at, end] = event.texts.equal_range(4); at != end; ++at) {
    const Message annotation = decode(at->second);
    const bool number = annotation.numbers.contains(4);
    const bool added = out.emplace(annotation.text(10),
                                   number ? std::to_string(static_cast<std::int64_t>(annotation.number(4)))
                                          : annotation.text(6))
                           .second;
    EXPECT_TRUE(added) << annotation.text(10);
  }
  return out;
}

/// Of each collective of a rank what the parameters belong to that it moves: "h.0.attn.c_attn, h.0.mlp.c_fc
/// and 2 more".
std::map<std::uint32_t, std::string> moved_for(const store::Store& store, std::uint32_t rank) {
  std::map<std::uint32_t, std::vector<std::string>> paths;
  store.for_each_instant(rank, 0, store::Store::kEnd, [&](const ev::Event& event) {
    if (event.kind != ev::EventKind::collective_part) return;
    std::string path = store.tables().modules.at(store.tables().params.at(event.b).modules.front()).path;
    if (std::ranges::count(path, '.') > 1) path = path.substr(path.find('.') + 1);  // the model's own name
    auto& all = paths[event.a];
    if (std::ranges::find(all, path) == all.end()) all.push_back(path);
  });
  std::map<std::uint32_t, std::string> out;
  for (const auto& [sequence, all] : paths) {
    out[sequence] = all.front() + (all.size() > 1 ? ", " + all[1] : "") +
                    (all.size() > 2 ? " and " + std::to_string(all.size() - 2) + " more" : "");
  }
  return out;
}

/// What the store has of a span, by the fields of its record as the C interface documents them
/// (docs/events.md), not by the accessors that the export uses.
Arguments arguments_in_store(const store::Span& span, const std::map<std::uint32_t, std::string>& moved) {
  Arguments out;
  if (span.kind == ev::EventKind::collective_begin) {
    out = {{"sequence", std::to_string(span.a)},
           {"elems", std::to_string(span.v0)},
           {"bytes", std::to_string(span.v1)}};
    if (span.mark_ns != 0) out["all_ranks_arrived_ns"] = std::to_string(span.mark_ns);
    if (moved.contains(span.a)) out["holds"] = moved.at(span.a);
  } else if (span.kind == ev::EventKind::fetch_wait_begin) {
    if (span.b != ev::kNoId) out["gather"] = std::to_string(span.b);
    out["bytes"] = std::to_string(span.v0);
  } else if (span.kind == ev::EventKind::reduce_wait_begin) {
    if (span.a != ev::kNoId) out["bucket"] = std::to_string(span.a);
    out["bytes"] = std::to_string(span.v0);
  } else if (span.kind == ev::EventKind::transfer_begin) {
    out["bytes"] = std::to_string(span.v0);
  } else if (span.kind == ev::EventKind::module_begin) {
    out["pass"] = span.code == 0 ? "forward" : span.code == 1 ? "backward" : "recompute";
    out["module"] = std::to_string(span.a);
  }
  return out;
}

TEST(Perfetto, ArgumentsOfEverySliceAreThoseOfItsRecord) {
  const store::Store store = store::make_synthetic_store();
  std::map<std::tuple<std::uint64_t, std::int64_t, std::string>, std::multiset<Arguments>> written, recorded;
  std::size_t named = 0;
  for (const Message& packet : packets(store)) {
    if (!packet.has(11)) continue;
    const Message event = decode(packet.text(11));
    if (event.number(9) != 1) continue;
    Arguments arguments = arguments_of(event);
    named += arguments.count("holds");
    written[{event.number(11), static_cast<std::int64_t>(packet.number(8)), event.text(22)}].insert(
        arguments);
  }
  std::map<std::string, std::size_t> seen;
  for (const store::LaneId lane : store.lanes()) {
    const auto moved = moved_for(store, lane.rank);
    const std::uint64_t track =
        (std::uint64_t{lane.rank} + 1) * 65536 + 1 + static_cast<std::uint64_t>(lane.stream);
    for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth) {
      for (const store::Span& span : store.spans(lane, depth)) {
        ++seen[ev::name_of(span.kind)];
        Arguments arguments = arguments_in_store(span, moved);
        if (span.end_ns == store::kOpen) arguments["not_ended"] = "";
        recorded[{track, span.begin_ns, ev::name_of(span.kind)}].insert(arguments);
      }
    }
  }
  EXPECT_EQ(written, recorded);
  EXPECT_GT(seen["collective_begin"], 100U);
  EXPECT_GT(seen["fetch_wait_begin"], 100U);
  EXPECT_GT(seen["module_begin"], 100U);
  EXPECT_GT(named, 100U);
}

TEST(Perfetto, InstantsAreOnTheTracksOfTheirStreams) {
  test::RunBuilder run(1);
  run.span(0, 0, 100, ev::EventKind::step_begin, ev::StreamId::host, 0);
  run.instant(0, 10, ev::EventKind::prefetch_issued, ev::StreamId::host, 5, 1, 2, 0, 4000);
  run.instant(0, 20, ev::EventKind::collective_submitted, ev::StreamId::host, 7, 5, 1, test::kGatherOp, 4000,
              16000);
  run.instant(0, 30, ev::EventKind::prefetch_outcome, ev::StreamId::compute, 5, 1, 2, 0, 300, 200);
  run.instant(0, 40, ev::EventKind::bucket_flush, ev::StreamId::host, 3, ev::kNoId, 9, 0, 123);
  run.instant(0, 50, ev::EventKind::tokens, ev::StreamId::host, 0);  // no mark
  std::map<std::uint64_t, std::string> names;
  std::vector<std::tuple<std::int64_t, std::uint64_t, std::string, std::string, Arguments>> read;
  for (const Message& packet : packets(run.build())) {
    if (packet.has(12)) {
      const Message name = decode(decode(packet.text(12)).text(2));
      names[name.number(1)] = name.text(2);
    }
    if (!packet.has(11)) continue;
    const Message event = decode(packet.text(11));
    if (event.number(9) != 3) continue;
    read.emplace_back(packet.number(8), event.number(11), names.at(event.number(10)), event.text(22),
                      arguments_of(event));
  }
  constexpr std::uint64_t kHost = 65536 + 1, kCompute = kHost + 1;
  const decltype(read) expected{
      {10,
       kHost,
       "prefetch 5 issued",
       "prefetch_issued",
       {{"gather", "5"}, {"at_module", "1"}, {"elems", "4000"}}},
      {20, kHost, "submit all_gather", "collective_submitted", {{"correlation", "7"}}},
      {30,
       kCompute,
       "prefetch early",
       "prefetch_outcome",
       {{"gather", "5"}, {"slack_ns", "300"}, {"gather_ns", "200"}}},
      {40,
       kHost,
       "bucket_flush",
       "bucket_flush",
       {{"reason", "0"}, {"bucket", "3"}, {"params", "9"}, {"elems", "123"}}}};
  EXPECT_EQ(read, expected);
}

TEST(Perfetto, ABucketsReductionLeadsToTheWaitForIt) {
  test::RunBuilder run(1);
  run.span(0, 0, 2000, ev::EventKind::step_begin, ev::StreamId::host, 0);
  // Two buckets of one number: each wait is for the reduction that had begun.
  for (const std::int64_t at : {0, 1000}) {
    run.span(0, at + 100, at + 300, ev::EventKind::collective_begin, ev::StreamId::reduce,
             static_cast<std::uint32_t>(at + 1), 4, 1);
    run.span(0, at + 200, at + 310, ev::EventKind::reduce_wait_begin, ev::StreamId::compute, 4, ev::kNoId, 0,
             64);
  }
  // At the same time a gather of that number begins, for which nothing waits.
  run.span(0, 100, 300, ev::EventKind::collective_begin, ev::StreamId::gather, 9, 4, test::kGatherOp);
  std::map<std::uint64_t, std::int64_t> from, to;
  for (const Message& packet : packets(run.build())) {
    if (!packet.has(11)) continue;
    const Message event = decode(packet.text(11));
    const auto at = static_cast<std::int64_t>(packet.number(8));
    for (auto [flow, end] = event.numbers.equal_range(47); flow != end; ++flow) {
      EXPECT_EQ(event.number(11), 65536U + 1 + static_cast<std::uint64_t>(ev::StreamId::reduce));
      from[flow->second] = at;
    }
    for (auto [flow, end] = event.numbers.equal_range(48); flow != end; ++flow) to[flow->second] = at;
  }
  std::map<std::int64_t, std::int64_t> arrows;
  for (const auto& [id, at] : from) arrows[at] = to.at(id);
  EXPECT_EQ(arrows, (std::map<std::int64_t, std::int64_t>{{100, 200}, {1100, 1200}}));
}

}  // namespace
}  // namespace shardscope::exporter
