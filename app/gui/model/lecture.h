// One step as a lecture for people who learn ZeRO: the actions of a rank's scheduler, buckets and optimizer
// in order, with the plan's reasons and, for the first action of each kind, an explanation.
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
  std::string reason;  ///< from the plan; may be empty
  std::string lesson;  ///< explanation for the first scene of its kind; else empty
  std::uint32_t param = ev::kNoId, module = ev::kNoId;
  /// Reading time in seconds.
  [[nodiscard]] double seconds() const noexcept;
};

enum class LectureLength : std::uint8_t {
  brief,  ///< per kind the first scenes of forward and backward
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
  std::vector<Scene> scenes;              ///< by time; begins and ends with the step's begin and end
  std::size_t left_out = 0;               ///< number of scenes omitted from a brief one
  /// Why there is no lecture: other stage, decisions not recorded, step not completed. Else
  /// empty.
  std::string missing;
  /// Index of the last scene at or before a time; 0 if there is none.
  [[nodiscard]] std::size_t scene_at(std::int64_t at_ns) const noexcept;
};
[[nodiscard]] Lecture lecture_of(const store::Store& store, const RunIndex& index, const LectureQuery& query);

/// Plays the scenes: each is shown for its reading time, then the cursor moves to the
/// next.
struct LecturePlayer {
  static constexpr double kMove = 0.7;  ///< seconds at the end of a scene during which the cursor moves
  bool playing = false;
  double pace = 1;
  std::size_t scene = 0;
  double shown_s = 0;  ///< how long the scene has been shown
  /// Advances by `seconds`. Returns the cursor time.
  std::int64_t advance(const Lecture& lecture, double seconds);
  /// Restarts at a scene. Returns the cursor time.
  std::int64_t go_to(const Lecture& lecture, std::size_t which);
};

}  // namespace shardscope::gui
