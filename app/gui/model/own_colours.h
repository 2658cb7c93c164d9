// Colours that the user has chosen in place of a theme's, by meaning; saved between sessions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/model/palette.h"

namespace shardscope::gui {

/// "#4C9BE8".
[[nodiscard]] std::string hex_of(Rgb color);

class OwnColours {
 public:
  /// Contrast with the panel below which a colour is hard to see (WCAG 2.2, 1.4.11).
  static constexpr double kLeastContrast = 3;
  [[nodiscard]] std::optional<Rgb> of(ThemeKind theme, Meaning meaning) const;
  /// The theme's own colour resets it.
  void set(ThemeKind theme, Meaning meaning, Rgb color);
  void reset(ThemeKind theme);
  [[nodiscard]] bool any(ThemeKind theme) const;
  /// The theme with these colours in place of its own.
  [[nodiscard]] Palette applied(ThemeKind theme) const;
  /// "2.1:1 with the background, below 3:1"; empty: enough, or the theme's own colour.
  [[nodiscard]] std::string warning(ThemeKind theme, Meaning meaning) const;
  /// Serialization for the settings file; ignores unknown and invalid lines.
  [[nodiscard]] std::vector<std::string> lines() const;
  void take_line(std::string_view line);
  friend bool operator==(const OwnColours&, const OwnColours&) = default;

 private:
  std::map<std::pair<ThemeKind, Meaning>, Rgb> chosen_;
};

}  // namespace shardscope::gui
