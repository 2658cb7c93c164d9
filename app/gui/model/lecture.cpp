#include "app/gui/model/lecture.h"

#include <algorithm>
#include <array>

#include "app/analysis/spans.h"
#include "app/analysis/zero_settings.h"
#include "app/gui/model/format.h"
#include "app/gui/model/lecture_words.h"
#include "app/gui/model/names.h"
#include "app/gui/model/scheduler_actions.h"
#include "app/gui/model/span_text.h"
#include "app/store/lane.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

/// Scenes per kind and pass in a brief lecture.
constexpr std::size_t kOfAKind = 2;

SceneKind kind_of(ActionKind kind) noexcept {
  switch (kind) {
    case ActionKind::decision:
      return SceneKind::decision;
    case ActionKind::gather:
      return SceneKind::gather;
    case ActionKind::prefetch:
      return SceneKind::prefetch;
    case ActionKind::available:
      return SceneKind::available;
    case ActionKind::release:
      return SceneKind::release;
    case ActionKind::kept:
      return SceneKind::kept;
    case ActionKind::outcome:
      return SceneKind::outcome;
    case ActionKind::bucket_add:
      return SceneKind::bucket_add;
    case ActionKind::bucket_flush:
      return SceneKind::bucket_flush;
    case ActionKind::trace:
      return SceneKind::trace;
    case ActionKind::overflow:
      return SceneKind::overflow;
    case ActionKind::other:
      return SceneKind::other;
  }
  return SceneKind::other;
}

Scene scene_of(SceneKind kind, std::int64_t at_ns, std::string text, std::string reason = {}) {
  Scene scene;
  scene.kind = kind;
  scene.at_ns = at_ns;
  scene.text = std::move(text);
  scene.reason = std::move(reason);
  return scene;
}

void add_actions(const store::Store& store, const Lecture& lecture, std::vector<Scene>& scenes) {
  for (SchedulerAction& action :
       scheduler_actions(store, lecture.of.rank, lecture.begin_ns, lecture.end_ns)) {
    Scene scene =
        scene_of(kind_of(action.kind), action.at_ns, std::move(action.text), std::move(action.reason));
    scene.param = action.param;
    scene.module = action.module;
    scenes.push_back(std::move(scene));
  }
}

/// Scenes from spans of the compute stream: passes, waits and the optimizer.
void add_spans(const store::Store& store, const RunIndex& index, const Lecture& lecture,
               std::vector<Scene>& scenes) {
  const std::uint32_t rank = lecture.of.rank;
  const store::LaneId lane{rank, ev::StreamId::compute};
  analysis::for_each_span(store, lane, lecture.begin_ns, lecture.end_ns, [&](const store::Span& span) {
    if (span.begin_ns < lecture.begin_ns) return;
    if (span.kind == ev::EventKind::phase_begin) {
      const ev::Phase phase = ev::as<ev::EventKind::phase_begin>(span).phase;
      const std::string time = length_text(store::time_of(store, rank, span));
      if (phase == ev::Phase::forward)
        scenes.push_back(scene_of(SceneKind::forward, span.begin_ns, "Forward begins; it takes " + time));
      else if (phase == ev::Phase::backward)
        scenes.push_back(scene_of(SceneKind::backward, span.begin_ns, "Backward begins; it takes " + time));
      else if (phase == ev::Phase::optimizer)
        scenes.push_back(scene_of(SceneKind::optimizer, span.begin_ns, "The optimizer runs for " + time));
    } else if (span.kind == ev::EventKind::fetch_wait_begin ||
               span.kind == ev::EventKind::reduce_wait_begin) {
      const bool fetch = span.kind == ev::EventKind::fetch_wait_begin;
      Scene scene = scene_of(fetch ? SceneKind::wait : SceneKind::reduce_wait, span.begin_ns,
                             "Computation waits " + length_text(store::time_of(store, rank, span)) +
                                 (fetch ? ": " : " for ") + wait_text(store, rank, span, index));
      if (fetch) scene.module = ev::as<ev::EventKind::fetch_wait_begin>(span).module;
      scenes.push_back(std::move(scene));
    }
  });
}

/// Keeps the first scenes of each kind and pass. Returns the number removed.
std::size_t shorten(std::vector<Scene>& scenes) {
  std::array<std::size_t, kSceneKinds> seen{};
  std::vector<Scene> kept;
  for (Scene& scene : scenes) {
    if (scene.kind == SceneKind::forward || scene.kind == SceneKind::backward) seen = {};
    if (seen[static_cast<std::size_t>(scene.kind)]++ < kOfAKind) kept.push_back(std::move(scene));
  }
  const std::size_t left_out = scenes.size() - kept.size();
  scenes = std::move(kept);
  return left_out;
}

}  // namespace

double Scene::seconds() const noexcept {
  // Comfortable reading: 20 letters per second.
  const auto letters = static_cast<double>(text.size() + reason.size() + lesson.size());
  return std::clamp(1.0 + letters / 20, 2.0, 20.0);
}

std::size_t Lecture::scene_at(std::int64_t at_ns) const noexcept {
  const auto after = std::ranges::upper_bound(scenes, at_ns, {}, &Scene::at_ns);
  return after == scenes.begin() ? 0 : static_cast<std::size_t>(after - scenes.begin()) - 1;
}

Lecture lecture_of(const store::Store& store, const RunIndex& index, const LectureQuery& query) {
  Lecture out;
  out.of = query;
  if (!store.has_tables() || store.tables().stage != 3) {
    out.missing = "The lecture needs stage 3: this run does not partition parameters.";
    return out;
  }
  const auto steps = store.steps();
  const auto step = std::ranges::find(steps, query.step, &store::StepRow::step);
  if (step == steps.end() || step->end_ns == store::kOpen) {
    out.missing = "No step of this run has ended yet.";
    return out;
  }
  out.begin_ns = step->begin_ns;
  out.end_ns = step->end_ns;
  std::vector<Scene>& scenes = out.scenes;
  add_actions(store, out, scenes);
  if (scenes.empty()) {
    out.missing = "The scheduler's decisions in this step were not recorded: they need detail \"params\".";
    return out;
  }
  add_spans(store, index, out, scenes);
  std::ranges::stable_sort(scenes, {}, &Scene::at_ns);
  if (query.length == LectureLength::brief) out.left_out = shorten(scenes);
  const std::string number = std::to_string(query.step);
  scenes.insert(scenes.begin(),
                scene_of(SceneKind::step, out.begin_ns,
                         "Step " + number + " begins, seen by rank " + std::to_string(query.rank)));
  scenes.push_back(
      scene_of(SceneKind::end, out.end_ns,
               "Step " + number + " has ended after " + length_text(store::time_of(store, *step))));
  std::array<bool, kSceneKinds> explained{};
  for (Scene& scene : scenes) {
    bool& known = explained[static_cast<std::size_t>(scene.kind)];
    if (!known)
      scene.lesson =
          lesson_of(scene.kind, analysis::shard_ranks(store.tables()), store::framework_of(store.tables()));
    known = true;
  }
  return out;
}

std::int64_t LecturePlayer::advance(const Lecture& lecture, double seconds) {
  if (lecture.scenes.empty()) return lecture.begin_ns;
  scene = std::min(scene, lecture.scenes.size() - 1);
  if (playing) shown_s += seconds * pace;
  while (playing && shown_s >= lecture.scenes[scene].seconds()) {
    if (scene + 1 == lecture.scenes.size()) {
      playing = false;
      break;
    }
    shown_s -= lecture.scenes[scene].seconds();
    ++scene;
  }
  const Scene& now = lecture.scenes[scene];
  if (scene + 1 == lecture.scenes.size()) return now.at_ns;
  const double left = now.seconds() - shown_s;
  const double moved = std::clamp(1 - left / kMove, 0.0, 1.0);
  const auto way = static_cast<double>(lecture.scenes[scene + 1].at_ns - now.at_ns);
  return now.at_ns + static_cast<std::int64_t>(way * moved);
}

std::int64_t LecturePlayer::go_to(const Lecture& lecture, std::size_t which) {
  scene = lecture.scenes.empty() ? 0 : std::min(which, lecture.scenes.size() - 1);
  shown_s = 0;
  return lecture.scenes.empty() ? lecture.begin_ns : lecture.scenes[scene].at_ns;
}

}  // namespace shardscope::gui
