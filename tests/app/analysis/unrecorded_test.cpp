// Time of which events are missing is a part of its own: neither idle nor anything else, and in no average.
#include "app/analysis/unrecorded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "app/analysis/intervals.h"
#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using ev::StreamId;
using test::kGatherOp;

constexpr std::int64_t kStep = 10'000;

std::vector<ev::Event> sorted(std::vector<ev::Event> events) {
  std::ranges::stable_sort(events, [](const ev::Event& a, const ev::Event& b) {
    return a.ticks != b.ticks ? a.ticks < b.ticks : ev::is_end(a.kind) && !ev::is_end(b.kind);
  });
  return events;
}

/// A run of one rank, and what it did by closed form.
struct Training {
  std::vector<ev::Event> events;
  std::vector<Interval> compute, comm, copy;
  std::int64_t end_ns = 0;

  void instant(std::int64_t at, EventKind kind, StreamId stream, std::uint32_t a, std::uint32_t b = ev::kNoId,
               std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    events.push_back({static_cast<std::uint64_t>(at), kind, stream, code, a, b, ev::kNoId, v0, v1});
  }
  void span(std::int64_t begin, std::int64_t end, EventKind kind, StreamId stream, std::uint32_t a,
            std::uint32_t b = ev::kNoId, std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    instant(begin, kind, stream, a, b, code, v0, v1);
    instant(end, ev::end_of(kind), stream, a, b, code, v0, v1);
  }
  /// Steps of 10 us of which 5 % are idle: a root module over ten others, in each of which computation waits
  /// for a gather now and then; a copy overlaps the end of the root.
  explicit Training(std::uint32_t steps, std::uint32_t drawn = 1) {
    std::mt19937 random(drawn);
    const auto draw = [&](std::int64_t most) {
      return std::uniform_int_distribution<std::int64_t>(0, most)(random);
    };
    for (std::uint32_t step = 0; step < steps; ++step) {
      const std::int64_t at = step * kStep;
      span(at, at + kStep - 1, EventKind::step_begin, StreamId::host, step);
      IntervalSet waits;
      instant(at + 2, EventKind::module_begin, StreamId::compute, 0, step);
      for (std::uint32_t layer = 0; layer < 10; ++layer) {
        const std::int64_t begin = at + 10 + layer * 940 + draw(50) * 2;
        instant(begin, EventKind::module_begin, StreamId::compute, 1 + layer, step);
        if (draw(1) == 0) {
          const std::int64_t gather = step * 10 + layer;
          span(begin + 100, begin + 300, EventKind::fetch_wait_begin, StreamId::compute, 1 + layer,
               static_cast<std::uint32_t>(gather));
          waits = waits.unite(IntervalSet({{begin + 100, begin + 300}}));
          const std::int64_t from = begin + 60 + draw(10) * 2;
          span(from, begin + 298, EventKind::collective_begin, StreamId::gather,
               static_cast<std::uint32_t>(gather), static_cast<std::uint32_t>(gather), kGatherOp, 10, 40);
          comm.push_back({from, begin + 298});
        }
        instant(begin + 400 + draw(200) * 2, EventKind::module_end, StreamId::compute, 1 + layer, step);
      }
      const std::int64_t until = at + kStep - kStep / 20;
      instant(until, EventKind::module_end, StreamId::compute, 0, step);
      const IntervalSet work = IntervalSet({{at + 2, until}}).subtract(waits);
      compute.insert(compute.end(), work.intervals().begin(), work.intervals().end());
      span(until - 200, until + 100, EventKind::transfer_begin, StreamId::copy, 0);
      copy.push_back({until - 200, until + 100});
      end_ns = at + kStep;
    }
    events = sorted(std::move(events));
  }

  /// Without the events in `stretches`, but for the steps themselves: each is dropped before a chunk of its
  /// own.
  [[nodiscard]] store::Store recorded_without(const std::vector<Interval>& stretches,
                                              std::size_t sealed) const {
    store::Store store;
    store.seal_after(sealed);
    ev::RunTables tables;
    tables.world = 1;
    tables.stage = 3;
    tables.config_json = "{}";
    tables.modules = {{0, ev::kNoId, "", "Root", {}, true}};
    for (std::uint32_t i = 1; i <= 10; ++i) tables.modules.push_back({i, 0, "layer", "Linear", {}, true});
    store.set_tables(0, tables);
    std::size_t next = 0;
    std::uint64_t sequence = 0;
    for (std::size_t i = 0; i <= stretches.size(); ++i) {
      store::Chunk chunk;
      chunk.sequence = sequence++;
      // A chunk holds what came before its own gap as well, as a collector's does.
      const std::int64_t split = i + 1 < stretches.size()
                                     ? stretches[i].end + (stretches[i + 1].begin - stretches[i].end) / 2
                                     : end_ns + 1;
      if (i < stretches.size()) {
        chunk.missing_begin_ns = stretches[i].begin;
        chunk.missing_end_ns = stretches[i].end;
      }
      for (; next < events.size() && static_cast<std::int64_t>(events[next].ticks) < split; ++next) {
        const ev::Event& event = events[next];
        const auto at = static_cast<std::int64_t>(event.ticks);
        const bool missing = i < stretches.size() && at >= stretches[i].begin && at < stretches[i].end &&
                             event.stream != StreamId::host;
        if (missing) {
          ++chunk.dropped_before;
        } else {
          chunk.events.push_back(event);
        }
      }
      if (chunk.dropped_before == 0) chunk.missing_begin_ns = chunk.missing_end_ns = 0;
      if (!chunk.events.empty()) store.ingest(chunk);
    }
    return store;
  }
};

std::int64_t sum_of(const TimePartition& t) {
  return t.checkpoint_ns + t.compute_ns + t.exposed_comm_ns + t.exposed_copy_ns + t.idle_ns + t.unrecorded_ns;
}

struct Compared {
  std::size_t steps = 0, exact = 0;
  std::int64_t doubted_ns = 0, recorded_ns = 0;
};

/// The parts against those of the whole recording outside of what is missing. None is larger; in a step with
/// one gap they are the same to the nanosecond, whatever was open where it begins and ends.
void compare_parts(const Training& run, const store::Store& store, Compared& sum) {
  IntervalSet missing;
  for (const store::Gap& gap : store.gaps())
    missing = missing.unite(IntervalSet({{gap.begin_ns, gap.end_ns}}));
  const IntervalSet compute(run.compute), comm(run.comm), copy(run.copy);
  for (const store::StepRow& step : store.steps()) {
    const TimePartition time = partition_time(store, 0, step.begin_ns, step.end_ns);
    EXPECT_EQ(sum_of(time), time.total_ns);
    if (!time.known()) continue;
    const IntervalSet window({{step.begin_ns, step.end_ns}});
    const IntervalSet recorded = window.subtract(missing);
    const auto within = [&](const IntervalSet& set) { return set.intersect(recorded).length(); };
    const std::int64_t idle = within(window.subtract(compute.unite(comm).unite(copy)));
    ++sum.steps;
    sum.recorded_ns += recorded.length();
    sum.doubted_ns += recorded.length() - time.recorded_ns();
    EXPECT_LE(time.recorded_ns(), recorded.length());
    EXPECT_LE(time.compute_ns, within(compute)) << "step " << step.step;
    EXPECT_LE(time.idle_ns, idle) << "step " << step.step;
    EXPECT_LE(time.comm_ns, within(comm)) << "step " << step.step;
    EXPECT_LE(time.exposed_comm_ns, within(comm.subtract(compute))) << "step " << step.step;
    if (window.intersect(missing).intervals().size() > 1) continue;
    ++sum.exact;
    EXPECT_EQ(time.recorded_ns(), recorded.length()) << "step " << step.step;
    EXPECT_EQ(time.compute_ns, within(compute)) << "step " << step.step;
    EXPECT_EQ(time.comm_ns, within(comm)) << "step " << step.step;
    EXPECT_EQ(time.exposed_copy_ns, within(copy.subtract(compute).subtract(comm)));
    EXPECT_EQ(time.idle_ns, idle) << "step " << step.step;
  }
}

TEST(Unrecorded, IsItsOwnPartAndTheOthersAreWhatTheyWereElsewhere) {
  Compared sum;
  for (std::uint32_t drawn = 1; drawn <= 60; ++drawn) {
    SCOPED_TRACE(drawn);
    std::mt19937 random(drawn);
    const Training run(12, drawn);
    std::vector<Interval> stretches;
    for (std::int64_t at = 4001; at + 9000 < run.end_ns;) {
      // Odd, where no event is.
      const auto length = std::uniform_int_distribution<std::int64_t>(20, 3000)(random) * 2;
      stretches.push_back({at, at + length});
      at += length + std::uniform_int_distribution<std::int64_t>(200, 9000)(random) * 2;
    }
    compare_parts(run, run.recorded_without(stretches, drawn % 2 == 0 ? 40 : 1U << 20), sum);
  }
  EXPECT_GT(sum.steps, 500U);
  EXPECT_GT(sum.exact, 300U);
  EXPECT_LT(static_cast<double>(sum.doubted_ns), 0.1 * static_cast<double>(sum.recorded_ns));
}

TEST(Unrecorded, AFifthOfTheTimeDroppedLeavesTheIdleShareWhereItWas) {
  const Training run(20);
  std::vector<Interval> stretches;
  for (std::int64_t at = 12'001; at < run.end_ns - 10'000; at += 10'000)
    stretches.push_back({at + 1000, at + 3000});
  const store::Store whole = run.recorded_without({}, 1U << 20),
                     dropped = run.recorded_without(stretches, 100);
  const Summary all = summarize(whole), some = summarize(dropped);
  const auto idle = [](const Summary& s) {
    const TimePartition& time = s.ranks.at(0).time;
    return static_cast<double>(time.idle_ns) / static_cast<double>(time.recorded_ns());
  };
  EXPECT_EQ(all.ranks.at(0).time.unrecorded_ns, 0);
  EXPECT_NEAR(idle(all), 0.04, 0.005);
  EXPECT_NEAR(idle(some), idle(all) / 0.8, 0.006) << "nothing idle was dropped";
  EXPECT_GT(some.ranks.at(0).time.unrecorded_ns, 30'000);
  EXPECT_GT(some.ranks.at(0).time.overlap_pct().value(), 0);
  EXPECT_NEAR(*some.ranks.at(0).time.overlap_pct(), *all.ranks.at(0).time.overlap_pct(), 3);
  const auto json = nlohmann::json::parse(to_json(some))["ranks"][0];
  EXPECT_GT(json["time_ms"]["unrecorded"].get<double>(), 0.03);
  EXPECT_LT(json["whole_steps"].get<int>(), json["time_steps"].get<int>());
}

/// What rests on steps that lack events is not averaged over them.
TEST(Unrecorded, VolumeIsOfStepsThatLackNothing) {
  const Training run(20);
  const store::Store whole = run.recorded_without({}, 1U << 20);
  const store::Store half = run.recorded_without({{100'001, 195'001}}, 1U << 20);
  const store::Store none = run.recorded_without({{5'001, 195'001}}, 1U << 20);
  const Summary all = summarize(whole), some = summarize(half), nothing = summarize(none);
  EXPECT_EQ(all.ops_steps, 19U);
  EXPECT_EQ(all.lacking_steps, 0U);
  EXPECT_EQ(some.ops_steps, 9U);
  ASSERT_TRUE(some.elements_per_step);
  double elements = 0;
  for (const Interval& gather : run.comm)
    elements += gather.begin >= kStep && gather.begin < 100'000 ? 10 : 0;
  EXPECT_DOUBLE_EQ(*some.elements_per_step, elements / 9);
  EXPECT_EQ(some.lacking_steps, 10U);
  EXPECT_EQ(some.ranks.at(0).whole_steps, 9U);
  EXPECT_FALSE(nothing.elements_per_step);
  EXPECT_EQ(nothing.lacking_steps, 20U);
  const auto json = nlohmann::json::parse(to_json(some));
  EXPECT_EQ(json["comm"]["ops_steps"], 9);
  EXPECT_EQ(json["steps_lacking_events"], 10);
}

TEST(Unrecorded, AChangeOfDetailLeavesOutWhatIsNotEmitted) {
  Training run(8);
  // Off from the middle of step 2 to the middle of step 5.
  constexpr std::int64_t kOff = 2 * kStep + 4001, kOn = 5 * kStep + 4001;
  std::erase_if(run.events, [&](const ev::Event& event) {
    const auto at = static_cast<std::int64_t>(event.ticks);
    return event.stream != StreamId::host && at >= kOff && at < kOn;
  });
  const auto change = [&](std::int64_t at, ev::Detail from, ev::Detail to) {
    run.instant(at, EventKind::detail_changed, StreamId::host, static_cast<std::uint32_t>(from), ev::kNoId,
                static_cast<std::uint8_t>(to));
  };
  change(kOff, ev::Detail::params, ev::Detail::steps);
  change(kOn, ev::Detail::steps, ev::Detail::params);
  run.events = sorted(run.events);
  const store::Store store = run.recorded_without({}, 30);
  const IntervalSet missing({{kOff, kOn}}), compute(run.compute);
  for (const store::StepRow& step : store.steps()) {
    const TimePartition time = partition_time(store, 0, step.begin_ns, step.end_ns);
    EXPECT_EQ(sum_of(time), time.total_ns);
    const IntervalSet window({{step.begin_ns, step.end_ns}});
    EXPECT_EQ(time.unrecorded_ns, window.intersect(missing).length()) << step.step;
    EXPECT_EQ(time.compute_ns, window.subtract(missing).intersect(compute).length()) << step.step;
  }
  const Summary summary = summarize(store);
  EXPECT_EQ(summary.steps_measured, 7U);
  EXPECT_EQ(summary.ranks.at(0).whole_steps, 3U) << "steps 1, 6 and 7";
  EXPECT_EQ(summary.ranks.at(0).time_steps, 5U) << "and what was recorded of 2 and 5";
  EXPECT_EQ(summary.ops_steps, 3U);
  EXPECT_EQ(summary.lacking_steps, 0U) << "nothing was lost";
}

TEST(Clocks, TheResidualIsTheLargestOfTheRun) {
  store::Store store;
  for (const std::int64_t residual : {35'000, 91'000, 20'000}) {
    store::Chunk chunk;
    chunk.sequence = static_cast<std::uint64_t>(store.event_count());
    chunk.clock_residual_ns = residual;
    chunk.events = {{.ticks = 1000 + store.event_count(), .kind = EventKind::gate, .stream = StreamId::host}};
    store.ingest(chunk);
  }
  EXPECT_EQ(store.ranks()[0].clock_residual_ns, 20'000) << "of the newest offset";
  EXPECT_EQ(store.ranks()[0].largest_clock_residual_ns, 91'000);
  store::RankRow row;
  row.clock_residual_ns = 20'000;  // a recording's row: that of the last chunk
  store.set_rank(row);
  const Summary summary = summarize(store);
  EXPECT_EQ(summary.ranks.at(0).clock_residual_ns, 91'000);
  EXPECT_EQ(nlohmann::json::parse(to_json(summary))["ranks"][0]["clock_residual_ns"], 91'000);
}

/// Two ranks; the second comes 300 ns later, and its own call takes 100 more before it has entered.
TEST(Bandwidth, IsOfTheTransferAloneAndWithWaiting) {
  test::RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(rank, rank == 0 ? 100 : 400, 600, EventKind::collective_begin, StreamId::gather, 0, 0, kGatherOp,
             1000, 4000);
    run.instant(rank, 500, EventKind::collective_entered, StreamId::gather, 0, 0, ev::kNoId, kGatherOp);
  }
  const Summary summary = summarize(run.build());
  ASSERT_EQ(summary.ops.size(), 1U);
  EXPECT_DOUBLE_EQ(*summary.ops[0].algbw_gbs, 4000.0 / 100);
  EXPECT_DOUBLE_EQ(*summary.ops[0].busbw_gbs, 4000.0 / 100 / 2);
  EXPECT_DOUBLE_EQ(*summary.ops[0].algbw_waiting_gbs, 4000.0 / ((500 + 200) / 2.0));
  EXPECT_DOUBLE_EQ(*summary.ops[0].busbw_waiting_gbs, 4000.0 / ((500 + 200) / 2.0) / 2);
  const auto json = nlohmann::json::parse(to_json(summary))["comm"]["ops"][0];
  EXPECT_DOUBLE_EQ(json["algbw_gbs"].get<double>(), 40);
  EXPECT_DOUBLE_EQ(json["busbw_waiting_gbs"].get<double>(), 4000.0 / 700);
}

/// Somebody held rank 0 while it waited: that is not waiting for rank 1. What is transferred runs on beside
/// it.
TEST(Bandwidth, WithWaitingIsWithoutPauses) {
  test::RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(rank, rank == 0 ? 100 : 400, 600, EventKind::collective_begin, StreamId::gather, 0, 0, kGatherOp,
             1000, 4000);
    run.instant(rank, 500, EventKind::collective_entered, StreamId::gather, 0, 0, ev::kNoId, kGatherOp);
  }
  run.span(0, 200, 350, EventKind::paused_begin, StreamId::host, 7);
  run.span(1, 520, 560, EventKind::paused_begin, StreamId::host, 7);
  const Summary summary = summarize(run.build());
  ASSERT_EQ(summary.ops.size(), 1U);
  EXPECT_DOUBLE_EQ(*summary.ops[0].algbw_gbs, 4000.0 / 100);
  EXPECT_DOUBLE_EQ(*summary.ops[0].algbw_waiting_gbs, 4000.0 / ((500 - 150 + 200) / 2.0));
}

}  // namespace
}  // namespace shardscope::analysis
