// Where to stop: places and conditions in a list. In a recording the cursor goes to the next hit; live, what
// the run can stop at by itself is a stop rule, and the other conditions pause it as soon as the window sees
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/session.h"
#include "app/gui/model/stepping.h"
#include "app/store/vocabulary.h"

namespace shardscope::gui {

enum class BreakKind : std::uint8_t {
  module,         ///< a gate of the module
  param,          ///< the next use of the parameter
  bucket,         ///< a bucket is flushed (`id`; kNoId: any)
  step,           ///< the step begins
  loss,           ///< the loss of a step is not a finite number
  overflow,       ///< a step is skipped
  live_elements,  ///< more than `threshold` elements are gathered or on their way
  wait,           ///< computation waited for longer than `threshold` ms
  late_rank,      ///< a collective waited longer than `threshold` ms for its last rank
};
inline constexpr int kBreakKinds = 9;

struct Breakpoint {
  BreakKind kind{};
  std::uint32_t id = ev::kNoId;
  double threshold = 0;
  bool enabled = true;
  friend bool operator==(const Breakpoint&, const Breakpoint&) = default;
};

/// "wait", "live elements", ... and whether it has a threshold, in which unit.
[[nodiscard]] const char* word(BreakKind kind, const store::Vocabulary& words) noexcept;
[[nodiscard]] const char* threshold_unit(BreakKind kind) noexcept;  ///< empty: it has none
/// "a wait longer than 5 ms", "before or after h.3.attn".
[[nodiscard]] std::string text_of(const store::Store& store, const Breakpoint& breakpoint);

struct BreakHit {
  std::int64_t at_ns = 0;
  std::size_t which = 0;  ///< of the breakpoints
};
/// Those of a list that are looked for.
struct BreakFilter {
  enum class Of : std::uint8_t { all, rank, run };
  Of of = Of::all;                          ///< a step, its loss and its overflow are the run's
  std::optional<std::size_t> without = {};  ///< index of one that is looked for elsewhere
};
/// The first hit of an enabled one on `rank` in (after_ns, until_ns], from the store's events alone: however
/// long the run, and wherever it is looked at.
[[nodiscard]] std::optional<BreakHit> next_hit(const Session& run, std::uint32_t rank,
                                               std::span<const Breakpoint> breakpoints, std::int64_t after_ns,
                                               std::int64_t until_ns, const BreakFilter& filter = {});

/// A recording played: the cursor moves on by itself.
struct Playback {
  bool playing = false;
  double speed = 0.01;  ///< seconds of the run per second
  /// The cursor `seconds` later, not past `end_ns`; there it stops.
  [[nodiscard]] std::int64_t advance(std::int64_t at_ns, double seconds, std::int64_t end_ns);
};

}  // namespace shardscope::gui
