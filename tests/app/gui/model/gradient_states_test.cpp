// States of gradients, buckets, and DeepSpeed's summary of a parameter, against the store.
#include "app/gui/model/gradient_states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/gui/model/ds_summary.h"
#include "app/gui/model/format.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

TEST_F(Model, DsSummaryAgreesWithTheStore) {
  const auto field = [&](std::int64_t at, const char* label) {
    for (const Field& one : ds_summary(data(), 0, 0, at)) {
      if (one.label == label) return one.value;
    }
    return std::string("(none)");
  };
  const ev::ParamInfo& info = data().tables().params[0];
  EXPECT_EQ(field(0, "ds_tensor.shape"), "[" + std::to_string(info.shard_elems) + "]");
  bool here = false;
  bool gone = false;
  for (std::int64_t at = 0; at < data().end_ns(); at += data().end_ns() / 200 + 1) {
    const auto status = static_cast<plan::ParamStatus>(ev::status_of(data().param_state(0, 0, at).status));
    const bool available = status == plan::ParamStatus::available;
    EXPECT_EQ(field(at, "status") == "AVAILABLE", available) << at;
    EXPECT_EQ(field(at, "numel") != "0", available) << at;
    here |= available;
    gone |= !available;
  }
  EXPECT_TRUE(here && gone) << "both were seen";
}

std::string ds_field(const store::Store& store, std::int64_t at, const char* label) {
  for (const Field& one : ds_summary(store, 0, 0, at)) {
    if (one.label == label) return one.value;
  }
  return "(none)";
}

/// DeepSpeed gives up `param.grad` with the reduction in stage 3, and keeps it to the step in stage 0.
TEST_F(Model, DsSummaryHasTheGradientFromItsBackwardToItsReduction) {
  const store::StepRow& step = data().steps()[1];
  const std::string shape = shape_text(data().tables().params[0].shape);
  std::vector<std::string> seen;
  for (std::int64_t at = step.begin_ns; at < step.end_ns; at += (step.end_ns - step.begin_ns) / 400 + 1) {
    const std::string now = ds_field(data(), at, "grad_shape");
    if (seen.empty() || seen.back() != now) seen.push_back(now);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"None", shape, "None"}));
  EXPECT_EQ(ds_field(data(), 0, "ds_param_type"), "PARTITIONED");
  store::SyntheticOptions options;
  options.stage = 0;
  const store::Store whole = store::make_synthetic_store(options);
  const std::int64_t before_next = whole.steps()[2].begin_ns - 1;
  EXPECT_EQ(ds_field(whole, before_next, "grad_shape"), shape);
  EXPECT_EQ(ds_field(whole, whole.steps()[1].begin_ns, "grad_shape"), "None");
  EXPECT_EQ(ds_field(whole, 0, "ds_param_type"), "NORMAL");
  EXPECT_EQ(ds_field(whole, 0, "final_location"), "(none)") << "nothing is divided";
}

TEST_F(Model, EveryTrainedGradientIsReducedWhenItsStepHasEndedAndNoneWhenItBegins) {
  const store::StepRow& step = data().steps()[1];
  for (const GradientState& state : gradient_states(data(), 0, step.begin_ns)) {
    EXPECT_EQ(state.status, GradientStatus::none);
  }
  const std::vector<GradientState> at_end = gradient_states(data(), 0, data().steps()[2].begin_ns - 1);
  ASSERT_EQ(at_end.size(), data().tables().params.size());
  for (std::size_t i = 0; i < at_end.size(); ++i) {
    EXPECT_EQ(at_end[i].status, GradientStatus::reduced) << data().tables().params[i].name;
  }
}

TEST_F(Model, KeptGradientsAreThoseOfTheTimeAndRankAskedFor) {
  const std::int64_t begin = data().steps()[1].begin_ns, end = data().steps()[2].begin_ns - 1;
  GradientStatesAt kept;
  const auto same = [](const std::vector<GradientState>& a, const std::vector<GradientState>& b) {
    return std::ranges::equal(a, b, [](const GradientState& x, const GradientState& y) {
      return x.status == y.status && x.bucket == y.bucket && x.since_ns == y.since_ns;
    });
  };
  // There and back, so that what was kept of another time or rank would be seen.
  bool differ = false;
  for (const std::int64_t at : {begin, end, begin}) {
    for (const std::uint32_t rank : {0U, 1U, 0U}) {
      EXPECT_TRUE(same(kept.of(data(), rank, at), gradient_states(data(), rank, at))) << rank << " at " << at;
    }
    differ |= !same(kept.of(data(), 0, at), gradient_states(data(), 0, begin));
  }
  EXPECT_TRUE(differ) << "the two times have different states";
}

TEST_F(Model, WhatTheStoreHasInABucketIsInItOnTheMap) {
  const store::StepRow& step = data().steps()[1];
  std::size_t seen_in_bucket = 0;
  for (int i = 0; i < 400; ++i) {
    const std::int64_t at = step.begin_ns + (step.end_ns - step.begin_ns) * i / 400;
    const std::vector<GradientState> states = gradient_states(data(), 0, at);
    for (const store::BucketState& bucket : data().buckets_at(0, at)) {
      for (const std::uint32_t param : bucket.params) {
        EXPECT_EQ(states[param].status, GradientStatus::in_bucket) << at;
        EXPECT_EQ(states[param].bucket, bucket.bucket) << at;
        ++seen_in_bucket;
      }
    }
  }
  EXPECT_GT(seen_in_bucket, 0U);
}

TEST_F(Model, FlushesAreAsManyAsTheRunHas) {
  const auto all = bucket_flushes(data(), 0, store::Store::kBegin, store::Store::kEnd);
  EXPECT_EQ(all.size(), data().instant_count(0, ev::EventKind::bucket_flush));
  for (const BucketFlush& flush : all) EXPECT_LE(flush.opened_ns, flush.at_ns);
}

}  // namespace
}  // namespace shardscope::gui
