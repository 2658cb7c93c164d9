#include "app/gui/model/palette.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "assets/assets.h"

namespace shardscope::gui {
namespace {

using instrumentation::EventKind;
using instrumentation::MemoryCategory;

constexpr std::array<const char*, kMeaningCount> kMeanings{
    "compute", "gather", "reduce", "optimizer", "activation", "copy", "buffer", "trouble", "neutral"};

constexpr std::array<const char*, std::size(kThemes)> kThemeNames{"dark", "light", "dark-colour-blind",
                                                                  "light-colour-blind"};

Rgb colour_of(const nlohmann::json& value, const std::string& name) {
  const auto& text = value.get_ref<const std::string&>();
  Rgb rgb = 0;
  const char* end = text.data() + text.size();
  if (text.size() != 7 || text[0] != '#' || std::from_chars(text.data() + 1, end, rgb, 16).ptr != end)
    throw std::invalid_argument("theme: " + name + " '" + text + "' is not #RRGGBB");
  return rgb;
}

double linear(std::uint32_t channel) {
  const double c = static_cast<double>(channel) / 255.0;
  return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double luminance(Rgb color) {
  return 0.2126 * linear(color >> 16 & 255U) + 0.7152 * linear(color >> 8 & 255U) +
         0.0722 * linear(color & 255U);
}

}  // namespace

Palette parse_palette(std::string_view json) {
  const nlohmann::json theme = nlohmann::json::parse(json);
  const auto of = [&](const char* name) { return colour_of(theme.at(name), name); };
  Palette out{of("base"),
              of("panel"),
              of("raised"),
              of("line"),
              of("text"),
              of("muted"),
              of("accent"),
              of("on_fill"),
              of("warning"),
              of("good"),
              {},
              {of("run_a"), of("run_b")},
              {},
              {}};
  for (std::size_t i = 0; i < kMeanings.size(); ++i)
    out.meaning[i] = colour_of(theme.at("meaning").at(kMeanings[i]), kMeanings[i]);
  if (const auto owners = theme.find("owners"); owners != theme.end()) {
    for (const nlohmann::json& owner : *owners) out.owners.push_back(colour_of(owner, "owners"));
  }
  for (const nlohmann::json& stop : theme.at("owner_scale"))
    out.owner_scale.push_back(colour_of(stop, "owner_scale"));
  if (out.owner_scale.size() < 2)
    throw std::invalid_argument("theme: owner_scale has fewer than two colours");
  return out;
}

const Palette& palette(ThemeKind theme) noexcept {
  static const std::array<Palette, std::size(kThemes)> all{
      parse_palette(assets::theme_dark), parse_palette(assets::theme_light),
      parse_palette(assets::theme_dark_colour_blind), parse_palette(assets::theme_light_colour_blind)};
  return all[static_cast<std::size_t>(theme)];
}

const char* name_of(Meaning meaning) noexcept { return kMeanings[static_cast<std::size_t>(meaning)]; }

const char* name_of(ThemeKind theme) noexcept { return kThemeNames[static_cast<std::size_t>(theme)]; }

std::optional<ThemeKind> theme_of(std::string_view name) noexcept {
  for (const ThemeKind theme : kThemes)
    if (name == name_of(theme)) return theme;
  return std::nullopt;
}

bool is_dark(ThemeKind theme) noexcept {
  return theme == ThemeKind::dark || theme == ThemeKind::dark_colour_blind;
}

bool is_for_colour_blind(ThemeKind theme) noexcept {
  return theme == ThemeKind::dark_colour_blind || theme == ThemeKind::light_colour_blind;
}

ThemeKind with_other_ground(ThemeKind theme) noexcept {
  if (is_for_colour_blind(theme))
    return is_dark(theme) ? ThemeKind::light_colour_blind : ThemeKind::dark_colour_blind;
  return is_dark(theme) ? ThemeKind::light : ThemeKind::dark;
}

ThemeKind with_other_colours(ThemeKind theme) noexcept {
  if (is_dark(theme)) return is_for_colour_blind(theme) ? ThemeKind::dark : ThemeKind::dark_colour_blind;
  return is_for_colour_blind(theme) ? ThemeKind::light : ThemeKind::light_colour_blind;
}

double contrast(Rgb a, Rgb b) noexcept {
  const double la = luminance(a);
  const double lb = luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

Rgb mix(Rgb a, Rgb b, float amount) noexcept {
  Rgb out = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    const auto ca = static_cast<float>(a >> shift & 255U);
    const auto cb = static_cast<float>(b >> shift & 255U);
    out |= static_cast<Rgb>(std::lround(ca + (cb - ca) * amount)) << shift;
  }
  return out;
}

Rgb text_on(Rgb fill) noexcept {
  constexpr Rgb kInk = 0x10141A;
  constexpr Rgb kPaper = 0xFFFFFF;
  return contrast(fill, kInk) >= contrast(fill, kPaper) ? kInk : kPaper;
}

Meaning meaning_of(store::SpanHue hue) noexcept {
  switch (hue) {
    case store::SpanHue::compute:
      return Meaning::compute;
    case store::SpanHue::gather:
      return Meaning::gather;
    case store::SpanHue::reduce:
      return Meaning::reduce;
    case store::SpanHue::optimizer:
      return Meaning::optimizer;
    case store::SpanHue::copy:
      return Meaning::copy;
    case store::SpanHue::wait:
      return Meaning::trouble;
    case store::SpanHue::neutral:
      break;
  }
  return Meaning::neutral;
}

Meaning meaning_on(instrumentation::StreamId lane, EventKind kind, std::uint8_t code) noexcept {
  return meaning_of(store::hue_of(lane, kind, code));
}

Meaning meaning_of(EventKind kind, std::uint8_t code) noexcept {
  return meaning_on(instrumentation::StreamId::compute, kind, code);
}

Meaning meaning_of(MemoryCategory category) noexcept {
  switch (category) {
    case MemoryCategory::param_shard:
    case MemoryCategory::param_secondary:
      return Meaning::compute;
    case MemoryCategory::param_gathered:
      return Meaning::gather;
    case MemoryCategory::grad_full:
    case MemoryCategory::grad_shard:
      return Meaning::reduce;
    case MemoryCategory::master_weight:
    case MemoryCategory::momentum:
    case MemoryCategory::variance:
      return Meaning::optimizer;
    case MemoryCategory::reduce_bucket:
    case MemoryCategory::gather_buffer:
    case MemoryCategory::quantization:
      return Meaning::buffer;
    case MemoryCategory::swap_buffer:
      return Meaning::copy;
    case MemoryCategory::activation:
      return Meaning::activation;
    default:
      return Meaning::neutral;
  }
}

}  // namespace shardscope::gui
