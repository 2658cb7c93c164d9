// Whom a launch belongs to, from the engine's own events.
#include "runtime/profile/open_spans.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace shardscope::profile {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::GpuOwner;
using instrumentation::Pass;
using instrumentation::Phase;
using instrumentation::StreamId;

Event module(EventKind kind, std::uint32_t id, Pass pass = Pass::forward) {
  return {.kind = kind, .stream = StreamId::compute, .code = static_cast<std::uint8_t>(pass), .a = id};
}
Event collective(EventKind kind, std::uint32_t sequence, StreamId stream = StreamId::gather) {
  return {.kind = kind, .stream = stream, .a = sequence};
}

TEST(OpenSpans, TheInnermostOpenSpanOwnsWhatIsLaunched) {
  OpenSpans spans;
  EXPECT_EQ(spans.innermost(), Owner{});
  EXPECT_TRUE(spans.note({.kind = EventKind::phase_begin,
                          .stream = StreamId::compute,
                          .code = static_cast<std::uint8_t>(Phase::forward),
                          .a = 3}));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::phase, static_cast<std::uint32_t>(Phase::forward)}));
  EXPECT_TRUE(spans.note(module(EventKind::module_begin, 4)));
  EXPECT_TRUE(spans.note(module(EventKind::module_begin, 5, Pass::recompute)));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::recompute, 5}));
  EXPECT_TRUE(spans.note(module(EventKind::module_end, 5, Pass::recompute)));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::forward, 4}));
  EXPECT_FALSE(spans.note({.kind = EventKind::memory_alloc, .a = 1}));
}

TEST(OpenSpans, SpansOfOtherStreamsNeedNotNest) {
  OpenSpans spans;
  (void)spans.note(module(EventKind::module_begin, 4));
  (void)spans.note(collective(EventKind::collective_begin, 100));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::collective, 100}));
  (void)spans.note(module(EventKind::module_end, 4));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::collective, 100}));
  (void)spans.note(module(EventKind::module_begin, 6));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::forward, 6}));
  EXPECT_FALSE(spans.note(collective(EventKind::collective_end, 100, StreamId::reduce)));
  EXPECT_TRUE(spans.note(collective(EventKind::collective_end, 100)));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::forward, 6}));
  // An end of another pass or stream ends nothing.
  EXPECT_FALSE(spans.note(module(EventKind::module_end, 6, Pass::backward)));
  EXPECT_FALSE(spans.note(collective(EventKind::collective_end, 100)));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::forward, 6}));
}

TEST(OpenSpans, EndsThatWereNeverEmittedAreForgottenAtTheNextPhase) {
  OpenSpans spans;
  (void)spans.note(module(EventKind::module_begin, 4));
  (void)spans.note(module(EventKind::module_begin, 5));
  // The level was lowered here and raised again a step later.
  (void)spans.note({.kind = EventKind::phase_begin, .stream = StreamId::compute, .code = 1});
  (void)spans.note({.kind = EventKind::phase_end, .stream = StreamId::compute, .code = 1});
  EXPECT_EQ(spans.innermost(), Owner{});
}

TEST(OpenSpans, DeeperThanItKeepsTheParentsOwnTheLaunches) {
  OpenSpans spans;
  for (std::uint32_t i = 0; i < 70; ++i) (void)spans.note(module(EventKind::module_begin, i));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::forward, 63}));
  for (std::uint32_t i = 70; i-- > 64;) (void)spans.note(module(EventKind::module_end, i));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::forward, 63}));
  (void)spans.note(module(EventKind::module_end, 63));
  EXPECT_EQ(spans.innermost(), (Owner{GpuOwner::forward, 62}));
}

TEST(KernelSpans, ASpanInWhichRecordingBeginsOrEndsIsEmittedWholeOrNotAtAll) {
  const Event begin{.kind = EventKind::kernel_begin};
  const Event end{.kind = EventKind::kernel_end};
  const Event other = module(EventKind::module_begin, 4);
  KernelSpans spans;
  EXPECT_TRUE(spans.emits(begin, false));
  EXPECT_TRUE(spans.emits(end, true)) << "recording began within it";
  EXPECT_FALSE(spans.emits(begin, true));
  EXPECT_TRUE(spans.emits(other, true));
  EXPECT_FALSE(spans.emits(end, true));
  EXPECT_FALSE(spans.emits(begin, true));
  EXPECT_FALSE(spans.emits(end, false)) << "recording ended within it";
  EXPECT_TRUE(spans.emits(begin, false));
  EXPECT_TRUE(spans.emits(end, false));
}

TEST(Owner, SurvivesTheWayThroughANumberAndForeignNumbersAreNobody) {
  for (const Owner owner : {Owner{}, Owner{GpuOwner::forward, 0}, Owner{GpuOwner::collective, 4'000'000'000U},
                            Owner{GpuOwner::phase, 2}, Owner{GpuOwner::transfer, instrumentation::kNoId}}) {
    EXPECT_EQ(owner_of_id(owner_id(owner)), owner);
  }
  EXPECT_EQ(owner_id(Owner{}), 0U);
  EXPECT_NE(owner_id({GpuOwner::forward, 0}), 0U);
  EXPECT_EQ(owner_of_id(17), Owner{});
  EXPECT_EQ(owner_of_id(~std::uint64_t{0}), Owner{});
}

/// A thread's stack of ids as CUPTI keeps it.
struct Stack {
  std::vector<std::uint64_t> ids;
  void replace(PushedOwner& owner, std::uint64_t id) {
    owner.replace_with(
        id,
        [this]() -> std::optional<std::uint64_t> {
          if (ids.empty()) return std::nullopt;
          const std::uint64_t top = ids.back();
          ids.pop_back();
          return top;
        },
        [this](std::uint64_t pushed) {
          ids.push_back(pushed);
          return true;
        });
  }
};

TEST(PushedOwner, TheStackIsNeverDeeperThanOneOfOurs) {
  Stack stack{{7}};  // another library's
  PushedOwner owner;
  for (const std::uint64_t id : {11U, 12U, 0U, 13U}) {
    stack.replace(owner, id);
    EXPECT_EQ(stack.ids, id == 0 ? std::vector<std::uint64_t>{7} : (std::vector<std::uint64_t>{7, id}));
  }
}

// Recording ends inside a span and begins again outside of all.
TEST(PushedOwner, WhatWasPushedBeforeRecordingEndedIsTakenOffWhenItBeginsAgain) {
  Stack stack;
  PushedOwner owner;
  stack.replace(owner, 11);
  stack.replace(owner, 0);
  EXPECT_TRUE(stack.ids.empty());
  stack.replace(owner, 12);
  stack.ids = {7};  // forgotten by the profiler, and another's is there
  stack.replace(owner, 13);
  EXPECT_EQ(stack.ids, (std::vector<std::uint64_t>{7, 13}));
}

}  // namespace
}  // namespace shardscope::profile
