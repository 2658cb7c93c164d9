#include "app/gui/model/own_colours.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

constexpr std::string_view kColourKey = "Colour=";

std::optional<Rgb> colour_from(std::string_view text) {
  Rgb color = 0;
  if (text.size() != 7 || text.front() != '#') return std::nullopt;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + 1, end, color, 16);
  return error == std::errc{} && at == end ? std::optional(color) : std::nullopt;
}

std::optional<Meaning> meaning_from(std::string_view name) {
  for (int i = 0; i < kMeaningCount; ++i)
    if (name == name_of(static_cast<Meaning>(i))) return static_cast<Meaning>(i);
  return std::nullopt;
}

/// Up to the next space, which is removed too.
std::string_view take_word(std::string_view& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

}  // namespace

std::string hex_of(Rgb color) {
  char text[8];
  std::snprintf(text, sizeof text, "#%06X", color & 0xFFFFFFU);
  return text;
}

std::optional<Rgb> OwnColours::of(ThemeKind theme, Meaning meaning) const {
  const auto found = chosen_.find({theme, meaning});
  return found == chosen_.end() ? std::nullopt : std::optional(found->second);
}

void OwnColours::set(ThemeKind theme, Meaning meaning, Rgb color) {
  if (color == palette(theme).of(meaning))
    chosen_.erase({theme, meaning});
  else
    chosen_[{theme, meaning}] = color;
}

void OwnColours::reset(ThemeKind theme) {
  std::erase_if(chosen_, [theme](const auto& entry) { return entry.first.first == theme; });
}

bool OwnColours::any(ThemeKind theme) const {
  return std::ranges::any_of(chosen_, [theme](const auto& entry) { return entry.first.first == theme; });
}

Palette OwnColours::applied(ThemeKind theme) const {
  Palette out = palette(theme);
  for (const auto& [of, color] : chosen_)
    if (of.first == theme) out.meaning[static_cast<std::size_t>(of.second)] = color;
  return out;
}

std::string OwnColours::warning(ThemeKind theme, Meaning meaning) const {
  const std::optional<Rgb> color = of(theme, meaning);
  if (!color) return {};
  const double with_panel = contrast(*color, palette(theme).panel);
  // Not rounded up to the limit.
  const double shown = static_cast<double>(static_cast<int>(with_panel * 10)) / 10;
  return with_panel < kLeastContrast ? decimal(shown, 1) + ":1 with the background, below 3:1"
                                     : std::string();
}

std::vector<std::string> OwnColours::lines() const {
  std::vector<std::string> out;
  for (const auto& [of, color] : chosen_)
    out.push_back(std::string(kColourKey) + name_of(of.first) + " " + name_of(of.second) + " " +
                  hex_of(color));
  return out;
}

void OwnColours::take_line(std::string_view line) {
  if (!line.starts_with(kColourKey)) return;
  line.remove_prefix(kColourKey.size());
  const std::optional<ThemeKind> theme = theme_of(take_word(line));
  const std::optional<Meaning> meaning = meaning_from(take_word(line));
  const std::optional<Rgb> color = colour_from(line);
  if (theme && meaning && color) set(*theme, *meaning, *color);
}

}  // namespace shardscope::gui
