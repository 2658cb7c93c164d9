// The prefetch outcomes that ranks emit are those that a viewer derives from the spans of gathers and waits:
// of simulated ranks to the last one, of real ranks wherever the times leave no doubt.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "app/analysis/communication.h"
#include "instrumentation/clock.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/prefetch_outcome.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/runtime/engine/support.h"
#include "tests/runtime/simulate/real_events.h"

namespace shardscope::simulate::testing {
namespace {

using analysis::Prefetch;
using engine::testing::make_config;
using engine::testing::model_named;
using instrumentation::EventKind;
using plan::PrefetchOutcome;

constexpr std::int64_t kEver = store::Store::kEnd;

std::uint64_t all(const Prefetch& p) { return p.early + p.just_in_time + p.late + p.mistargeted + p.unused; }

/// The recording of these events, times in nanoseconds; without the prefetch outcomes of the rank.
Prefetch derived(const std::vector<Event>& events) {
  test::RunBuilder run(1);
  for (const Event& e : events) {
    if (e.kind == EventKind::prefetch_outcome) continue;
    run.instant(0, static_cast<std::int64_t>(e.ticks), e.kind, e.stream, e.a, e.b, e.c, e.code, e.v0, e.v1);
  }
  return analysis::prefetch_outcomes(run.build(), 0, store::Store::kBegin, kEver);
}

Prefetch reported(const std::vector<Event>& events) {
  test::RunBuilder run(1);
  for (const Event& e : events) {
    run.instant(0, static_cast<std::int64_t>(e.ticks), e.kind, e.stream, e.a, e.b, e.c, e.code, e.v0, e.v1);
  }
  return analysis::prefetch_outcomes(run.build(), 0, store::Store::kBegin, kEver);
}

Json stage3(const Json& zero) {
  Json config = make_config(3);
  config["zero_optimization"].update(zero);
  return config;
}

void expect_same(const Prefetch& a, const Prefetch& b, const std::string& name) {
  EXPECT_EQ(a.early, b.early) << name;
  EXPECT_EQ(a.just_in_time, b.just_in_time) << name;
  EXPECT_EQ(a.late, b.late) << name;
  EXPECT_EQ(a.late_wait_ns, b.late_wait_ns) << name;
  EXPECT_EQ(a.mistargeted, b.mistargeted) << name;
  EXPECT_EQ(a.unused, b.unused) << name;
}

TEST(PrefetchOutcomes, SimulatedRanksEmitWhatTheirSpansShow) {
  const DetailGuard detail(instrumentation::Detail::params);
  Prefetch seen;
  for (const char* model : {"mlp", "gpt", "gpt_functional", "mlp_reuse"}) {
    for (const Json& zero :
         {Json{{"stage3_prefetch_bucket_size", 20000}}, Json{{"stage3_prefetch_bucket_size", 200000}},
          Json{{"stage3_prefetch_bucket_size", 20000}, {"overlap_comm", false}}}) {
      for (const double gb_per_s : {0.1, 0.3, 1.0, 3.0, 10.0}) {
        SimulationOptions options;
        options.hardware = round_hardware();
        options.hardware.inside.gb_per_s = gb_per_s;
        Play play(model_named(model), stage3(zero), 2, options);
        play.run(4);
        for (const std::vector<Event>& events : play.events) {
          const Prefetch by_rank = reported(events);
          expect_same(by_rank, derived(events), model);
          EXPECT_GT(all(by_rank), 0U) << model;
          seen.early += by_rank.early;
          seen.just_in_time += by_rank.just_in_time;
          seen.late += by_rank.late;
        }
      }
    }
  }
  // Otherwise nothing was shown.
  EXPECT_GT(seen.early, 0U);
  EXPECT_GT(seen.just_in_time, 0U);
  EXPECT_GT(seen.late, 0U);
}

/// What is known of one prefetch without the outcome that the rank emitted. Streams note their times beside
/// the events that say the same, so each time lies between two events of its lane, however long a thread was
/// held up there.
struct Known {
  std::int64_t end_ns = 0;          ///< of its last collective: not later than what the stream noted
  std::int64_t after_end_ns = 0;    ///< what the gather lane did next: not earlier
  std::int64_t need_ns = 0;         ///< begin of the wait: not earlier than noted
  std::int64_t before_need_ns = 0;  ///< what the compute lane did before: not later
};

std::map<std::uint32_t, Known> known_of(const Queues& queues, const instrumentation::TickClock& clock) {
  std::map<std::uint32_t, Known> known;
  Known* ended = nullptr;
  for (const Event& e : queues[static_cast<std::size_t>(StreamId::gather)]) {
    const std::int64_t at = clock.to_ns(e.ticks);
    if (ended != nullptr) ended->after_end_ns = at;
    ended = e.kind == EventKind::collective_end ? &known[e.b] : nullptr;
    if (ended != nullptr) ended->end_ns = at;
  }
  if (ended != nullptr) ended->after_end_ns = INT64_MAX;
  std::int64_t before = INT64_MIN;
  for (const Event& e : queues[static_cast<std::size_t>(StreamId::compute)]) {
    const std::int64_t at = clock.to_ns(e.ticks);
    if (e.kind == EventKind::fetch_wait_begin) {
      known[e.b].need_ns = at;
      known[e.b].before_need_ns = before;
    }
    before = at;
  }
  return known;
}

TEST(PrefetchOutcomes, RealRanksEmitOnceWhatTheirSpansShow) {
  const DetailGuard detail(instrumentation::Detail::params);
  instrumentation::TickClock clock;
  RealCase real;
  real.model = "mlp";
  real.world = 2;
  real.config = stage3({{"stage3_prefetch_bucket_size", 20000}, {"stage3_param_persistence_threshold", 0}});
  const std::vector<Queues> ranks = real_run(real, 4);
  clock.update();
  for (const Queues& queues : ranks) {
    std::vector<Event> events;
    std::map<std::uint32_t, int> issued, told_of;
    for (const auto& queue : queues) {
      for (Event e : queue) {
        e.ticks = static_cast<std::uint64_t>(clock.to_ns(e.ticks));
        events.push_back(e);
        if (e.kind == EventKind::prefetch_issued) ++issued[e.a];
        if (e.kind == EventKind::prefetch_outcome) ++told_of[e.a];
      }
    }
    ASSERT_FALSE(issued.empty());
    EXPECT_EQ(issued, told_of);  // each of them, once
    EXPECT_EQ(all(reported(events)), all(derived(events)));

    constexpr std::int64_t kClocks = 1000;  // between the counters of two cores
    const std::map<std::uint32_t, Known> known = known_of(queues, clock);
    int certain = 0;
    for (const Event& e : events) {
      if (e.kind != EventKind::prefetch_outcome) continue;
      const auto outcome = static_cast<PrefetchOutcome>(e.code);
      ASSERT_LE(outcome, PrefetchOutcome::late);  // nothing is given up here
      EXPECT_EQ(outcome == PrefetchOutcome::late, e.v0 < 0);
      const Known& times = known.at(e.a);
      if (times.need_ns + kClocks < times.end_ns) {
        EXPECT_EQ(outcome, PrefetchOutcome::late) << "gather " << e.a;
        ++certain;
      }
      if (times.before_need_ns - kClocks > times.after_end_ns) {
        EXPECT_NE(outcome, PrefetchOutcome::late) << "gather " << e.a;
        ++certain;
      }
    }
    EXPECT_GT(certain, 4);
  }
}

/// By LimitedOperation: how often the host waited, as its event says.
std::map<std::uint8_t, int> limits_reported(const RealCase& c) {
  std::map<std::uint8_t, int> reported;
  for (const Queues& queues : real_run(c, 3)) {
    for (const Event& e : queues[static_cast<std::size_t>(StreamId::host)]) {
      if (e.kind != EventKind::in_flight_limit) continue;
      ++reported[e.code];
      EXPECT_EQ(e.v0, e.v1 + 1);  // one more than there may be when another starts
    }
  }
  return reported;
}

TEST(InFlightEvents, HostWaitsAsDeepSpeedsDoesWhereItIsAskedTo) {
  const DetailGuard detail(instrumentation::Detail::params);
  constexpr auto kGathers = static_cast<std::uint8_t>(plan::LimitedOperation::gathers);
  constexpr auto kReductions = static_cast<std::uint8_t>(plan::LimitedOperation::reductions);
  RealCase real;
  real.world = 2;
  real.config = stage3({{"reduce_bucket_size", 9000}, {"stage3_param_persistence_threshold", 0}});
  EXPECT_TRUE(limits_reported(real).empty());
  real.config["shardscope"] = {{"compat", "deepspeed"}};
  std::map<std::uint8_t, int> reported = limits_reported(real);
  EXPECT_GT(reported[kGathers], 0);
  EXPECT_GT(reported[kReductions], 0);
  // Each on its own switch, and a limit beyond what is ever in flight is none.
  real.config["shardscope"] = {
      {"compat", {{"max_ongoing_fetch_events", 1}, {"max_param_reduce_events", 1000}}}};
  reported = limits_reported(real);
  EXPECT_GT(reported[kGathers], 0);
  EXPECT_EQ(reported[kReductions], 0);
}

}  // namespace
}  // namespace shardscope::simulate::testing
