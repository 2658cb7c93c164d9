// The replay of DistributedDataParallel's buckets: a made training whose times are closed forms.
#include "app/analysis/attached/ddp_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "app/analysis/attached/replay.h"
#include "app/analysis/attached/settings.h"
#include "tests/app/analysis/attached/made_ddp.h"

namespace shardscope::analysis::attached {
namespace {

using test::MadeDdp;
using testing::HasSubstr;

class AttachedDdp : public testing::Test {
 protected:
  static double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }
  static constexpr double kGates = 100e-6;  ///< ms: a nanosecond at each
  static constexpr std::int64_t kComputed = 6 * MadeDdp::kLayer + MadeDdp::kUpdate;

  void play(std::uint32_t micro_steps = 1) {
    store_ = &made_.build(micro_steps);
    run_.emplace(*store_);
    ASSERT_EQ(run_->missing(), "");
    ASSERT_EQ(run_->no_times(), "");
  }
  [[nodiscard]] ReplayOutcome with(const std::string& key, const std::string& value) const {
    return run_->play(changed_settings(store_->tables(), run_->recorded_settings(), {{key, value}}));
  }

  MadeDdp made_;
  const store::Store* store_ = nullptr;
  std::optional<AttachedRun> run_;
};

TEST_F(AttachedDdp, TheRecordedBucketsAreReducedBesideTheBackward) {
  play();
  EXPECT_EQ(run_->modelled().actions.flushes, 2);
  // Only the second is waited for: it begins when the backward ends.
  EXPECT_NEAR(run_->costs().step_ms, ms(kComputed + MadeDdp::reduction(2000)), kGates);
  EXPECT_NEAR(run_->modelled().step_ms, run_->costs().step_ms, kGates);
  EXPECT_NEAR(run_->modelled().waited_ms, ms(MadeDdp::reduction(2000)), kGates);
}

TEST_F(AttachedDdp, OtherBucketsAreReducedWhenTheirLastGradientIsReady) {
  play();
  // 4,000 bytes: every gradient alone.
  const ReplayOutcome each = with("DistributedDataParallel.bucket_cap_mb", "0.0038");
  EXPECT_EQ(each.actions.flushes, 3);
  EXPECT_NEAR(each.step_ms, ms(kComputed + MadeDdp::reduction(1000)), kGates);
  const ReplayOutcome one = with("DistributedDataParallel.bucket_cap_mb", "100");
  EXPECT_EQ(one.actions.flushes, 1);
  EXPECT_NEAR(one.step_ms, ms(kComputed + MadeDdp::reduction(3000)), kGates);
  // A bucket is complete once it has reached its size: two gradients of 4,000 bytes for 4,200.
  const ReplayOutcome two = with("DistributedDataParallel.bucket_cap_mb", "0.004");
  EXPECT_EQ(two.actions.flushes, 2);
  EXPECT_NEAR(two.step_ms, ms(kComputed + MadeDdp::reduction(1000)), kGates);
}

TEST_F(AttachedDdp, MicroStepsOfNoSyncReduceNothing) {
  play(2);
  EXPECT_EQ(run_->modelled().actions.flushes, 2);
  const ReplayOutcome four = with("gradient_accumulation_steps", "4");
  EXPECT_EQ(four.actions.flushes, 2);
  EXPECT_NEAR(four.step_ms - run_->modelled().step_ms, ms(2 * 6 * MadeDdp::kLayer), kGates);
}

TEST_F(AttachedDdp, AReductionInTheLastMicroStepOnlyIsThatOfNoSync) {
  made_.reduce_in_each();
  play(2);
  EXPECT_EQ(run_->modelled().actions.flushes, 4);
  const ReplayOutcome last = with("DistributedDataParallel.reduce_in_last_micro_step_only", "true");
  EXPECT_EQ(last.actions.flushes, 2);
  // Of each micro-step the second bucket was waited for.
  EXPECT_NEAR(run_->modelled().step_ms - last.step_ms, ms(MadeDdp::reduction(2000)), kGates);
  EXPECT_EQ(last.model_state_bytes, run_->modelled().model_state_bytes) << "gradients are whole anyway";
  const ReplayOutcome each = with("DistributedDataParallel.reduce_in_last_micro_step_only", "false");
  EXPECT_EQ(each.actions.flushes, 4);
}

TEST_F(AttachedDdp, CompressedGradientsTakeTheTimeOfTheirBytes) {
  made_.compress();
  play();
  EXPECT_NEAR(run_->costs().reduce_elem_bytes, 2, 1e-9);
  const ReplayOutcome one = with("DistributedDataParallel.bucket_cap_mb", "100");
  EXPECT_NEAR(one.step_ms, ms(kComputed + MadeDdp::reduction(3000)), kGates);
}

TEST_F(AttachedDdp, ARunThatReducedElsewhereIsNotReplayed) {
  made_.reduce_early();
  EXPECT_THAT(AttachedRun(made_.build()).missing(), HasSubstr("at other module boundaries"));
}

TEST_F(AttachedDdp, RefusesWhatItDoesNotHave) {
  play();
  const auto refusal = [&](const std::string& key, const std::string& value) -> std::string {
    try {
      (void)with(key, value);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("zero_optimization.stage", "2"), HasSubstr("has no such setting; what can be asked"));
  EXPECT_THAT(refusal("DistributedDataParallel.bucket_cap_mb", "0"), HasSubstr("above 0"));
  EXPECT_THAT(refusal("DistributedDataParallel.bucket_cap_mb", "many"), HasSubstr("above 0"));
  EXPECT_THAT(refusal("DistributedDataParallel.bucket_cap_mb", "2000000"), HasSubstr("at most 1048576"));
  EXPECT_THAT(refusal("DistributedDataParallel.reduce_in_last_micro_step_only", "true"),
              HasSubstr("nothing with one micro-step"));
  ReplaySettings many = run_->recorded_settings();
  many.zero.gradient_accumulation_steps = 1'000'000;
  EXPECT_THROW((void)run_->play(many), std::invalid_argument) << "does not fit in memory";
  EXPECT_THAT(refusal("DistributedDataParallel.static_graph", "true"), HasSubstr("have gradients"));
}

}  // namespace
}  // namespace shardscope::analysis::attached
