// How far apart two colours look.
#pragma once

#include <array>
#include <cmath>

#include "app/gui/model/palette.h"

namespace shardscope::test {

/// A colour of sRGB in CIE L*a*b* (1976), with standard daylight as white.
inline std::array<double, 3> lab(gui::Rgb color) {
  constexpr double kToXyz[3][3] = {{0.4124564, 0.3575761, 0.1804375},
                                   {0.2126729, 0.7151522, 0.0721750},
                                   {0.0193339, 0.1191920, 0.9503041}};
  constexpr double kWhite[3] = {0.95047, 1, 1.08883};
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  const double rgb[3] = {linear((color >> 16 & 255U) / 255.0), linear((color >> 8 & 255U) / 255.0),
                         linear((color & 255U) / 255.0)};
  double f[3];
  for (int i = 0; i < 3; ++i) {
    const double t = (kToXyz[i][0] * rgb[0] + kToXyz[i][1] * rgb[1] + kToXyz[i][2] * rgb[2]) / kWhite[i];
    f[i] = t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

/// Distance of two colours in CIE L*a*b* (1976); about 2.3 is just noticeable side by side.
inline double colour_distance(gui::Rgb a, gui::Rgb b) {
  const std::array<double, 3> x = lab(a), y = lab(b);
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

}  // namespace shardscope::test
