// ZenFlow's decisions against the formulas of docs/zero.md O5, worked out by hand or by another way.
#include "runtime/plan/zenflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ZenFlow, AutoIsResolvedAsDeepSpeedDoes) {
  ZenFlowConfig config;
  ZenFlowSettings settings = resolve_zenflow(config);
  EXPECT_EQ(settings.select_interval, 0) << "no epochs known: chosen once";
  EXPECT_EQ(settings.update_interval, 0);
  config.steps_per_epoch = 40;
  EXPECT_EQ(resolve_zenflow(config).select_interval, 40);
  config.select_strategy = "epoch";
  config.select_interval = 2;
  EXPECT_EQ(resolve_zenflow(config).select_interval, 80);
  config.select_strategy = "step";
  config.select_interval = 12;
  config.update_interval = 4;
  EXPECT_EQ(resolve_zenflow(config).select_interval, 12);
  EXPECT_EQ(resolve_zenflow(config).update_interval, 4);
}

std::string refusal(const ZenFlowConfig& config) {
  try {
    (void)resolve_zenflow(config);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ZenFlow, RefusesIntervalsThatContradict) {
  ZenFlowConfig config;
  config.select_interval = 3;
  EXPECT_THAT(refusal(config), HasSubstr("select_interval 3"));
  config.select_strategy = "step";
  config.update_interval = 5;
  EXPECT_THAT(refusal(config), HasSubstr("must not be shorter than update_interval, which is 5"));
  config.select_interval = ZenFlowConfig::kAuto;
  EXPECT_THAT(refusal(config), HasSubstr("needs it as a number"));
}

TEST(ZenFlow, ColumnsWithTheLargestScores) {
  const std::vector<float> scores = {1, 5, 3, 5, 0, 2, 5};
  EXPECT_THAT(select_columns(scores, 0.3), ElementsAre(1, 3)) << "int(2.1), the lower of equal columns";
  EXPECT_THAT(select_columns(scores, 0.6), ElementsAre(1, 2, 3, 6));
  EXPECT_THAT(select_columns(scores, 0.1), IsEmpty());
  EXPECT_EQ(select_columns(scores, 1.0).size(), scores.size());
}

TEST(ZenFlow, SlicesCoverTheOwnedElementsOnce) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  for (const std::uint32_t stage : {1U, 2U, 3U}) {
    for (const std::uint32_t world : {1U, 2U, 3U}) {
      ZeroConfig zero;
      zero.stage = stage;
      const Ownership ownership(model, zero, world);
      std::int64_t elems = 0;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        std::int64_t end = 0;
        for (const ColumnSlice& slice : column_slices(model, ownership, rank, 0.25)) {
          EXPECT_GE(slice.owned_offset, end);
          end = slice.owned_offset + slice.elems;
          elems += slice.elems;
          const ParamPlan& param = model.params[raw(slice.param)];
          EXPECT_EQ(slice.columns, param.shape.size() == 2 ? param.shape[1] : 0) << param.name;
          EXPECT_LE(slice.capacity(), slice.elems);
          if (slice.columns == 0) {
            EXPECT_EQ(slice.capacity(), slice.elems) << "biases and norms are stepped whole";
            continue;
          }
          EXPECT_EQ(slice.choose, std::min(slice.columns, slice.elems) / 4) << "of the columns it touches";
          if (slice.first_column == 0 && slice.elems % slice.columns == 0) {
            EXPECT_EQ(slice.capacity(), slice.choose * (slice.elems / slice.columns)) << "whole rows";
          }
        }
        EXPECT_LE(end, ownership.owned_elems());
      }
      EXPECT_EQ(elems, model.elems) << "stage " << stage << ", world " << world;
    }
  }
}

struct Decisions {
  std::vector<std::int64_t> select, update, sums;
};
Decisions run(ZenFlowSchedule& schedule, std::int64_t steps) {
  Decisions out;
  for (std::int64_t step = 0; step < steps; ++step) {
    const ZenFlowSchedule::Step now = schedule.begin_step();
    if (now.select) out.select.push_back(step);
    if (now.update) {
      out.update.push_back(step);
      out.sums.push_back(now.steps_in_sum);
    }
  }
  return out;
}

TEST(ZenFlow, FixedIntervals) {
  ZenFlowSchedule schedule({.select_interval = 6, .update_interval = 4}, 3);
  const Decisions out = run(schedule, 14);
  EXPECT_THAT(out.select, ElementsAre(0, 6, 12));
  // Every 4 steps, and before columns are chosen anew.
  EXPECT_THAT(out.update, ElementsAre(3, 5, 7, 11));
  EXPECT_THAT(out.sums, ElementsAre(4, 2, 2, 4));
}

TEST(ZenFlow, WarmUpUpdatesEverythingInEveryStep) {
  ZenFlowSchedule schedule({.update_interval = 3, .warm_up_steps = 2}, 3);
  EXPECT_TRUE(schedule.begin_step().warm_up);
  ZenFlowSchedule again({.update_interval = 3, .warm_up_steps = 2}, 3);
  const Decisions out = run(again, 9);
  EXPECT_THAT(out.select, ElementsAre(2));
  EXPECT_THAT(out.update, ElementsAre(0, 1, 4, 7));
  EXPECT_THAT(out.sums, ElementsAre(1, 1, 3, 3));
}

// One matrix, topk 0.2 (factors 2 and 8): chosen 4, the rest 4 in every step. average = 2, then (2 + 4)/2/2
// = 1.5, then (3 + 4)/3/2 = 7/6, ...; waiting = 0.5, 1, 1.5. At the third step 1.5 >= 7/6: the fourth
// updates.
TEST(ZenFlow, VotesDecideTheInterval) {
  ZenFlowSchedule schedule({.topk_ratio = 0.2, .auto_ratio = 1.0}, 1);
  std::vector<std::int64_t> votes;
  std::vector<std::int64_t> updates;
  for (std::int64_t step = 0; step < 5; ++step) {
    if (schedule.begin_step().update) updates.push_back(step);
    schedule.observe(std::vector<GradientMass>{{4, 8}});
    votes.push_back(schedule.votes());
  }
  EXPECT_THAT(updates, ElementsAre(3));
  // In the step of the update everything begins anew: u = 1, average = 4/2 = 2, waiting = 0.5.
  EXPECT_THAT(votes, ElementsAre(0, 0, 1, 0, 0));
}

TEST(ZenFlow, EnoughMatricesMustVote) {
  ZenFlowSchedule schedule({.topk_ratio = 0.5, .auto_ratio = 0.75}, 4);
  const GradientMass waits{0, 1};
  const GradientMass chosen{1, 1};
  (void)schedule.begin_step();
  schedule.observe(std::vector<GradientMass>{waits, waits, chosen, chosen});
  EXPECT_EQ(schedule.votes(), 2);
  EXPECT_FALSE(schedule.begin_step().update) << "2 of int(0.75 * 4)";
  schedule.observe(std::vector<GradientMass>{waits, waits, waits, chosen});
  EXPECT_TRUE(schedule.begin_step().update);
  EXPECT_THROW(schedule.observe(std::vector<GradientMass>(3)), std::invalid_argument);
}

TEST(ZenFlow, SaysWhyItUpdatesAndChooses) {
  using enum UpdateCause;
  ZenFlowSchedule fixed({.select_interval = 6, .update_interval = 4, .warm_up_steps = 2}, 3);
  std::vector<UpdateCause> updates;
  std::vector<SelectionCause> selections;
  for (int step = 0; step < 13; ++step) {
    const ZenFlowSchedule::Step now = fixed.begin_step();
    if (now.update) updates.push_back(now.update_cause);
    if (now.select) selections.push_back(now.select_cause);
  }
  // Steps 0, 1; 5, where both hold; 9; 11, before 12 chooses anew.
  EXPECT_THAT(updates, ElementsAre(warm_up, warm_up, interval, interval, before_selection));
  EXPECT_THAT(selections,
              ElementsAre(SelectionCause::first, SelectionCause::interval, SelectionCause::interval));

  ZenFlowSchedule by_votes({.topk_ratio = 0.2, .select_interval = 6, .auto_ratio = 1.0}, 1);
  updates.clear();
  for (int step = 0; step < 6; ++step) {
    const ZenFlowSchedule::Step now = by_votes.begin_step();
    if (now.update) updates.push_back(now.update_cause);
    by_votes.observe(std::vector<GradientMass>{{4, 8}});
    EXPECT_EQ(by_votes.votes_needed(), 1);
  }
  EXPECT_THAT(updates, ElementsAre(votes, before_selection));
}

TEST(ZenFlow, NothingWaitsWhereEverythingIsChosen) {
  ZenFlowSchedule schedule({.topk_ratio = 1.0, .auto_ratio = 1.0}, 1);
  for (int step = 0; step < 20; ++step) {
    EXPECT_FALSE(schedule.begin_step().update) << step;
    schedule.observe(std::vector<GradientMass>{{5, 5}});
  }
}

/// What is drawn from votes that have memory: an interval decided early or late changes all that follow.
std::vector<bool> updates_of(ZenFlowSchedule& schedule, int from, int to) {
  std::vector<bool> updates;
  for (int i = from; i < to; ++i) {
    updates.push_back(schedule.begin_step().update);
    std::vector<GradientMass> masses;
    for (int m = 0; m < 4; ++m) {
      const double all = 10 + ((i * 7 + m * 3) % 5);
      masses.push_back({all * (0.30 + 0.1 * ((i + m) % 4)), all});
    }
    schedule.observe(masses);
  }
  return updates;
}

TEST(ZenFlow, ScheduleGoesOnFromWhereItWasSaved) {
  ZenFlowSettings settings;
  settings.topk_ratio = 0.2;
  settings.auto_ratio = 0.9;
  ZenFlowSchedule whole(settings, 4);
  const std::vector<bool> all = updates_of(whole, 0, 30);
  ASSERT_GT(std::count(all.begin(), all.end(), true), 3);
  for (int saved = 1; saved < 30; ++saved) {
    ZenFlowSchedule first(settings, 4);
    (void)updates_of(first, 0, saved);
    ZenFlowSchedule second(settings, 4);
    second.restore(first.save());
    const std::vector<bool> rest = updates_of(second, saved, 30);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), all.begin() + saved)) << "saved after " << saved;
    EXPECT_EQ(second.save().waiting, whole.save().waiting);
    EXPECT_EQ(second.save().average_selected, whole.save().average_selected);
  }
  ZenFlowSchedule other(settings, 3);
  EXPECT_THROW(other.restore(whole.save()), std::invalid_argument);
}

TEST(ZenFlow, ContinuesWhereNothingElseWouldBeComputed) {
  ZenFlowSettings settings;
  settings.update_interval = 3;
  settings.select_interval = 6;
  ZenFlowSchedule schedule(settings, 0);
  for (int made = 1; made <= 12; ++made) {
    (void)schedule.begin_step();
    ZenFlowProgress progress = schedule.save();
    progress.chosen = true;
    const bool anew = made % 6 == 0;
    EXPECT_EQ(schedule.selects_next(), anew);
    EXPECT_EQ(needs_columns(settings, progress), !anew);
    EXPECT_EQ(why_not_continue(settings, progress, true), "");
    EXPECT_EQ(why_not_continue(settings, progress, false).empty(), anew) << made;
    EXPECT_EQ(why_not_continue(std::nullopt, progress, true).empty(), made % 3 == 0) << made;
    ZenFlowSettings soon = settings;
    soon.select_interval = made;
    EXPECT_EQ(why_not_continue(soon, progress, true).empty(), made % 3 == 0) << made;
  }
}

TEST(ZenFlow, PiecesAreSpreadOverTheInterval) {
  EXPECT_EQ(pieces_due(10, 1, 4), 3);
  EXPECT_EQ(pieces_due(10, 2, 4), 5);
  EXPECT_EQ(pieces_due(10, 3, 4), 8);
  EXPECT_EQ(pieces_due(10, 4, 4), 10);
  EXPECT_EQ(pieces_due(10, 9, 4), 10) << "an interval may turn out longer than the last";
  EXPECT_EQ(pieces_due(0, 1, 4), 0);
}

}  // namespace
}  // namespace shardscope::plan
