// What became of each prefetch: case by case, and against what a random run was made to do, whose recording
// holds only gathers, waits, uses and releases.
#include <gtest/gtest.h>

#include <random>

#include "app/analysis/communication.h"
#include "app/analysis/summary.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kEnd = 1'000'000;
constexpr std::uint32_t kModule = 1;
constexpr auto kGather = static_cast<std::uint8_t>(ev::CollectiveOp::all_gather);

enum class Truth { early, just_in_time, late, given_up, never_used };

/// One prefetch after the other on the two lanes, each with the fate it is given.
class Story {
 public:
  explicit Story(std::uint32_t seed) : run_(1), random_(seed) {
    run_.span(0, 0, kEnd, ev::EventKind::step_begin, ev::StreamId::host, 0);
  }

  void prefetch(Truth truth) {
    const std::uint32_t id = next_++;
    const std::int64_t issued = now_ + 1 + draw(20);
    const std::int64_t begin = issued + draw(30), length = 10 + draw(90), end = begin + length;
    run_.instant(0, issued, ev::EventKind::prefetch_issued, ev::StreamId::host, id, kModule);
    status(begin, id, plan::ParamStatus::in_flight, ev::StatusCause::prefetch);
    run_.span(0, begin, end, ev::EventKind::collective_begin, ev::StreamId::gather, id, id, kGather);
    switch (truth) {
      case Truth::early:
        use(id, end + length + 1 + draw(100), 1);
        ++expected_.early;
        break;
      case Truth::just_in_time:
        use(id, end + draw(static_cast<std::uint32_t>(length)), 1);
        ++expected_.just_in_time;
        break;
      case Truth::late: {
        const std::int64_t wait = begin + draw(static_cast<std::uint32_t>(length));
        use(id, wait, end - wait + 1);
        expected_.late_wait_ns += end - wait + 1;
        ++expected_.late;
        break;
      }
      case Truth::given_up: {
        // The trace breaks: the rank waits for what is under way and frees it.
        const std::int64_t broken = issued + draw(static_cast<std::uint32_t>(length));
        run_.instant(0, broken, ev::EventKind::trace_invalidated, ev::StreamId::host, kModule, 0, 3);
        give_up(id, std::max(broken, begin), end, kModule, ev::StatusCause::invalidation);
        ++expected_.mistargeted;
        break;
      }
      case Truth::never_used:
        // The step waits for it (no module does), or there is no wait.
        give_up(id, end + draw(50), end + 60, chance(50) ? ev::kNoId : kModule, ev::StatusCause::partition);
        ++expected_.unused;
        break;
    }
  }

  [[nodiscard]] bool chance(std::uint32_t percent) { return draw(100) < percent; }
  [[nodiscard]] std::uint32_t draw(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }
  [[nodiscard]] const Prefetch& expected() const { return expected_; }
  [[nodiscard]] Prefetch found() { return prefetch_outcomes(run_.build(), 0, 0, kEnd); }

 private:
  void status(std::int64_t at, std::uint32_t gather, plan::ParamStatus status, ev::StatusCause cause) {
    const bool flying = status == plan::ParamStatus::in_flight;
    run_.instant(0, at, ev::EventKind::param_status, flying ? ev::StreamId::gather : ev::StreamId::compute, 0,
                 kModule, gather, ev::status_code(static_cast<std::uint8_t>(status), cause));
  }
  void use(std::uint32_t id, std::int64_t wait, std::int64_t length) {
    run_.span(0, wait, wait + length, ev::EventKind::fetch_wait_begin, ev::StreamId::compute, kModule, id);
    status(wait + length, id, plan::ParamStatus::available, ev::StatusCause::prefetch);
    // Released by its module, or later with a trace that breaks: it has been used all the same.
    const bool broken = chance(20);
    status(wait + length + 5, id, plan::ParamStatus::not_available,
           broken ? ev::StatusCause::invalidation : ev::StatusCause::release);
    now_ = wait + length + 5;
  }
  void give_up(std::uint32_t id, std::int64_t wait, std::int64_t end, std::uint32_t module,
               ev::StatusCause cause) {
    if (chance(80)) {
      run_.span(0, wait, end + 1, ev::EventKind::fetch_wait_begin, ev::StreamId::compute, module, id);
    }
    status(end + 2, id, plan::ParamStatus::not_available, cause);
    now_ = end + 2;
  }

  RunBuilder run_;
  std::mt19937 random_;
  Prefetch expected_;
  std::int64_t now_ = 0;
  std::uint32_t next_ = 0;
};

TEST(PrefetchOutcome, EarlyJustInTimeLateMistargetedUnused) {
  RunBuilder run(1);
  run.span(0, 0, 10'000, EventKind::step_begin, StreamId::host, 0);
  struct Case {
    std::uint32_t gather;
    std::int64_t begin, end, wait_begin, wait_end;
  };
  for (const Case& c : {Case{1, 100, 200, 1000, 1001},       // lay unused for 800: early
                        Case{2, 1100, 1300, 1400, 1401},     // 100 after the end of a gather of 200: in time
                        Case{3, 2000, 2600, 2500, 2600}}) {  // waited for: late by 100
    run.instant(0, c.begin - 50, EventKind::prefetch_issued, StreamId::host, c.gather, 1);
    run.span(0, c.begin, c.end, EventKind::collective_begin, StreamId::gather, c.gather, c.gather, kGatherOp);
    run.span(0, c.wait_begin, c.wait_end, EventKind::fetch_wait_begin, StreamId::compute, 1, c.gather);
  }
  run.instant(0, 3000, EventKind::prefetch_issued, StreamId::host, 4, 1);
  run.instant(0, 12'000, EventKind::prefetch_issued, StreamId::host, 5, 1);  // after the last step: undecided
  Prefetch p = summarize(run.build()).prefetch.value();
  EXPECT_EQ(p.early, 1U);
  EXPECT_EQ(p.just_in_time, 1U);
  EXPECT_EQ(p.late, 1U);
  EXPECT_EQ(p.late_wait_ns, 100);
  EXPECT_EQ(p.unused, 1U);
  EXPECT_EQ(p.mistargeted, 0U);

  RunBuilder invalidated(1);
  invalidated.span(0, 0, 10'000, EventKind::step_begin, StreamId::host, 0);
  invalidated.instant(0, 100, EventKind::prefetch_issued, StreamId::host, 1, 1);
  invalidated.instant(0, 500, EventKind::trace_invalidated, StreamId::host, 1, 0, 3);
  p = summarize(invalidated.build()).prefetch.value();
  EXPECT_EQ(p.mistargeted, 1U);
  EXPECT_EQ(p.unused, 0U);
}

TEST(PrefetchOutcome, IsWhatARandomRunWasMadeToDo) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Story story(seed);
    const std::uint32_t prefetches = story.draw(40);
    for (std::uint32_t i = 0; i < prefetches; ++i) story.prefetch(static_cast<Truth>(story.draw(5)));
    const Prefetch found = story.found();
    const Prefetch& expected = story.expected();
    EXPECT_EQ(found.early, expected.early) << seed;
    EXPECT_EQ(found.just_in_time, expected.just_in_time) << seed;
    EXPECT_EQ(found.late, expected.late) << seed;
    EXPECT_EQ(found.late_wait_ns, expected.late_wait_ns) << seed;
    EXPECT_EQ(found.mistargeted, expected.mistargeted) << seed;
    EXPECT_EQ(found.unused, expected.unused) << seed;
  }
}

// The host is steps ahead of the device: what it issued during one step is gathered and used in the next, and
// counts there and only there.
TEST(PrefetchOutcome, CountsInTheStepThatGathers) {
  RunBuilder run(1);
  run.span(0, 0, 100, ev::EventKind::step_begin, ev::StreamId::host, 0);
  run.span(0, 100, 300, ev::EventKind::step_begin, ev::StreamId::host, 1);
  run.span(0, 300, 500, ev::EventKind::step_begin, ev::StreamId::host, 2);
  constexpr std::uint32_t kId = 7;
  const auto status = [&](std::int64_t at, ev::StreamId stream, plan::ParamStatus now) {
    run.instant(0, at, ev::EventKind::param_status, stream, 0, kModule, kId,
                ev::status_code(static_cast<std::uint8_t>(now), ev::StatusCause::prefetch));
  };
  run.instant(0, 50, ev::EventKind::prefetch_issued, ev::StreamId::host, kId, kModule);
  status(120, ev::StreamId::gather, plan::ParamStatus::in_flight);
  run.span(0, 120, 140, ev::EventKind::collective_begin, ev::StreamId::gather, kId, kId, kGather);
  run.span(0, 200, 201, ev::EventKind::fetch_wait_begin, ev::StreamId::compute, kModule, kId);
  status(201, ev::StreamId::compute, plan::ParamStatus::available);
  // A second use that reaches into the step after: nothing was gathered there.
  status(310, ev::StreamId::compute, plan::ParamStatus::available);
  const store::Store& store = run.build();
  const auto all = [](const Prefetch& p) {
    return p.early + p.just_in_time + p.late + p.mistargeted + p.unused;
  };
  EXPECT_EQ(all(prefetch_outcomes(store, 0, 0, 100)), 0U);
  const Prefetch second = prefetch_outcomes(store, 0, 100, 300);
  EXPECT_EQ(second.early, 1U);
  EXPECT_EQ(all(second), 1U);
  EXPECT_EQ(all(prefetch_outcomes(store, 0, 300, 500)), 0U);
}

// Of two steps beside each other: what runs beyond the end of one is one of both, whichever of them says that
// it was in vain.
TEST(PrefetchOutcomes, AGatherAcrossTheEndOfAStepIsInVainOnce) {
  constexpr std::int64_t kMiddle = kEnd / 2, kBytes = 400;
  for (const bool reported : {true, false}) {
    for (const std::int64_t said_at : {kMiddle - 20, kMiddle + 60}) {
      RunBuilder run(1);
      constexpr std::uint32_t kId = 5;
      run.instant(0, kMiddle - 100, ev::EventKind::param_status, ev::StreamId::gather, 0, kModule, kId,
                  ev::status_code(static_cast<std::uint8_t>(plan::ParamStatus::in_flight),
                                  ev::StatusCause::prefetch));
      run.span(0, kMiddle - 100, kMiddle + 50, ev::EventKind::collective_begin, ev::StreamId::gather, kId,
               kId, kGather, kBytes / 4, kBytes);
      if (reported) {
        run.instant(0, said_at, ev::EventKind::prefetch_outcome, ev::StreamId::host, kId, kModule, 1,
                    static_cast<std::uint8_t>(plan::PrefetchOutcome::unused));
      }
      const store::Store& store = run.build();
      const Prefetch first = prefetch_outcomes(store, 0, 0, kMiddle),
                     second = prefetch_outcomes(store, 0, kMiddle, kEnd);
      EXPECT_EQ(first.unused + second.unused, 1U) << reported << said_at;
      EXPECT_EQ(first.vain_bytes + second.vain_bytes, kBytes) << reported << said_at;
    }
  }
}

}  // namespace
}  // namespace shardscope::analysis
