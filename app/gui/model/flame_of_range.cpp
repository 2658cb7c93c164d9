#include "app/gui/model/flame_of_range.h"

#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"
#include "app/gui/model/panel_range.h"

namespace shardscope::gui {
namespace {

/// Number of calls for which a tree of an outdated range is still completed, so that a tree is shown while
/// the range keeps moving.
constexpr int kPatience = 30;

}  // namespace

TimeRange FlameOfRange::range_of(const AppState& app, FlameScope scope) {
  if (scope == FlameScope::run) return {0, app.store().end_ns() + 1};
  return panel_range(app).range;
}

bool FlameOfRange::advance(const AppState& app, FlameScope scope, FlameOf of, std::chrono::nanoseconds time) {
  if (run_ != app.run->number()) {
    run_ = app.run->number();
    shown_ = counting_ = {};
    ++version_;
  }
  const FlameQuery wanted{range_of(app, scope), app.store().revision(), of};
  const bool another = counting_.begun() ? counting_.query() != wanted && advances_ >= kPatience
                                         : !shown_.begun() || shown_.query() != wanted;
  if (another) {
    has_gpu_ = has_gpu_streams(app.store());
    counting_.start(app.store(), wanted);
    advances_ = 0;
  }
  if (!counting_.begun()) return false;
  counting_.advance(app.store(), time);
  ++advances_;
  if (!counting_.done()) return true;
  shown_ = std::exchange(counting_, {});
  ++version_;
  return shown_.query() != wanted;
}

std::string flame_heading(const AppState& app, FlameScope scope, FlameSplit split, const FlameTree& tree) {
  const TimeRange& range = tree.query().range;
  std::string text = scope == FlameScope::run ? "whole run, " + duration(range.length()).text()
                                              : text_of(PanelRange{range, app.measured.has_value()});
  const std::size_t ranks = tree.ranks().size();
  if (ranks > 1)
    text += split == FlameSplit::by_rank ? "; each of " + std::to_string(ranks) + " ranks, on one scale"
                                         : "; mean of " + std::to_string(ranks) + " ranks";
  else if (ranks == 1)
    text += "; rank " + std::to_string(tree.ranks().front());
  return text;
}

}  // namespace shardscope::gui
