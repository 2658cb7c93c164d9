// Each colour has one meaning; views name the meaning and never a colour.
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

/// "compute", "gather": as in the theme files.
[[nodiscard]] const char* name_of(Meaning meaning) noexcept;

/// Background and colours. The colour-blind themes keep a minimum distance between lanes, states, severities,
/// runs and up to 16 owners under protanopia, deuteranopia and tritanopia; the others follow the conventions
/// of the field more closely.
enum class ThemeKind : std::uint8_t { dark, light, dark_colour_blind, light_colour_blind };
inline constexpr ThemeKind kThemes[] = {ThemeKind::dark, ThemeKind::light, ThemeKind::dark_colour_blind,
                                        ThemeKind::light_colour_blind};
/// Name on the command line and in the settings file.
[[nodiscard]] const char* name_of(ThemeKind theme) noexcept;
/// nullopt if no theme has this name.
[[nodiscard]] std::optional<ThemeKind> theme_of(std::string_view name) noexcept;
[[nodiscard]] bool is_dark(ThemeKind theme) noexcept;
[[nodiscard]] bool is_for_colour_blind(ThemeKind theme) noexcept;
/// The same colours on the other background; the other colours on the same background.
[[nodiscard]] ThemeKind with_other_ground(ThemeKind theme) noexcept;
[[nodiscard]] ThemeKind with_other_colours(ThemeKind theme) noexcept;

/// Communication and copies that no computation hides, in every view: the colour of what is
/// moved, hatched. They are not waits: most of it may be exposed without a stream idling for
/// it.
inline constexpr Meaning kExposedComm = Meaning::gather;
inline constexpr Meaning kExposedCopy = Meaning::copy;

/// 0xRRGGBB.
using Rgb = std::uint32_t;

struct Palette {
  Rgb base, panel, raised, line, text, muted, accent, on_fill;
  /// Of words, marks and figures: what deserves a look, and what is as it should be. Not of anything drawn to
  /// scale, whose colours are the meanings. An error has the colour of trouble; values per step, that of
  /// text.
  Rgb warning, good;
  Rgb meaning[kMeaningCount];
  /// The runs A and B of a comparison: distinguishable from every meaning, also with red-green colour
  /// blindness.
  Rgb runs[2];
  /// For owners and modules, by number, repeating; empty: hues (partition_cells.h).
  std::vector<Rgb> owners;
  /// Scale by rank number in worlds too large for a colour of each owner (owner_hue() in partition_cells.h):
  /// two or more colours, mixed in between. Lightness increases with the number, so that it works without
  /// colour.
  std::vector<Rgb> owner_scale;
  [[nodiscard]] Rgb of(Meaning what) const noexcept { return meaning[static_cast<int>(what)]; }
};

/// Parses a theme file (assets/themes). Throws std::exception that names the missing or invalid colour.
[[nodiscard]] Palette parse_palette(std::string_view json);
/// The built-in themes.
[[nodiscard]] const Palette& palette(ThemeKind theme) noexcept;
/// WCAG contrast ratio of two colours, 1 to 21.
[[nodiscard]] double contrast(Rgb a, Rgb b) noexcept;
/// `amount` 0: a, 1: b.
[[nodiscard]] Rgb mix(Rgb a, Rgb b, float amount) noexcept;
/// Near-black or near-white text, whichever has more contrast on `fill`.
[[nodiscard]] Rgb text_on(Rgb fill) noexcept;

[[nodiscard]] Meaning meaning_of(instrumentation::EventKind begin_kind, std::uint8_t code) noexcept;
/// On the GPU streams of gathers and reductions all work has that meaning; elsewhere as above.
[[nodiscard]] Meaning meaning_on(instrumentation::StreamId lane, instrumentation::EventKind begin_kind,
                                 std::uint8_t code) noexcept;
[[nodiscard]] Meaning meaning_of(store::SpanHue hue) noexcept;
[[nodiscard]] Meaning meaning_of(instrumentation::MemoryCategory category) noexcept;

}  // namespace shardscope::gui
