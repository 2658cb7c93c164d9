// One step as a lecture: what a rank's scheduler, buckets and optimizer did, one after the other, with the
// plan's reasons and, where something happens for the first time, what it is. For people who learn ZeRO.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/run_index.h"
#include "app/store/store.h"

namespace shardscope::gui {

enum class SceneKind : std::uint8_t {
  step,
  forward,
  backward,
  decision,
  gather,
  prefetch,
  available,
  wait,
  release,
  kept,
  outcome,
  bucket_add,
  bucket_flush,
  reduce_wait,
  optimizer,
  trace,
  overflow,
  other,
  end,
};
inline constexpr int kSceneKinds = 19;

struct Scene {
  SceneKind kind{};
  std::int64_t at_ns = 0;
  std::string text;    ///< what happens: "Prefetch started: h.4.attn.weight (1.77M elements)"
  std::string reason;  ///< of the plan; may be empty
  std::string lesson;  ///< what that is; with the first scene of its kind, else empty
  std::uint32_t param = ev::kNoId, module = ev::kNoId;
  /// Seconds that it takes to read.
  [[nodiscard]] double seconds() const noexcept;
};

enum class LectureLength : std::uint8_t {
  brief,  ///< of each kind the first scenes of forward and of backward
  all,
};

struct LectureQuery {
  std::uint32_t rank = 0;
  std::uint32_t step = 0;
  LectureLength length = LectureLength::brief;
  friend bool operator==(const LectureQuery&, const LectureQuery&) = default;
};

struct Lecture {
  LectureQuery of;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< of the step
  std::vector<Scene> scenes;              ///< by time; the first is the step's begin, the last its end
  std::size_t left_out = 0;               ///< scenes that are not in a brief one
  /// Why there is none: another stage, decisions that were not recorded, a step that has not ended. Else
  /// empty.
  std::string missing;
  /// The last scene at or before a time; the first one before all.
  [[nodiscard]] std::size_t scene_at(std::int64_t at_ns) const noexcept;
};
[[nodiscard]] Lecture lecture_of(const store::Store& store, const RunIndex& index, const LectureQuery& query);

/// Goes through the scenes: each is shown for as long as it takes to read, then the time moves on to the
/// next.
struct LecturePlayer {
  static constexpr double kMove = 0.7;  ///< seconds at the end of a scene in which the time moves
  bool playing = false;
  double pace = 1;
  std::size_t scene = 0;
  double shown_s = 0;  ///< for how long the scene was shown
  /// `seconds` later. Returns the time that is looked at.
  std::int64_t advance(const Lecture& lecture, double seconds);
  /// Shows a scene from its begin.
  std::int64_t go_to(const Lecture& lecture, std::size_t which);
};

}  // namespace shardscope::gui
