#include "app/gui/model/colour_vision.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardscope::gui {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

constexpr Matrix kNoRed{
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kNoGreen{
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix kNoBlue{
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

/// One sRGB channel (IEC 61966-2-1) to linear light and back, in [0, 1].
double to_linear(double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); }
double from_linear(double c) { return c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055; }

Triple linear_of(Rgb color) {
  return {to_linear((color >> 16 & 255U) / 255.0), to_linear((color >> 8 & 255U) / 255.0),
          to_linear((color & 255U) / 255.0)};
}

Triple times(const Matrix& matrix, const Triple& v) {
  Triple out{};
  for (std::size_t i = 0; i < 3; ++i)
    out[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
  return out;
}

}  // namespace

Rgb seen(Rgb color, Vision vision) noexcept {
  if (vision == Vision::all) return color;
  const Triple v = times(vision == Vision::no_red     ? kNoRed
                         : vision == Vision::no_green ? kNoGreen
                                                      : kNoBlue,
                         linear_of(color));
  Rgb out = 0;
  for (const double channel : v) {
    out = out << 8 | static_cast<Rgb>(std::lround(255 * from_linear(std::clamp(channel, 0.0, 1.0))));
  }
  return out;
}

}  // namespace shardscope::gui
