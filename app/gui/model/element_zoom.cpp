#include "app/gui/model/element_zoom.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/gui/model/element_axis.h"

namespace shardscope::gui {
namespace {

std::optional<UnitRange> selected_param(const AppState& app) {
  const ElementAxis& axis = app.run->elements(app.element_scale);
  if (app.selection.param >= axis.size()) return std::nullopt;  // also kNoId
  return UnitRange{axis.begin(app.selection.param), axis.end(app.selection.param)};
}

}  // namespace

bool zoom_to_param(AppState& app) {
  const std::optional<UnitRange> param = selected_param(app);
  if (!param) return false;
  constexpr double kMargin = 0.1, kSame = 1e-9;
  const double margin = kMargin * (param->end - param->begin);
  const UnitRange wanted{std::max(0.0, param->begin - margin), std::min(1.0, param->end + margin)};
  const UnitRange& shown = app.elements;
  const bool there = std::abs(shown.begin - wanted.begin) < kSame && std::abs(shown.end - wanted.end) < kSame;
  app.elements = there ? UnitRange{} : wanted;
  return true;
}

void zoom_elements(AppState& app, double factor) {
  UnitRange& shown = app.elements;
  const std::optional<UnitRange> param = selected_param(app);
  const bool in_view = param && param->begin < shown.end && param->end > shown.begin;
  shown.zoom(factor, in_view ? (param->begin + param->end) / 2 : (shown.begin + shown.end) / 2);
  // As much of it as fits.
  if (!in_view || param->end - param->begin > shown.end - shown.begin) return;
  if (param->begin < shown.begin) shown.pan(param->begin - shown.begin);
  if (param->end > shown.end) shown.pan(param->end - shown.end);
}

}  // namespace shardscope::gui
