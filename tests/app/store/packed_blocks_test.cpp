// A rank that has sums shows its figures before its blocks are decoded, and the same of everything else as if
// they had been decoded at once: [Note: packed blocks] in rank_run.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "app/store/block_codec.h"
#include "app/store/block_sum.h"
#include "app/store/database.h"
#include "app/store/packed.h"
#include "app/store/rank_figures.h"
#include "app/store/recorded_run.h"
#include "tests/app/store/part_of_a_run.h"

namespace shardscope::store {
namespace {

std::ostream& operator<<(std::ostream& out, const MemorySample& sample) {
  out << sample.at_ns << ':';
  for (const std::int64_t bytes : sample.bytes) out << bytes << ',';
  return out << ' ';
}

std::ostream& operator<<(std::ostream& out, const Gap& gap) {
  return out << gap.rank << ' ' << gap.begin_ns << ' ' << gap.end_ns << ' ' << gap.events << ' ' << gap.shed
             << ' ' << gap.messages << ' ' << gap.not_kept << gap.damaged << gap.cut_off << ' '
             << gap.stretches << '\n';
}

/// What is there without looking at a rank.
std::string figures_of(const Store& store) {
  std::ostringstream out;
  out << store.event_count() << ' ' << store.dropped_count() << ' ' << store.origin_ns() << ' '
      << store.end_ns() << ' ' << store.not_kept().events << ' ' << store.not_kept().until_ns << ' '
      << store.steps().size() << ' ' << store.moments().size() << ' '
      << static_cast<int>(*store.recorded_detail()) << '\n';
  for (const SpanTotal& total : store.span_totals())
    out << total.lane.rank << ' ' << static_cast<int>(total.lane.stream) << ' '
        << static_cast<int>(total.kind) << ' ' << int{total.code} << ' ' << total.count << ' '
        << total.total_ns << ' ' << total.min_ns << ' ' << total.max_ns << '\n';
  for (const Store::UnmatchedEnds& ends : store.unmatched_ends())
    out << ends.rank << ' ' << static_cast<int>(ends.kind) << ' ' << ends.count << ' ' << ends.explained
        << '\n';
  for (const Gap& gap : store.gaps()) out << gap;
  for (const LaneId lane : store.lanes()) out << lane.rank << ' ' << int{store.depth_count(lane)} << '\n';
  for (const RankRow& row : store.ranks()) {
    out << row.events << ' ' << row.dropped << ' ' << row.last_ns << ' ' << store.has_gates(row.rank) << ' '
        << store.largest_clock_residual(row.rank, Store::kBegin, Store::kEnd);
    for (int kind = 0; kind < 256; ++kind)
      out << ' ' << store.instant_count(row.rank, static_cast<ev::EventKind>(kind));
    for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
      const auto pool = static_cast<ev::MemoryPool>(p);
      if (const auto peak = store.memory_peak(row.rank, pool)) out << *peak;
      if (const auto peak = store.model_state_peak(row.rank, pool)) out << *peak;
    }
    out << '\n';
  }
  return std::move(out).str();
}

std::string levels_of(const Store& store, std::int64_t begin, std::int64_t end) {
  std::ostringstream out;
  std::vector<Density> columns(700);
  for (const LaneId lane : store.lanes()) {
    for (int depth = 0; depth <= store.depth_count(lane); ++depth) {
      const bool waits = depth == store.depth_count(lane);
      store.density(lane, waits ? Store::kWaits : static_cast<std::uint8_t>(depth), begin, end, columns);
      for (const Density& one : columns)
        out << one.busy << ' ' << one.count << ' ' << static_cast<int>(one.dominant) << int{one.dominant_code}
            << ' ';
    }
  }
  return std::move(out).str();
}

template <typename Ask>
std::string of_ranks(const Store& store, Ask ask) {
  std::ostringstream out;
  for (const RankRow& row : store.ranks()) {
    for (std::int64_t at = 0; at <= store.end_ns(); at += store.end_ns() / 40) ask(out, row.rank, at);
  }
  return std::move(out).str();
}

/// Each of what needs the blocks themselves, so that each of them is the first to look at a rank.
std::map<std::string, std::function<std::string(const Store&)>> questions() {
  using Out = std::ostream&;
  std::map<std::string, std::function<std::string(const Store&)>> all;
  all["levels of all"] = [](const Store& s) { return levels_of(s, 0, s.end_ns()); };
  all["levels of sums"] = [](const Store& s) {
    return levels_of(s, s.end_ns() / 9, s.not_kept().until_ns / 2);
  };
  all["levels of the newest"] = [](const Store& s) {
    return levels_of(s, s.not_kept().until_ns, s.end_ns());
  };
  all["memory columns"] = [](const Store& s) {
    std::ostringstream out;
    std::vector<MemorySample> columns(300);
    for (const RankRow& row : s.ranks()) {
      s.memory_columns(row.rank, ev::MemoryPool::device, 0, s.end_ns(), columns);
      for (const MemorySample& sample : columns) out << sample;
    }
    return std::move(out).str();
  };
  all["memory at"] = [](const Store& s) {
    return of_ranks(s, [&](Out out, std::uint32_t rank, std::int64_t at) {
      out << s.memory_at(rank, ev::MemoryPool::device, at);
    });
  };
  all["known"] = [](const Store& s) {
    return of_ranks(s, [&](Out out, std::uint32_t rank, std::int64_t at) { out << s.is_known(rank, at); });
  };
  all["statuses"] = [](const Store& s) {
    return of_ranks(s, [&](Out out, std::uint32_t rank, std::int64_t at) {
      std::vector<ParamState> states(s.tables().params.size());
      s.param_states(rank, at, states);
      for (const ParamState& state : states) out << int{state.status} << ' ' << state.since_ns << ' ';
      out << s.buckets_at(rank, at).size() << ' ' << s.status_history(rank, 0, at, 3).size() << '\n';
    });
  };
  all["gates"] = [](const Store& s) {
    return of_ranks(s, [&](Out out, std::uint32_t rank, std::int64_t at) {
      const auto before = s.gate_before(rank, at), after = s.gate_after(rank, at);
      out << (before ? before->number : 0) << ' ' << (after ? after->number : 0) << ' '
          << s.gates(rank, at, at + s.end_ns() / 40).size() << '\n';
    });
  };
  all["spans"] = [](const Store& s) {
    std::ostringstream out;
    for (const LaneId lane : s.lanes()) {
      for (const std::int64_t cut : s.cuts(lane)) out << cut << ' ';
      for (const Span& span : s.spans(lane, 0)) out << span.begin_ns << '-' << span.end_ns << ' ';
    }
    return std::move(out).str();
  };
  all["instants"] = [](const Store& s) {
    std::ostringstream out;
    for (const RankRow& row : s.ranks()) {
      out << s.instants(row.rank).size() << ' '
          << s.instants_of(row.rank, ev::EventKind::fetch_decision).size();
      for (const ev::EventKind kind : {ev::EventKind::fetch_decision, ev::EventKind::trace_invalidated}) {
        const auto first = s.first_instant(row.rank, kind);
        out << ' ' << (first ? first->ticks : 0);
      }
    }
    return std::move(out).str();
  };
  return all;
}

class PackedBlocks : public PartOfARun {
 protected:
  /// With a moment, so that sums lie before and behind blocks.
  void record() {
    record_with({.max_bytes = 1'000'000, .around_ns = 100'000'000}, [](RecordingWriter& writer, int turn,
                                                                       const Store& totals) {
      if (turn == 6)
        writer.keep({.at_ns = totals.origin_ns() + totals.end_ns(), .kind = "request", .text = ""});
    });
  }
  [[nodiscard]] Store open_as_read(const char* name = "part.zscope", RecordingInfo* info = nullptr) const {
    return open_recording(file(name), info, Verify::as_read);
  }
  static bool any_packed(const Store& store) {
    return std::any_of(store.ranks().begin(), store.ranks().end(),
                       [&](const RankRow& row) { return store.is_packed(row.rank); });
  }
};

TEST_F(PackedBlocks, SayTheSameAsThoseThatWereReadAtOnce) {
  record();
  const Store whole = open("part.zscope");
  EXPECT_FALSE(any_packed(whole));
  ASSERT_EQ(whole.moments().size(), 1U);
  {
    RecordingInfo info;
    const Store packed = open_as_read("part.zscope", &info);
    EXPECT_THAT(info.problems, testing::IsEmpty());
    EXPECT_EQ(figures_of(packed), figures_of(whole));
    for (const RankRow& row : packed.ranks())
      EXPECT_TRUE(packed.is_packed(row.rank)) << "figures look at nothing";
    EXPECT_LT(packed.resident_bytes(), whole.resident_bytes());
  }
  for (const auto& [name, ask] : questions()) {
    const Store packed = open_as_read();
    const std::string answer = ask(whole);
    EXPECT_GT(answer.size(), 10U) << name;
    EXPECT_TRUE(ask(packed) == answer) << name;
    EXPECT_EQ(any_packed(packed), name == "known") << name << ": that is known of each rank without";
    EXPECT_EQ(figures_of(packed), figures_of(whole)) << "after " << name;
    EXPECT_THAT(packed.problems(), testing::IsEmpty()) << name;
  }
}

/// A frame decodes what it has time for, at least one block; what is shown until then is not said to be all.
TEST_F(PackedBlocks, AreReadWithinTheTimeOfFrames) {
  record();
  const Store whole = open("part.zscope"), packed = open_as_read();
  const std::string levels = levels_of(whole, 0, whole.end_ns());
  int frames = 0;
  for (; frames < 10'000; ++frames) {
    packed.limit_reading(std::chrono::nanoseconds(1));
    const std::string shown = levels_of(packed, 0, packed.end_ns());
    if (!packed.wants_more()) {
      EXPECT_TRUE(shown == levels);
      break;
    }
    const LaneId lane = packed.lanes().back();
    if (packed.is_packed(lane.rank)) {
      EXPECT_FALSE(packed.ready(lane, 0, packed.end_ns()));
    }
  }
  EXPECT_GT(frames, 40) << "a block in each";
  EXPECT_LT(frames, 10'000);
}

/// The recorder joins and deletes sums of a run that goes on. What was there when the file was opened is
/// shown as it was then.
TEST_F(PackedBlocks, StayWhenTheRecordingIsRotated) {
  std::optional<Store> later;
  std::string of_sums, figures;
  std::int64_t until = 0, first = 0;
  const auto sums_up_to = [&](std::int64_t id) {
    return Database(file("part.zscope"), Database::Access::read)
        .integer("SELECT count(*) FROM sums WHERE id <= " + std::to_string(id));
  };
  record_with({.max_bytes = 1'000'000, .moments = 0}, [&](RecordingWriter&, int turn, const Store&) {
    if (turn != 12) return;
    later.emplace(open_as_read());
    const Store now = open_as_read();
    until = now.not_kept().until_ns / 2;
    figures = figures_of(now);
    of_sums = levels_of(now, 0, until);
    first = Database(file("part.zscope"), Database::Access::read).integer("SELECT max(id) FROM sums");
  });
  ASSERT_TRUE(later && any_packed(*later));
  EXPECT_LT(sums_up_to(first), 20) << "of 32 of each rank: others have been joined";
  EXPECT_EQ(figures_of(*later), figures);
  EXPECT_TRUE(levels_of(*later, 0, until) == of_sums);
  EXPECT_THAT(later->problems(), testing::IsEmpty());
}

TEST_F(PackedBlocks, AreInACopy) {
  record();
  const Store original = open_as_read();
  Database(file("part.zscope"), Database::Access::create)
      .execute("VACUUM INTO '" + file("copy.zscope") + "'");
  RecordingInfo info;
  const Store copy = open("copy.zscope", &info), packed = open_as_read("copy.zscope");
  EXPECT_THAT(info.problems, testing::IsEmpty());
  EXPECT_EQ(figures_of(packed), figures_of(original));
  for (const auto& [name, ask] : questions()) {
    EXPECT_TRUE(ask(copy) == ask(original)) << name;
    EXPECT_TRUE(ask(packed) == ask(original)) << name;
  }
}

/// A checksum is verified before a figure is shown, and damage is said once.
TEST_F(PackedBlocks, OfADamagedSumNothingIsShown) {
  record();
  Database(file("part.zscope"), Database::Access::create)
      .execute(
          "UPDATE sums SET bytes = substr(bytes, 1, length(bytes) - 1) || x'5A' "
          "WHERE id = (SELECT max(id) FROM sums)");
  RecordingInfo verified, read;
  const Store whole = open_recording(file("part.zscope"), &verified),
              packed = open_as_read("part.zscope", &read);
  for (const RecordingInfo* info : {&verified, &read}) {
    EXPECT_EQ(std::count_if(info->problems.begin(), info->problems.end(),
                            [](const std::string& problem) {
                              return problem.find("what was not kept: checksum does not match") !=
                                     std::string::npos;
                            }),
              1);
  }
  EXPECT_EQ(figures_of(packed), figures_of(whole));
  for (const auto& [name, ask] : questions()) {
    if (name == "levels of sums") continue;  // there are none
    EXPECT_TRUE(ask(packed) == ask(whole)) << name;
  }
  EXPECT_THAT(packed.problems(), testing::IsEmpty());
}

/// What is left packed after its head was read must not turn out to be damaged later.
TEST_F(PackedBlocks, AHeadIsRefusedWhereTheBlockIs) {
  record();
  Database database(file("part.zscope"), Database::Access::read);
  Statement blocks = database.prepare("SELECT bytes FROM blocks UNION ALL SELECT bytes FROM sums LIMIT 12");
  std::mt19937_64 random(11);
  std::size_t refused = 0, taken = 0;
  while (blocks.step()) {
    const std::vector<std::byte> bytes = unpack(blocks.bytes(0).data(), blocks.bytes(0).size());
    for (int i = 0; i < 400; ++i) {
      std::vector<std::byte> changed = bytes;
      changed[random() % changed.size()] = static_cast<std::byte>(random());
      if (i % 4 == 0) changed.resize(random() % changed.size());
      const std::vector<std::byte> packed = pack(changed);
      std::string of_block, of_head;
      try {
        (void)decode_block(packed.data(), packed.size());
      } catch (const std::runtime_error& error) {
        of_block = error.what();
      }
      try {
        (void)decode_head(packed.data(), packed.size());
      } catch (const std::runtime_error& error) {
        of_head = error.what();
      }
      ASSERT_EQ(of_head, of_block);
      (of_block.empty() ? taken : refused)++;
    }
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(taken, 300U);
}

/// Of sums that differ in everything, taken one by one and all at once.
TEST(PackedBlock, FiguresOfSumsThatDifferAddUp) {
  Store whole, packed;
  RankFigures figures;
  std::vector<std::vector<std::byte>> stored;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto n = static_cast<std::int64_t>(i);
    Block block;
    block.sequence = i * 5;
    block.parts = 5;
    block.events = 10;
    block.begin_ns = n * 1000;
    block.end_ns = block.begin_ns + 900;
    block.dropped_before = i;
    block.lanes[i + 1].rows.resize(i + 1);
    block.lanes[i + 1].fine.resize(i + 1);
    // The highest is in the middle.
    block.memory[i % 2].changes = 4;
    block.peaks[i % 2].all = {.at_ns = n * 1000 + 5, .bytes = {n == 1 ? 50 : 10 + n}};
    block.peaks[i % 2].model_state = {.at_ns = n * 1000 + 7, .bytes = {n == 2 ? 60 : 20}};
    block.counts = {
        {.kind = ev::EventKind::param_status, .code = 1, .count = 4'000'000'000U},
        {.kind = ev::EventKind::module_end, .code = static_cast<std::uint8_t>(i % 2), .count = 3}};
    block.totals = {{.lane = {0, ev::StreamId::compute},
                     .kind = ev::EventKind::module_begin,
                     .code = static_cast<std::uint8_t>(i / 2),
                     .count = 2 + n,
                     .total_ns = 100 + n,
                     .min_ns = 30 - n,
                     .max_ns = 50 + n}};
    block.gates = 7;  // none can be looked at of a sum
    stored.push_back(encode_block(block));
    begin_sum(block);
    RecordedRun(whole).append_sum(block, 100, {}, true);
    BlockHead head = decode_head(stored.back().data(), stored.back().size());
    begin_sum(head);
    figures.add(head);
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const BlockHead head = decode_head(stored[i].data(), stored[i].size());
    RecordedRun(packed).append_sum(
        {.origin = static_cast<const BlockOrigin&>(head), .bytes = stored[i], .sum = true},
        i == 0 ? &figures : nullptr, 100, {});
  }
  EXPECT_EQ(figures_of(packed), figures_of(whole));
  EXPECT_EQ(packed.instant_count(0, ev::EventKind::param_status), 12'000'000'000U);
  EXPECT_EQ(packed.memory_peak(0, static_cast<ev::MemoryPool>(1))->bytes[0], 50);
  EXPECT_FALSE(packed.has_gates(0));
  EXPECT_TRUE(packed.is_packed(0));
}

/// What cannot be decoded although its head could (a later program's block, a fault of memory).
TEST(PackedBlock, ThatIsDamagedIsNamedOnce) {
  Store store;
  for (std::uint64_t i = 0; i < 3; ++i) {
    Block block;
    block.sequence = i;
    block.parts = 1;
    block.events = 10;
    block.begin_ns = static_cast<std::int64_t>(i) * 1000;
    block.end_ns = block.begin_ns + 900;
    PackedBlock packed{
        .origin = static_cast<const BlockOrigin&>(block), .bytes = encode_block(block), .sum = true};
    if (i == 1) packed.bytes.back() ^= std::byte{1};
    RecordedRun(store).append_sum(std::move(packed), nullptr, 10, {});
  }
  EXPECT_THAT(store.problems(), testing::IsEmpty());
  for (int look = 0; look < 3; ++look) {
    std::vector<Density> columns(10);
    store.density({0, ev::StreamId::compute}, 0, 0, 3000, columns);
    (void)store.is_known(0, 1500);
    ASSERT_EQ(store.problems().size(), 1U);
  }
  EXPECT_THAT(store.problems().front(), testing::HasSubstr("sequence 1"));
  EXPECT_THAT(store.problems().front(), testing::HasSubstr("checksum does not match"));
  EXPECT_EQ(
      std::count_if(store.gaps().begin(), store.gaps().end(), [](const Gap& gap) { return gap.damaged; }), 1);
}

}  // namespace
}  // namespace shardscope::store
