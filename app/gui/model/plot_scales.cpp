#include "app/gui/model/plot_scales.h"

#include <algorithm>

namespace shardscope::gui {
namespace {

constexpr std::string_view kScaleKey = "PlotScale=";

}  // namespace

const char* word(AxisScale scale) noexcept {
  static constexpr const char* kWords[] = {"automatic", "linear", "logarithmic"};
  return kWords[static_cast<int>(scale)];
}

AxisScale PlotScales::of(std::string_view plot) const {
  const auto found = chosen_.find(plot);
  return found == chosen_.end() ? AxisScale::automatic : found->second;
}

void PlotScales::set(const std::string& plot, AxisScale scale) {
  if (scale == AxisScale::automatic)
    chosen_.erase(plot);
  else if (chosen_.size() < kMost || chosen_.contains(plot))
    chosen_[plot] = scale;
}

std::vector<std::string> PlotScales::lines() const {
  std::vector<std::string> out;
  for (const auto& [plot, scale] : chosen_) out.push_back(std::string(kScaleKey) + word(scale) + " " + plot);
  return out;
}

void PlotScales::take_line(std::string_view line) {
  if (!line.starts_with(kScaleKey)) return;
  line.remove_prefix(kScaleKey.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space + 1 == line.size()) return;
  for (const AxisScale scale : {AxisScale::linear, AxisScale::logarithmic}) {
    if (line.substr(0, space) == word(scale)) set(std::string(line.substr(space + 1)), scale);
  }
}

}  // namespace shardscope::gui
