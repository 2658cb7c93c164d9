// Colour means one thing everywhere; a view names the meaning and never a colour.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "app/store/span_label.h"
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

/// Ground and colours. Those for colour blindness keep a least distance between lanes, states, severities,
/// runs and up to 16 owners, as protanopia, deuteranopia and tritanopia see them; the usual ones keep closer
/// to the field's habits.
enum class ThemeKind : std::uint8_t { dark, light, dark_colour_blind, light_colour_blind };
inline constexpr ThemeKind kThemes[] = {ThemeKind::dark, ThemeKind::light, ThemeKind::dark_colour_blind,
                                        ThemeKind::light_colour_blind};
/// As on the command line and in the settings file.
[[nodiscard]] const char* name_of(ThemeKind theme) noexcept;
/// Empty: no theme has this name.
[[nodiscard]] std::optional<ThemeKind> theme_of(std::string_view name) noexcept;
[[nodiscard]] bool is_dark(ThemeKind theme) noexcept;
[[nodiscard]] bool is_for_colour_blind(ThemeKind theme) noexcept;
/// The same colours on the other ground, and the other colours on the same ground.
[[nodiscard]] ThemeKind with_other_ground(ThemeKind theme) noexcept;
[[nodiscard]] ThemeKind with_other_colours(ThemeKind theme) noexcept;

/// Communication and copies that no computation hides, wherever they are drawn: of the colour of what was
/// moved, hatched. They are not waits: most of it may have been exposed without a stream being idle for
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
  /// Of owners and of modules, by number, over again after the last; empty: hues (partition_cells.h).
  std::vector<Rgb> owners;
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
[[nodiscard]] Meaning meaning_of(store::SpanHue hue) noexcept;
[[nodiscard]] Meaning meaning_of(instrumentation::MemoryCategory category) noexcept;

}  // namespace shardscope::gui
