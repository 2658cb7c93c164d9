// The replay of FSDP2's groups: what the closed forms of a made training say, and FSDP2's own numbers of
// gathers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "app/analysis/attached/replay.h"
#include "app/analysis/attached/settings.h"
#include "tests/app/analysis/attached/made_groups.h"

namespace shardscope::analysis::attached {
namespace {

using test::MadeGroups;
using testing::HasSubstr;

class AttachedGroups : public testing::TestWithParam<bool> {
 public:
  static constexpr double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }
  /// Milliseconds: a nanosecond at each gate and wait.
  static constexpr double kGates = 200e-6;
  static constexpr std::int64_t kGather = MadeGroups::kIssue + MadeGroups::kGather + MadeGroups::kUnpack;
  static constexpr std::int64_t kReductions = 3 * (MadeGroups::kBucket + MadeGroups::kReduce);
  /// Five gathers that hold the host.
  static constexpr std::int64_t kBlocking =
      5 * kGather + 4 * MadeGroups::kBlock + kReductions + MadeGroups::kUpdate;
  /// Beside computation the gather of the backward's second block is over before it is needed.
  static constexpr std::int64_t kAsync = kBlocking - MadeGroups::kGather;
  static std::int64_t step() { return GetParam() ? kBlocking : kAsync; }

  static ReplayOutcome changed(const store::Store& store, const AttachedRun& run,
                               const std::vector<Change>& changes) {
    return run.play(changed_settings(store.tables(), run.recorded_settings(), changes));
  }
};
INSTANTIATE_TEST_SUITE_P(, AttachedGroups, testing::Bool(), [](const testing::TestParamInfo<bool>& kind) {
  return kind.param ? "Blocking" : "Async";
});

TEST_P(AttachedGroups, TheRecordedSettingsAreReplayed) {
  MadeGroups made(GetParam());
  const AttachedRun run(made.build());
  ASSERT_EQ(run.missing(), "");
  EXPECT_EQ(run.costs().gathers_block, GetParam());
  EXPECT_NEAR(run.costs().step_ms, ms(step()), kGates);
  EXPECT_NEAR(run.modelled().step_ms, ms(step()), kGates);
  EXPECT_EQ(run.modelled().actions.gathers, 5);
  EXPECT_EQ(run.modelled().actions.flushes, 3);
  EXPECT_EQ(run.modelled().actions.peak_gathered_elems, 3 * MadeGroups::kGathered);
}

TEST_P(AttachedGroups, WithoutReshardingTheBackwardGathersNothing) {
  MadeGroups made(GetParam());
  const store::Store& store = made.build();
  const AttachedRun run(store);
  const ReplayOutcome out = changed(store, run, {{"fully_shard.reshard_after_forward", "false"}});
  EXPECT_EQ(out.actions.gathers, 3);
  EXPECT_EQ(out.actions.peak_gathered_elems, 3 * MadeGroups::kGathered);
  // Of the two gathers in the backward one is hidden where gathers run beside computation.
  const std::int64_t gathers = 2 * kGather - (GetParam() ? 0 : MadeGroups::kGather);
  EXPECT_NEAR(out.step_ms, ms(step() - gathers), kGates);
  EXPECT_EQ(out.model_state_bytes, run.modelled().model_state_bytes) << "gathered parameters are no state";
}

TEST_P(AttachedGroups, AReshardedRootIsGatheredAgain) {
  MadeGroups made(GetParam());
  const store::Store& store = made.build();
  const AttachedRun run(store);
  const ReplayOutcome out = changed(store, run, {{"fully_shard.root_reshard_after_forward", "true"}});
  EXPECT_EQ(out.actions.gathers, 6);
  EXPECT_NEAR(out.step_ms, ms(step() + kGather), kGates);
}

TEST_P(AttachedGroups, APrefetchInTheForwardIsHiddenUnlessGathersHoldTheHost) {
  MadeGroups made(GetParam());
  const store::Store& store = made.build();
  const AttachedRun run(store);
  const ReplayOutcome out = changed(store, run, {{"fully_shard.groups_to_forward_prefetch", "1"}});
  EXPECT_EQ(out.actions.gathers, 5);
  // The root computes nothing: the first block's gather hides only the root's unpacking, the second's all.
  const std::int64_t hidden = GetParam() ? 0 : MadeGroups::kGather;
  EXPECT_NEAR(out.step_ms, ms(step() - hidden), kGates + ms(MadeGroups::kUnpack));
}

TEST_P(AttachedGroups, EveryMicroStepGathersAndReducesAgain) {
  MadeGroups made(GetParam());
  const store::Store& store = made.build();
  const AttachedRun run(store);
  const ReplayOutcome out = changed(store, run, {{"gradient_accumulation_steps", "2"}});
  EXPECT_EQ(out.actions.gathers, 10);
  EXPECT_EQ(out.actions.flushes, 6);
  EXPECT_NEAR(out.step_ms, ms(2 * step() - MadeGroups::kUpdate), 2 * kGates);
}

TEST(AttachedGroupsInMicroSteps, AReductionInTheLastOneHoldsWholeGradients) {
  MadeGroups made(true);
  const store::Store& store = made.build(2);
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  EXPECT_EQ(run.modelled().actions.flushes, 6);
  const ReplayOutcome out =
      AttachedGroups::changed(store, run, {{"fully_shard.reduce_in_last_micro_step_only", "true"}});
  EXPECT_EQ(out.actions.flushes, 3);
  EXPECT_EQ(out.actions.gathers, 10);
  EXPECT_NEAR(
      out.step_ms,
      AttachedGroups::ms(2 * AttachedGroups::kBlocking - MadeGroups::kUpdate - AttachedGroups::kReductions),
      2 * AttachedGroups::kGates);
  // Recorded: a whole gradient, and shards of all groups from the micro-step before. Changed: three whole
  // ones.
  const std::int64_t recorded = 4 * (MadeGroups::kElems + 3 * MadeGroups::kElems / 2);
  EXPECT_EQ(out.model_state_bytes - run.modelled().model_state_bytes, 4 * 3 * MadeGroups::kElems - recorded);
}

TEST(AttachedGroupsPrefetch, ExplicitListsAreThoseOfTheRun) {
  MadeGroups made(true);
  made.with_explicit_prefetch();
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  EXPECT_EQ(run.modelled().actions.peak_gathered_elems, 3 * MadeGroups::kGathered);
  const ReplayOutcome own =
      AttachedGroups::changed(store, run, {{"fully_shard.groups_to_backward_prefetch", "1"}});
  EXPECT_EQ(own.actions.gathers, 5);
}

TEST(AttachedGroupsRefuse, ARunThatDecidedOtherwise) {
  MadeGroups made(true);
  made.without_prefetch();
  EXPECT_THAT(AttachedRun(made.build()).missing(), HasSubstr("at other module boundaries"));
}

TEST(AttachedGroupsRefuse, GroupsThatAreReshardedToAPartOfTheRanks) {
  for (const char* settings :
       {R"({"reshard_after_forward": 2})", R"({"reshard_after_forward": {"true": 3, "4": 2}})",
        R"({"reshard_after_forward": true, "root_reshard_after_forward": 2})"}) {
    MadeGroups secondary(true);
    secondary.run().change_tables([&](instrumentation::RunTables& tables) {
      tables.config_json = std::string(R"({"fully_shard": )") + settings + "}";
    });
    EXPECT_THAT(AttachedRun(secondary.build()).missing(), HasSubstr("to a part of the ranks")) << settings;
  }
  MadeGroups replicas(true);
  replicas.run().change_tables([](instrumentation::RunTables& tables) {
    using Purpose = instrumentation::GroupPurpose;
    tables.groups = {{1, "replicas", Purpose::replica, {0, 1}}, {2, "shards", Purpose::shard, {0}}};
  });
  EXPECT_THAT(AttachedRun(replicas.build()).missing(), HasSubstr("a part of the ranks"));
  MadeGroups mixed(true);
  mixed.run().change_tables([](instrumentation::RunTables& tables) {
    tables.config_json = R"({"fully_shard": {"reshard_after_forward": {"true": 1, "false": 1}}})";
  });
  EXPECT_EQ(AttachedRun(mixed.build()).missing(), "");
}

TEST(AttachedGroupsRefuse, SettingsThatTheRecordingDoesNotDetermine) {
  MadeGroups listed(true);
  listed.with_explicit_prefetch();
  const store::Store& store = listed.build();
  const AttachedRun run(store);
  const Change keep{"fully_shard.reshard_after_forward", "false"};
  EXPECT_THROW((void)AttachedGroups::changed(store, run, {keep}), std::invalid_argument)
      << "which groups the script names is known only of those that had to be gathered";
  EXPECT_NO_THROW(
      (void)AttachedGroups::changed(store, run, {keep, {"fully_shard.groups_to_backward_prefetch", "1"}}));
  EXPECT_THROW(
      (void)AttachedGroups::changed(store, run, {{"fully_shard.reduce_in_last_micro_step_only", "true"}}),
      std::invalid_argument);
  ReplaySettings many = run.recorded_settings();
  many.zero.gradient_accumulation_steps = 1'000'000;
  EXPECT_THROW((void)run.play(many), std::invalid_argument) << "does not fit in memory";
}

TEST(AttachedGroupsRefuse, SettingsThatFsdp2DoesNotHave) {
  MadeGroups made(true);
  const store::Store& store = made.build();
  const AttachedRun run(store);
  const auto refusal = [&](const Change& change) -> std::string {
    try {
      (void)AttachedGroups::changed(store, run, {change});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({"zero_optimization.stage", "2"}),
              HasSubstr("FSDP2 has no such setting; what can be asked"));
  EXPECT_THAT(refusal({"fully_shard.groups", "2"}), HasSubstr("boundaries of modules that are no group"));
  EXPECT_THAT(refusal({"fully_shard.reshard_after_forward", "2"}), HasSubstr("true or false"));
  EXPECT_THAT(refusal({"fully_shard.groups_to_backward_prefetch", "0"}), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace shardscope::analysis::attached
