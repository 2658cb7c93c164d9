// Rehearsed faults: what --fault may say, which runs they can happen in, and what an executor does of them.
#include "runtime/plan/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace shardscope::plan {
namespace {

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_fault(text));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "taken";
}

std::string refusal(const std::string& text, const FaultRun& run) {
  try {
    check_fault(parse_fault(text), run);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "taken";
}

TEST(Fault, IsReadInAnyOrder) {
  const Fault fault = parse_fault("kind=skip-module,module=blk.1,step=3,rank=2");
  EXPECT_EQ(fault.rank, 2U);
  EXPECT_EQ(fault.step, 3);
  EXPECT_EQ(fault.kind, FaultKind::skip_module);
  EXPECT_EQ(fault.module, "blk.1");
}

TEST(Fault, EveryKindIsWrittenAsItIsRead) {
  for (const FaultKind kind : {FaultKind::return_early, FaultKind::skip_module, FaultKind::swap_modules,
                               FaultKind::fewer_micro_steps, FaultKind::fewer_steps, FaultKind::save_alone,
                               FaultKind::stop, FaultKind::die}) {
    const bool module = kind == FaultKind::skip_module || kind == FaultKind::swap_modules;
    const std::string text =
        "rank=1,step=0,kind=" + std::string(name_of(kind)) + (module ? ",module=blk.0" : "");
    EXPECT_EQ(parse_fault(text).kind, kind) << text;
  }
}

TEST(Fault, WhatIsWrongIsSaidWithWhatWouldBeRight) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal("rank=1,step=3"), HasSubstr("kind is missing; write rank=R,step=S,kind=KIND"));
  EXPECT_THAT(refusal("rank=1,kind=die"), HasSubstr("step is missing"));
  EXPECT_THAT(refusal("step=1,kind=die"), HasSubstr("rank is missing"));
  EXPECT_THAT(refusal("rank=1,step=3,kind=sleep"),
              HasSubstr("kind=sleep is unknown; there are return, skip-"));
  EXPECT_THAT(refusal("rank=-1,step=3,kind=die"), HasSubstr("rank=-1: give a whole number"));
  EXPECT_THAT(refusal("rank=1,step=-3,kind=die"), HasSubstr("step=-3: give a whole number"));
  EXPECT_THAT(refusal("rank=1,step=3x,kind=die"), HasSubstr("step=3x: give a whole number"));
  EXPECT_THAT(refusal("rank=1,step=,kind=die"), HasSubstr("step=: give a whole number"));
  EXPECT_THAT(refusal("rank=99999999999,step=3,kind=die"),
              HasSubstr("rank=99999999999: give a whole number"));
  EXPECT_THAT(refusal("rank=1,rank=2,step=3,kind=die"), HasSubstr("rank is given twice"));
  EXPECT_THAT(refusal("rank=1,step=3,kind=die,when=now"), HasSubstr("\"when=now\" is unknown"));
  EXPECT_THAT(refusal("rank=1,step=3,kind=skip-module"), HasSubstr("needs module=PATH"));
  EXPECT_THAT(refusal("rank=1,step=3,kind=die,module=blk.1"), HasSubstr("kind=die takes no module"));
  EXPECT_THAT(refusal(""), HasSubstr("rank is missing"));
}

TEST(Fault, MustBeAbleToHappenInTheRun) {
  using ::testing::HasSubstr;
  const ModelPlan model = build_model_plan(named_model("mlp"));
  FaultRun run{model, 3, 10};
  EXPECT_EQ(refusal("rank=2,step=9,kind=die", run), "taken");
  EXPECT_THAT(refusal("rank=3,step=9,kind=die", run), HasSubstr("the run has 3 ranks"));
  EXPECT_THAT(refusal("rank=2,step=10,kind=die", run), HasSubstr("the run ends after 10"));
  EXPECT_THAT(refusal("rank=2,step=1,kind=save-alone", run), HasSubstr("needs --checkpoint"));
  EXPECT_THAT(refusal("rank=2,step=1,kind=fewer-micro-steps", run), HasSubstr("gradient_accumulation_steps"));
  run.has_checkpoints = true;
  run.accumulation_steps = 2;
  EXPECT_EQ(refusal("rank=2,step=1,kind=save-alone", run), "taken");
  EXPECT_EQ(refusal("rank=2,step=1,kind=fewer-micro-steps", run), "taken");
  run.every_rank_saves = false;
  EXPECT_THAT(refusal("rank=2,step=1,kind=save-alone", run), HasSubstr("ranks of one copy save"));
  run.resumes = true;
  EXPECT_THAT(refusal("rank=2,step=9,kind=die", run), HasSubstr("begins at step 0"));
  EXPECT_THAT(refusal("rank=0,step=1,kind=die", {model, 1, 10}), HasSubstr("one rank waits for no other"));
}

TEST(Fault, LeavesANetworkThatCanRun) {
  using ::testing::HasSubstr;
  const ModelPlan mlp = build_model_plan(named_model("mlp"));
  const FaultRun run{mlp, 2, 10};
  const auto skip = [&](const std::string& module) {
    return refusal("rank=1,step=1,kind=skip-module,module=" + module, run);
  };
  const auto swap = [&](const std::string& module) {
    return refusal("rank=1,step=1,kind=swap-modules,module=" + module, run);
  };
  EXPECT_EQ(skip("blk.1"), "taken");
  EXPECT_EQ(skip("blk.0.ln"), "taken");
  EXPECT_THAT(skip("inp"), HasSubstr("module=inp cannot be skipped"));  // 10 to 64
  EXPECT_THAT(skip("blk.0.fc1"), HasSubstr("cannot be skipped"));
  EXPECT_THAT(skip("blk.9"), HasSubstr("is no module of this model"));
  EXPECT_EQ(swap("blk.0"), "taken");
  EXPECT_THAT(swap("blk.2"), HasSubstr("is the last of its list"));
  EXPECT_THAT(swap("inp"), HasSubstr("cannot run after the next"));
}

TEST(Fault, IsDescribedInASentence) {
  EXPECT_EQ(describe(parse_fault("rank=1,step=3,kind=skip-module,module=blk.1")),
            "rank 1 skips module blk.1 in step 3");
  EXPECT_EQ(describe(parse_fault("rank=0,step=2,kind=swap-modules,module=blk.0")),
            "rank 0 runs the next module before blk.0 in step 2");
  EXPECT_EQ(describe(parse_fault("rank=1,step=3,kind=die")), "rank 1 dies (SIGKILL) before step 3");
  EXPECT_EQ(describe(parse_fault("rank=1,step=3,kind=fewer-micro-steps")),
            "rank 1 makes one micro-step fewer in step 3");
}

TEST(Fault, ADetourLastsForTheMicroStepsOfItsStep) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  const auto fault = executor_fault_of(parse_fault("rank=1,step=3,kind=skip-module,module=blk.1"), model, 2);
  ASSERT_TRUE(fault);
  EXPECT_EQ(model.modules[raw(fault->module)].path, "blk.1");
  EXPECT_FALSE(fault->swaps);
  EXPECT_FALSE(fault->in(5));
  EXPECT_TRUE(fault->in(6));
  EXPECT_TRUE(fault->in(7));
  EXPECT_FALSE(fault->in(8));
  EXPECT_FALSE(executor_fault_of(parse_fault("rank=1,step=3,kind=die"), model, 2));
}

}  // namespace
}  // namespace shardscope::plan
