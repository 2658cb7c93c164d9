// The lecture: its scenes against the events of the step, and its way through them.
#include "app/gui/model/lecture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "app/gui/model/lecture_words.h"
#include "app/gui/model/scheduler_actions.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

class LectureTest : public Model {
 protected:
  [[nodiscard]] Lecture of(std::uint32_t step, LectureLength length) const {
    return lecture_of(data(), app_.run->index(), {1, step, length});
  }
};

TEST_F(LectureTest, SaysEveryActionOfTheStepInOrderWithItsReason) {
  const Lecture lecture = of(2, LectureLength::all);
  ASSERT_EQ(lecture.missing, "");
  const store::StepRow& step = data().steps()[2];
  EXPECT_EQ(lecture.begin_ns, step.begin_ns);
  EXPECT_EQ(lecture.end_ns, step.end_ns);
  EXPECT_EQ(lecture.scenes.front().kind, SceneKind::step);
  EXPECT_EQ(lecture.scenes.back().kind, SceneKind::end);
  EXPECT_EQ(lecture.left_out, 0U);
  EXPECT_TRUE(std::ranges::is_sorted(lecture.scenes, {}, &Scene::at_ns));
  const auto actions = scheduler_actions(data(), 1, step.begin_ns, step.end_ns);
  ASSERT_GT(actions.size(), 30U);
  for (const SchedulerAction& action : actions) {
    const bool said = std::ranges::any_of(lecture.scenes, [&](const Scene& scene) {
      return scene.at_ns == action.at_ns && scene.text == action.text && scene.reason == action.reason &&
             scene.param == action.param && scene.module == action.module;
    });
    EXPECT_TRUE(said) << action.text;
  }
  // Both passes, a wait of those that were recorded, and the optimizer.
  const auto count = [&](SceneKind kind) { return std::ranges::count(lecture.scenes, kind, &Scene::kind); };
  EXPECT_EQ(count(SceneKind::forward), 1);
  EXPECT_EQ(count(SceneKind::backward), 1);
  EXPECT_EQ(count(SceneKind::optimizer), 1);
  std::int64_t waits = 0;
  const store::LaneId lane{1, ev::StreamId::compute};
  for (std::uint8_t depth = 0; depth < data().depth_count(lane); ++depth) {
    for (const store::Span& span : data().spans(lane, depth, step.begin_ns, step.end_ns))
      waits += span.kind == ev::EventKind::fetch_wait_begin ? 1 : 0;
  }
  ASSERT_GT(waits, 0);
  EXPECT_EQ(count(SceneKind::wait), waits);
}

TEST_F(LectureTest, ExplainsEachKindOnceAndKindsAreToldApart) {
  const Lecture lecture = of(2, LectureLength::all);
  std::set<SceneKind> explained;
  for (const Scene& scene : lecture.scenes) {
    if (scene.lesson.empty()) continue;
    EXPECT_TRUE(explained.insert(scene.kind).second) << name_of(scene.kind);
    EXPECT_EQ(scene.lesson, lesson_of(scene.kind, 4));
  }
  for (const SceneKind kind : {SceneKind::gather, SceneKind::prefetch, SceneKind::available,
                               SceneKind::release, SceneKind::bucket_flush, SceneKind::wait})
    EXPECT_TRUE(explained.contains(kind)) << name_of(kind);
  EXPECT_NE(lecture.scenes.front().lesson.find("over the 4 ranks"), std::string::npos);
  EXPECT_EQ(lesson_of(SceneKind::step, 1).find("1 ranks"), std::string::npos);
  for (const Scene& scene : lecture.scenes) {
    if (scene.kind == SceneKind::prefetch) {
      EXPECT_TRUE(scene.text.starts_with("Prefetch started"));
    }
    if (scene.kind == SceneKind::available) {
      EXPECT_NE(scene.reason, "persistent") << "it was there before: nothing has arrived";
    }
    if (scene.kind == SceneKind::gather) {
      EXPECT_TRUE(scene.text.starts_with("Gather started"));
    }
    if (scene.kind == SceneKind::release) {
      EXPECT_TRUE(scene.text.starts_with("Released"));
    }
  }
}

TEST_F(LectureTest, ABriefOneHasTheFirstOfEachKindInBothPassesAndSaysHowManyItLeavesOut) {
  const Lecture all = of(2, LectureLength::all);
  const Lecture brief = of(2, LectureLength::brief);
  EXPECT_EQ(brief.scenes.size() + brief.left_out, all.scenes.size());
  EXPECT_LT(brief.scenes.size(), all.scenes.size() / 2);
  std::set<SceneKind> kinds_of_all, kinds_of_brief;
  for (const Scene& scene : all.scenes) kinds_of_all.insert(scene.kind);
  for (const Scene& scene : brief.scenes) kinds_of_brief.insert(scene.kind);
  EXPECT_EQ(kinds_of_brief, kinds_of_all);
}

TEST_F(LectureTest, OfAnotherStageOrWithoutDecisionsItSaysWhatIsMissing) {
  EXPECT_NE(of(99, LectureLength::all).missing, "");
  store::SyntheticOptions options;
  options.stage = 2;
  const store::Store stage2 = store::make_synthetic_store(options);
  const Lecture lecture = lecture_of(stage2, {}, {0, 1, LectureLength::brief});
  EXPECT_NE(lecture.missing.find("stage 3"), std::string::npos);
  EXPECT_TRUE(lecture.scenes.empty());
}

TEST_F(LectureTest, IsReadAtItsPaceAndThenTheTimeMovesOn) {
  const Lecture lecture = of(2, LectureLength::brief);
  LecturePlayer player;
  EXPECT_EQ(player.advance(lecture, 100), lecture.begin_ns) << "it does not play";
  player.playing = true;
  const double first = lecture.scenes[0].seconds();
  EXPECT_GE(first, 2);
  Scene without_lesson = lecture.scenes[0];
  without_lesson.lesson.clear();
  EXPECT_GT(lecture.scenes[0].seconds(), without_lesson.seconds());
  EXPECT_EQ(player.advance(lecture, first - LecturePlayer::kMove - 0.1), lecture.scenes[0].at_ns);
  std::int64_t last = player.advance(lecture, 0.4);
  EXPECT_EQ(player.scene, 0U);
  EXPECT_GT(last, lecture.scenes[0].at_ns);
  EXPECT_LT(last, lecture.scenes[1].at_ns);
  player.pace = 2;
  last = player.advance(lecture, 0.3);
  EXPECT_EQ(player.scene, 1U) << "twice as fast";
  double whole = 0;
  for (const Scene& scene : lecture.scenes) whole += scene.seconds();
  for (double at = 0; at < whole; at += 0.1) {
    const std::int64_t now = player.advance(lecture, 0.1);
    ASSERT_GE(now, last) << "time never goes back";
    last = now;
  }
  EXPECT_FALSE(player.playing);
  EXPECT_EQ(last, lecture.end_ns);
  EXPECT_EQ(player.go_to(lecture, 3), lecture.scenes[3].at_ns);
  EXPECT_EQ(lecture.scene_at(lecture.begin_ns - 1), 0U);
  EXPECT_EQ(lecture.scenes[lecture.scene_at(lecture.end_ns + 1)].kind, SceneKind::end);
}

}  // namespace
}  // namespace shardscope::gui
