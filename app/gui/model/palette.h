// Colour means one thing everywhere; a view names the meaning and never a colour.
#pragma once

#include <cstdint>
#include <string_view>

#include "instrumentation/event.h"

namespace shardscope::gui {

enum class Meaning : std::uint8_t {
  compute,    ///< computation; parameters
  gather,     ///< all-gather; gathered parameters
  reduce,     ///< reduction; gradients
  optimizer,  ///< optimizer work and states
  activation,
  copy,  ///< copies, offload, swap
  buffer,
  trouble,  ///< waiting, late, error; hatched when a wait
  neutral,  ///< structure: steps, phases, unknown
};
inline constexpr int kMeaningCount = 9;

enum class ThemeKind : std::uint8_t { dark, light };

/// Communication and copies that no computation hides, wherever they are drawn: of the colour of what was
/// moved, hatched. They are not waits: most of it may have been exposed without a stream standing still for
/// it.
inline constexpr Meaning kExposedComm = Meaning::gather;
inline constexpr Meaning kExposedCopy = Meaning::copy;

/// 0xRRGGBB.
using Rgb = std::uint32_t;

struct Palette {
  Rgb base, panel, raised, line, text, muted, accent, on_fill;
  Rgb meaning[kMeaningCount];
  /// The runs A and B of a comparison: colours of their own, distinguishable from every meaning, also with
  /// red-green colour blindness.
  Rgb runs[2];
  [[nodiscard]] Rgb of(Meaning what) const noexcept { return meaning[static_cast<int>(what)]; }
};

/// A theme's file (assets/themes). Throws std::exception naming the colour that is missing or wrong.
[[nodiscard]] Palette parse_palette(std::string_view json);
/// The themes that the program holds.
[[nodiscard]] const Palette& palette(ThemeKind theme) noexcept;
/// WCAG contrast ratio of two colours, 1 to 21.
[[nodiscard]] double contrast(Rgb a, Rgb b) noexcept;
/// `amount` 0: a, 1: b.
[[nodiscard]] Rgb mix(Rgb a, Rgb b, float amount) noexcept;
/// Black-ish or white-ish text, whichever is read better on `fill`.
[[nodiscard]] Rgb text_on(Rgb fill) noexcept;

[[nodiscard]] Meaning meaning_of(instrumentation::EventKind begin_kind, std::uint8_t code) noexcept;
/// On the GPU's streams of gathers and reductions whatever runs is of that meaning; elsewhere as above.
[[nodiscard]] Meaning meaning_on(instrumentation::StreamId lane, instrumentation::EventKind begin_kind,
                                 std::uint8_t code) noexcept;
[[nodiscard]] Meaning meaning_of(instrumentation::MemoryCategory category) noexcept;

}  // namespace shardscope::gui
