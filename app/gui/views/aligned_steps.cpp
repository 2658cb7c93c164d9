#include "app/gui/views/aligned_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/gui/model/finder.h"
#include "app/gui/model/format.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/choices.h"

namespace shardscope::gui {
namespace {

// Pixels.
constexpr float kBetweenRuns = 6;
constexpr float kHighestAlignedRow = 20;
constexpr double kZoomPerNotch = 0.8;
constexpr std::size_t kMostMenuRanks = 16;  ///< more ranks are chosen from a list with a filter

/// The current step of A and of B, or the latest before it that has ended in both runs; nulls without one.
std::pair<const store::StepRow*, const store::StepRow*> step_of_both(const AppState& app) {
  const auto shown = app.run->store().steps();
  const auto others = app.other->store().steps();
  const auto at = measured_step_of(shown, app.now_ns());
  for (std::size_t i = at ? *at + 1 : 0; i-- > 0;) {
    const store::StepRow& here = shown[i];
    if (!others.empty() && others.front().step > here.step) break;
    const auto there = std::ranges::lower_bound(others, here.step, {}, &store::StepRow::step);
    if (there == others.end() || there->step != here.step || here.end_ns == store::kOpen ||
        there->end_ns == store::kOpen)
      continue;
    return app.shows_b ? std::pair(&*there, &here) : std::pair(&here, &*there);
  }
  return {};
}

/// Approximate number of spans of a rank in a step.
std::uint64_t spans_in_step(const store::Store& store, const store::StepRow& step,
                            std::optional<std::uint32_t> rank) {
  const auto of = rank_or_lowest(store, rank);
  if (!of) return 0;
  std::uint64_t out = 0;
  for (std::uint8_t stream = 0; stream < ev::kStreamCount; ++stream) {
    const store::LaneId lane{*of, static_cast<ev::StreamId>(stream)};
    for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth)
      out += store.span_count(lane, depth, step.begin_ns, step.end_ns);
  }
  return out;
}

}  // namespace

bool AlignedSteps::can_draw(const AppState& app) { return step_of_both(app).second != nullptr; }

void AlignedSteps::prepare(const AppState& app, const store::StepRow& a, const store::StepRow& b) {
  const store::Store &store_a = app.run_a().store(), &store_b = app.run_b()->store();
  const Of of{app.run_a().number(),
              app.run_b()->number(),
              spans_in_step(store_a, a, rank_),
              spans_in_step(store_b, b, rank_),
              {a.begin_ns, a.end_ns},
              {b.begin_ns, b.end_ns},
              align_,
              rank_};
  if (of_ != of) {
    if (of_ && (of_->align != of.align || of_->run_a != of.run_a || of_->run_b != of.run_b)) view_.reset();
    of_ = of;
    why_not_.clear();
    parts_ = align_steps(store_a, a, store_b, b, align_, &why_not_, rank_);
    lanes_ = aligned_lanes(store_a, store_b, parts_, rank_);
    crowded_for_ = {0, length_ns()};
    paired_.reset();
    if (view_) see(view_->range());  // another step may be shorter
  }
  visible_ = visible_parts(parts_, seen());
  if (crowded_for_ == seen()) return;
  crowded_for_ = seen();
  see_crowded(lanes_, store_a, store_b, visible_, rank_);
}

void AlignedSteps::see(TimeRange range) {
  TimeAxis axis;
  axis.set(range, length_ns());
  view_ = axis;
  if (axis.range().begin_ns <= 0 && axis.range().end_ns >= length_ns()) view_.reset();
}

void AlignedSteps::title(Context& ctx, Rect& room, const store::StepRow& step) {
  Rect line{room.x, room.y + 6, room.w, 20};
  draw_choices(ctx,
               {{"aligned",
                 {"by step", "by phase", "by module"},
                 static_cast<int>(align_),
                 [this](AppState&, int to) { align_ = static_cast<AlignBy>(to); }}},
               line);
  if (view_ &&
      ctx.button_right(line, "Fit", true, Context::Look::plain, "Show the whole step (double click)"))
    view_.reset();
  const std::string name = "Step " + std::to_string(step.step) + " of both";
  std::string text = name;
  text += align_ == AlignBy::step || !why_not_.empty() ? ", from its begin"
          : align_ == AlignBy::phase                   ? ", each phase from its begin"
                                                       : ", each module from its begin";
  const auto steps = ctx.app.store().steps();
  const auto at = measured_step_of(steps, ctx.app.now_ns());
  // Clear also where the title is cut: it is not the step at the cursor.
  if (at && steps[*at].step != step.step)
    text = "Step " + std::to_string(step.step) + ", the latest of both" + text.substr(name.size());
  text += ", on one scale" + (why_not_.empty() ? "" : "; not aligned: " + why_not_);
  ctx.section(room, ctx.canvas.width(text, Font::strong) < line.w ? text : name);
  if (ctx.hovered({line.x, line.y, line.w, line.h})) ctx.tip(text);
}

void AlignedSteps::rank_menu(Context& ctx, Rect& line) {
  const AppState& app = ctx.app;
  const std::vector<std::uint32_t> ranks = common_ranks(app.run->store(), app.other->store());
  if (rank_ && !std::ranges::binary_search(ranks, *rank_)) rank_.reset();
  // Without a common rank each run's lowest is drawn: the tooltips name it.
  if (!rank_ && !ranks.empty()) rank_ = ranks.front();
  if (ranks.size() < 2) return;
  Rect anchor;
  if (!ctx.menu_button_right(
          line, "Rank " + std::to_string(*rank_), anchor, true,
          "The rank of both runs that is drawn, and that phases, modules and parameters are of"))
    return;
  std::vector<OverlayItem> items;
  for (const std::uint32_t rank : ranks)
    items.push_back(
        {"Rank " + std::to_string(rank), "", true, rank == *rank_, [this, rank] { rank_ = rank; }});
  if (ranks.size() > kMostMenuRanks)
    ctx.picker(anchor, "Rank of both runs", std::move(items));
  else
    ctx.menu(anchor, std::move(items));
}

bool AlignedSteps::navigate(Context& ctx, const Rect& area) {
  const TimeScale scale{seen(), area.x, area.w};
  TimeAxis axis;
  axis.set(scale.range, length_ns());
  const auto pan = [&](double pixels) {
    axis.pan(static_cast<std::int64_t>(-pixels * scale.ns_per_pixel()), length_ns());
    see(axis.range());
  };
  if (ctx.hovered(area) && ctx.pointer.wheel != 0) {
    axis.zoom(std::pow(kZoomPerNotch, static_cast<double>(ctx.pointer.wheel)), scale.time_of(ctx.pointer.x),
              length_ns());
    see(axis.range());
    ctx.pointer.wheel = 0;
  }
  if (ctx.hovered(area) && view_ && ctx.pointer.wheel_sideways != 0)
    pan(60 * static_cast<double>(ctx.pointer.wheel_sideways));
  const Context::Drag drag = ctx.drag(this, area, 0);
  if (drag == Context::Drag::going && view_) pan(static_cast<double>(ctx.pointer.dx));
  const Context::KeyArea keys = ctx.key_area(area, "steps of both");
  constexpr float kPart = 0.15F;
  if (keys.across != 0 && view_) pan(static_cast<double>(static_cast<float>(-keys.across) * kPart * area.w));
  if (keys.down != 0) {
    axis.zoom(std::pow(kZoomPerNotch, static_cast<double>(-keys.down)),
              scale.range.begin_ns + scale.range.length() / 2, length_ns());
    see(axis.range());
  }
  if (keys.chosen || (ctx.pointer.double_click && ctx.under_pointer(area))) view_.reset();
  return drag == Context::Drag::clicked;
}

void AlignedSteps::draw(Context& ctx, Rect room) {
  if (room.h < 80) return;
  AppState& app = ctx.app;
  const auto [of_a, of_b] = step_of_both(app);
  const store::StepRow &a = *of_a, &b = *of_b;
  title(ctx, room, a);
  prepare(app, a, b);
  const auto rank_a = rank_or_lowest(app.run_a().store(), rank_),
             rank_b = rank_or_lowest(app.run_b()->store(), rank_);
  if (parts_.empty() || lanes_.empty() || !rank_a || !rank_b) {
    ctx.canvas.text_in(room.take_top(22), "No spans of this step were recorded in either run.",
                       ctx.colors().muted, Font::small);
    return;
  }
  const Rect ruler = room.take_bottom(16);
  constexpr float kGutter = AlignedRows::kGutter;
  const Rect lanes{room.x + kGutter, room.y, room.w - kGutter, room.h};
  const bool clicked = navigate(ctx, lanes);
  prepare(app, a, b);  // the range may have changed
  const TimeScale scale{seen(), lanes.x, lanes.w};
  marks(ctx, scale, lanes, ruler);
  const float half = (room.h - kBetweenRuns) / 2;
  const std::vector<std::size_t> shown =
      lanes_in(lanes_, static_cast<std::size_t>(half / AlignedRows::kLowestRow));
  const AlignedPicture picture{
      lanes_,   shown, parts_,
      visible_, scale, std::clamp(half / static_cast<float>(shown.size()), 4.0F, kHighestAlignedRow)};
  std::optional<AlignedHit> hit;
  for (std::size_t run = 0; run < 2; ++run) {
    const Rect place = room.take_top(picture.row_height * static_cast<float>(shown.size()));
    if (const auto over = AlignedRows(ctx, picture, run, run == 0 ? *rank_a : *rank_b).draw(place))
      hit = over;
    room.take_top(kBetweenRuns);
  }
  times(ctx, scale, {lanes.x, lanes.y, lanes.w, room.y - kBetweenRuns - lanes.y});
  if (!hit) return;
  tip_of(ctx, *hit, a, b);
  if (!clicked) return;
  app.show_run(hit->run == 0 ? app.run_a() : *app.run_b());
  go_to_span(app, hit->lane, hit->span);
  ctx.ui.show_panel = "timeline";
}

/// The cursor and the time under the pointer. Here the pointer may be where the run shown by the other panels
/// has ended and only the other one goes on: the line is drawn across both, and those panels have none.
void AlignedSteps::times(Context& ctx, const TimeScale& scale, const Rect& lanes) const {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const Clip clip(ctx.canvas, lanes);
  const auto line = [&](std::optional<std::int64_t> at, Rgb color, float alpha) {
    if (at && scale.range.contains(*at)) ctx.canvas.vertical(scale.x_of(*at), lanes.y, lanes.h, color, alpha);
  };
  const AlignedRun shown = app.shows_b ? AlignedRun::b : AlignedRun::a;
  line(position_of(parts_, shown, app.now_ns()), c.accent, 0.9F);
  if (ctx.hovered(lanes)) {
    const std::int64_t at = scale.time_of(ctx.pointer.x);
    app.hover_next_ns = time_of(parts_, shown, at);
    line(at, c.muted, 0.5F);
  } else if (app.hover_ns) {
    line(position_of(parts_, shown, *app.hover_ns), c.muted, 0.5F);
  }
}

void AlignedSteps::tip_of(Context& ctx, const AlignedHit& hit, const store::StepRow& a,
                          const store::StepRow& b) {
  const AppState& app = ctx.app;
  const bool of_b = hit.run == 1;
  const bool same = paired_ && paired_->run == hit.run && paired_->lane == hit.lane &&
                    paired_->span.begin_ns == hit.span.begin_ns && paired_->span.depth == hit.span.depth;
  if (!same) {
    const store::Store &store_a = app.run_a().store(), &store_b = app.run_b()->store();
    const StepSide side_a{store_a, a, *rank_or_lowest(store_a, rank_)};
    const StepSide side_b{store_b, b, *rank_or_lowest(store_b, rank_)};
    pair_ = of_b ? pair_of(side_b, side_a, hit.lane.stream, hit.span)
                 : pair_of(side_a, side_b, hit.lane.stream, hit.span);
    paired_ = hit;
  }
  ctx.tip(pair_details(pair_, hit.lane.rank, of_b));
}

/// Times from the begin; aligned by parts, the names of the parts, since the scale has no time of its own.
void AlignedSteps::marks(Context& ctx, const TimeScale& scale, const Rect& lanes, const Rect& ruler) const {
  const Palette& c = ctx.colors();
  const Rect strip{lanes.x, lanes.y, lanes.w, ruler.bottom() - lanes.y};
  const Clip clip(ctx.canvas, strip);
  if (align_ == AlignBy::step || !why_not_.empty()) {
    for (const Tick& tick : time_ticks(scale, 90)) {
      ctx.canvas.text(scale.x_of(tick.at_ns) + 3, ruler.y + 1, tick.label, c.muted, Font::mono_small);
      ctx.canvas.vertical(scale.x_of(tick.at_ns), lanes.y, lanes.h, c.line, 0.7F);
    }
    return;
  }
  for (const AlignedPart& piece : parts_) {
    const float x0 = std::max(strip.x, scale.x_of(piece.at_ns));
    const float x1 = std::min(strip.right(), scale.x_of(piece.at_ns + piece.length_ns));
    if (x1 <= x0) continue;
    if (scale.range.contains(piece.at_ns)) ctx.canvas.vertical(x0, lanes.y, lanes.h, c.line, 0.9F);
    const Rect place{x0 + 3, ruler.y, x1 - x0 - 6, ruler.h};
    const auto length = [](const TimeRange& range) { return duration(range.length()).text(); };
    const std::string text = piece.name + "  A " + length(piece.a) + "  B " + length(piece.b);
    if (!piece.name.empty() && place.w > 20) {
      const bool whole = ctx.canvas.width(text, Font::small) <= place.w;
      const std::string_view name = ctx.canvas.fitting_path(place.w, tail_path(piece.name), Font::small);
      ctx.canvas.text_in(place, whole ? text : name, c.muted, Font::small);
    }
    if (ctx.hovered({x0, ruler.y, x1 - x0, ruler.h}))
      ctx.tip(piece.name.empty() ? "between the aligned parts" + text : text);
  }
}

}  // namespace shardscope::gui
