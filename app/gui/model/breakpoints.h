// Breakpoints: places and conditions. In a recording the cursor moves to the next hit. Live, the run itself
// stops at a place by its stop rule; for the other conditions the window pauses the run once it has received
// the event.
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
  live_elements,  ///< more than `threshold` elements are gathered or in flight
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

/// Name of the kind ("wait", "live elements"), and the unit of its threshold.
[[nodiscard]] const char* word(BreakKind kind, const store::Vocabulary& words) noexcept;
[[nodiscard]] const char* threshold_unit(BreakKind kind) noexcept;  ///< empty: has no threshold
/// "a wait longer than 5 ms", "before or after h.3.attn".
[[nodiscard]] std::string text_of(const store::Store& store, const Breakpoint& breakpoint);

struct BreakHit {
  std::int64_t at_ns = 0;
  std::size_t which = 0;  ///< index of the breakpoint
};
/// Selects which breakpoints of a list are searched for.
struct BreakFilter {
  enum class Of : std::uint8_t { all, rank, run };
  Of of = Of::all;                          ///< run: a step, its loss and its overflow; rank: all others
  std::optional<std::size_t> without = {};  ///< index of one to skip
};
/// The first hit of an enabled breakpoint on `rank` in (after_ns, until_ns]; depends only on the store's
/// events, not on the visible range.
[[nodiscard]] std::optional<BreakHit> next_hit(const Session& run, std::uint32_t rank,
                                               std::span<const Breakpoint> breakpoints, std::int64_t after_ns,
                                               std::int64_t until_ns, const BreakFilter& filter = {});

/// Playback of a recording: moves the cursor at `speed`.
struct Playback {
  bool playing = false;
  double speed = 0.01;  ///< seconds of the run per second
  /// Returns the cursor `seconds` later; stops playing at `end_ns`.
  [[nodiscard]] std::int64_t advance(std::int64_t at_ns, double seconds, std::int64_t end_ns);
};

}  // namespace shardscope::gui
