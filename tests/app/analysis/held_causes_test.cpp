// The finding held_after_use: each cause that a run can have, with the advice that belongs to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kHeldMs = 1'000'000;

struct Held {
  std::optional<plan::KeepReason> reason;  ///< that the ranks give after the first use
  ev::StatusCause cause = ev::StatusCause::prefetch;
  std::int64_t released_ms = 9;  ///< of the step's ten; 0: never
  bool used = true;
};

/// Six steps of 10 ms; a module runs for the first two of them and from the sixth to the eighth. Its
/// parameter comes at the step's begin. In the middle of the step twice its bytes are in use for a
/// millisecond.
std::optional<Finding> found_with(const Held& held) {
  RunBuilder run(2);
  constexpr auto kDevice = static_cast<std::uint8_t>(static_cast<unsigned>(ev::MemoryPool::device) << 4U);
  const auto status = [](plan::ParamStatus to, ev::StatusCause cause) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(to) | (static_cast<unsigned>(cause) << 4U));
  };
  const auto memory = [&](std::uint32_t rank, std::int64_t at, bool more, ev::MemoryCategory category,
                          std::int64_t bytes) {
    run.instant(rank, at, more ? EventKind::memory_alloc : EventKind::memory_free, StreamId::host, ev::kNoId,
                ev::kNoId, ev::kNoId, static_cast<std::uint8_t>(kDevice | static_cast<unsigned>(category)),
                bytes, 0);
  };
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t step = 0; step < 6; ++step) {
      const std::int64_t at = step * 10 * kHeldMs, released = at + held.released_ms * kHeldMs;
      run.span(rank, at, at + 10 * kHeldMs, EventKind::step_begin, StreamId::host, step);
      const std::uint32_t module = held.used ? 1 : 0;
      run.span(rank, at + 1, at + 2 * kHeldMs, EventKind::module_begin, StreamId::compute, module, step);
      run.span(rank, at + 6 * kHeldMs, at + 8 * kHeldMs, EventKind::module_begin, StreamId::compute, module,
               step);
      run.instant(rank, at + 1, EventKind::param_status, StreamId::compute, 0, 1, 0,
                  status(plan::ParamStatus::available, held.cause), 1000);
      if (held.released_ms > 0 || step == 0)
        memory(rank, at + 1, true, ev::MemoryCategory::param_gathered, 4000);
      if (held.reason)
        run.instant(rank, at + 2 * kHeldMs, EventKind::release_kept, StreamId::host, 1, 0, ev::kNoId,
                    static_cast<std::uint8_t>(*held.reason), 1000);
      memory(rank, at + 4 * kHeldMs, true, ev::MemoryCategory::activation, 8000);
      memory(rank, at + 5 * kHeldMs, false, ev::MemoryCategory::activation, 8000);
      if (held.released_ms == 0) continue;
      run.instant(rank, released, EventKind::param_status, StreamId::compute, 0, 1, ev::kNoId,
                  status(plan::ParamStatus::not_available, ev::StatusCause::release), 1000);
      memory(rank, released, false, ev::MemoryCategory::param_gathered, 4000);
    }
  }
  const store::Store& store = run.build();
  const std::vector<Finding> all = find(store, summarize(store));
  const auto at = std::ranges::find(all, "held_after_use", &Finding::id);
  return at == all.end() ? std::nullopt : std::optional(*at);
}

TEST(HeldCauses, SaysHowMuchOfThePeakAndWhatToChange) {
  using enum plan::KeepReason;
  struct Case {
    Held held;
    const char* advice;
  };
  for (const auto& [held, advice] : {Case{{reused_soon}, "stage3_max_reuse_distance"},
                                     {{already_fetched}, "A prefetch counted on them"},
                                     {{reshard_off}, "sharding_strategy=ShardingStrategy.FULL_SHARD"},
                                     {{external}, "A module returned them"},
                                     {{std::nullopt}, "No reason for it was recorded"},
                                     {{reused_soon, ev::StatusCause::context}, "GatheredParameters"}}) {
    const auto finding = found_with(held);
    ASSERT_TRUE(finding) << advice;
    EXPECT_NE(finding->next_step.find(advice), std::string::npos) << advice << ": " << finding->next_step;
    EXPECT_NE(finding->title.find("33 %"), std::string::npos) << finding->title;
    EXPECT_EQ(finding->cost_bytes, 4000);
    EXPECT_NE(finding->evidence.find("for 4.0 of 10.0 ms after its use, until the next one"),
              std::string::npos)
        << finding->evidence;
  }
}

TEST(HeldCauses, CountsWhatIsNotReleasedWithinTheStep) {
  const auto finding = found_with({.reason = plan::KeepReason::reused_soon, .released_ms = 0});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->cost_bytes, 4000);
  // 4 ms between the uses and 2 after the second, until the step's end.
  EXPECT_NE(finding->evidence.find("0.0229 MiB\u00b7ms"), std::string::npos) << finding->evidence;
}

TEST(HeldCauses, IsSilentWhereItIsReleasedUsedOrMeantToStay) {
  EXPECT_FALSE(found_with({.reason = plan::KeepReason::persistent}));
  EXPECT_FALSE(found_with({.reason = {}, .cause = ev::StatusCause::persistent}));
  EXPECT_FALSE(found_with({.reason = {}, .released_ms = 3})) << "a release before the peak";
  EXPECT_FALSE(found_with({.reason = {}, .used = false})) << "not used yet: a prefetch";
}

}  // namespace
}  // namespace shardscope::analysis
