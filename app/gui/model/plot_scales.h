// The value axis of each plot as the user has chosen it, saved between sessions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::gui {

/// automatic: logarithmic where positive values span three decades (spans_decades()).
enum class AxisScale : std::uint8_t { automatic, linear, logarithmic };
inline constexpr AxisScale kAxisScales[] = {AxisScale::automatic, AxisScale::linear, AxisScale::logarithmic};
[[nodiscard]] const char* word(AxisScale scale) noexcept;

class PlotScales {
 public:
  static constexpr std::size_t kMost = 64;  ///< plots; further ones are not kept
  [[nodiscard]] AxisScale of(std::string_view plot) const;
  void set(const std::string& plot, AxisScale scale);
  /// Serialization for the settings file; ignores unknown and invalid lines.
  [[nodiscard]] std::vector<std::string> lines() const;
  void take_line(std::string_view line);
  friend bool operator==(const PlotScales&, const PlotScales&) = default;

 private:
  std::map<std::string, AxisScale, std::less<>> chosen_;  ///< by name of the plot, without automatic ones
};

}  // namespace shardscope::gui
