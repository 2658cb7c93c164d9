// Partition map: the owner of each element, and what is gathered now. Rank by element range.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "app/gui/model/block_name.h"
#include "app/gui/model/format.h"
#include "app/gui/model/gradient_states.h"
#include "app/gui/model/names.h"
#include "app/gui/views/panels.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {
namespace {

constexpr float kRankGutter = 64;
constexpr float kAxis = 20;
constexpr float kSmallestRow = 22;
constexpr float kLargestRow = 56;

/// "c_attn.weight", else "c_attn", else nothing: what fits of a parameter's name and still says which it is.
std::string_view cell_label(const Canvas& canvas, std::string_view name, float room) {
  const std::size_t last = name.rfind('.');
  const std::size_t before =
      last == std::string_view::npos || last == 0 ? std::string_view::npos : name.rfind('.', last - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view both = name.substr(begin);
  if (canvas.width(both, Font::small) <= room) return both;
  const std::string_view module = last == std::string_view::npos ? both : name.substr(begin, last - begin);
  return canvas.width(module, Font::small) <= room ? module : std::string_view{};
}

/// What of the model states the cells show.
enum class Layer : std::uint8_t { parameters, gradients, optimizer };
/// By what they are coloured.
enum class ColourBy : std::uint8_t { status, owner, module, age };

/// Hues that neighbours do not share: the golden angle apart.
Rgb hue(std::size_t which, const Palette& c) {
  const double h = std::fmod(static_cast<double>(which) * 0.381966, 1.0) * 6;
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + h, 6);
    const double v = 0.80 - 0.45 * std::clamp(std::min(k, 4 - k), 0.0, 1.0);
    return static_cast<Rgb>(std::lround(255 * v));
  };
  return mix(channel(5) << 16 | channel(3) << 8 | channel(1), c.panel, 0.12F);
}

class PartitionView final : public View {
 public:
  std::string_view name() const override { return "partition"; }
  std::string_view title() const override { return "Partition map"; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void axis(Context& ctx, const Rect& rect, const ElementAxis& elements);
  void row(Context& ctx, const Rect& rect, const ElementAxis& elements, std::uint32_t rank, bool labels);
  void cell(Context& ctx, const Rect& rect, std::uint32_t rank, std::uint32_t param,
            const store::ParamState& state, const ElementAxis& elements, bool labels);
  void hover(Context& ctx, const Rect& rect, const ElementAxis& elements, std::uint32_t rank);
  void legend(Context& ctx, Rect rect);
  void gradient_cell(Context& ctx, const Rect& box, std::uint32_t rank, std::uint32_t param,
                     const ElementAxis& elements);
  void optimizer_cell(Context& ctx, const Rect& box, std::uint32_t rank, std::uint32_t param,
                      const ElementAxis& elements);
  /// By owner, module or age in place of the status; false where that says nothing here.
  bool coloured(Context& ctx, const Rect& box, std::uint32_t rank, std::uint32_t param,
                const store::ParamState& state, const ElementAxis& elements);
  void pieces(Context& ctx, const Rect& box, const ev::ParamInfo& info, std::span<const OwnedSlice> slices,
              Rgb color, float alpha) const;
  const std::vector<GradientState>& gradients(const AppState& app, std::uint32_t rank);
  void label(Context& ctx, const Rect& box, std::string_view name) const;
  static void double_outline(Context& ctx, const Rect& box);
  [[nodiscard]] float x_of(const Rect& rect, double position) const {
    return rect.x + static_cast<float>((position - shown_.begin) / (shown_.end - shown_.begin)) * rect.w;
  }

  UnitRange shown_;
  Layer layer_ = Layer::parameters;
  ColourBy colour_by_ = ColourBy::status;
  std::int64_t gradients_at_ = -1;
  std::uint64_t gradients_revision_ = 0;
  const Session* gradients_of_ = nullptr;
  std::map<std::uint32_t, std::vector<GradientState>> gradients_;  ///< by rank, at that time
  float scroll_ = 0;
  int pan_owner_ = 0;
  std::vector<store::ParamState> states_;
  std::string secondary_of_;  ///< run in which a secondary copy was seen: its legend is shown from then on
  std::vector<Rect> marks_;   ///< selected cells of the row being drawn
};

void PartitionView::header(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  if (ctx.button_right(room, "Fit", true, Context::Look::plain, "Show every parameter")) app.elements = {};
  const int scale =
      ctx.choice_right(room, {"to scale", "widen small"}, app.element_scale == ElementScale::linear ? 0 : 1);
  app.element_scale = scale == 0 ? ElementScale::linear : ElementScale::compressed;
  if (room.w > 300) {
    layer_ = static_cast<Layer>(
        ctx.choice_right(room, {"parameters", "gradients", "optimizer states"}, static_cast<int>(layer_)));
  }
  Rect place;
  constexpr std::array kNames{"status", "owner", "module", "age"};
  if (layer_ == Layer::parameters && room.w > 130 &&
      ctx.menu_button_right(room, std::string("by ") + kNames[static_cast<std::size_t>(colour_by_)], place)) {
    std::vector<OverlayItem> items;
    constexpr std::array kTips{"here, on its way, not here", "the rank whose shard it is",
                               "block of the model", "since its status changed"};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      const auto by = static_cast<ColourBy>(i);
      items.push_back({kNames[i], kTips[i], true, by == colour_by_, [this, by] { colour_by_ = by; }});
    }
    ctx.menu(place, std::move(items));
  }
}

const std::vector<GradientState>& PartitionView::gradients(const AppState& app, std::uint32_t rank) {
  const std::int64_t at = app.now_ns();
  if (gradients_at_ != at || gradients_of_ != app.run.get() ||
      gradients_revision_ != app.store().revision()) {
    gradients_.clear();
    gradients_at_ = at;
    gradients_of_ = app.run.get();
    gradients_revision_ = app.store().revision();
  }
  const auto [found, made] = gradients_.try_emplace(rank);
  if (made) found->second = gradient_states(app.store(), rank, at);
  return found->second;
}

/// Parts of a parameter's box, padding after the last.
void PartitionView::pieces(Context& ctx, const Rect& box, const ev::ParamInfo& info,
                           std::span<const OwnedSlice> slices, Rgb color, float alpha) const {
  const auto elems = static_cast<double>(std::max<std::int64_t>(1, info.elems));
  for (const OwnedSlice& slice : slices) {
    const float x0 = box.x + static_cast<float>(static_cast<double>(slice.param_offset) / elems) * box.w;
    const float share =
        static_cast<float>(std::min(1.0, static_cast<double>(slice.param_offset + slice.elems) / elems));
    const float x1 = std::max(x0 + 1, box.x + share * box.w);
    ctx.canvas.fill({x0, box.y, std::min(x1, box.right()) - x0, box.h}, color, alpha);
  }
}

void PartitionView::label(Context& ctx, const Rect& box, std::string_view name) const {
  if (box.w <= 30 || box.h < 18) return;
  const std::string_view text = cell_label(ctx.canvas, name, box.w - 10);
  if (text.empty()) return;
  // A plate under the label: it may lie over both owned and gathered elements.
  const Rect plate{box.x + 3, box.y + (box.h - 14) / 2, ctx.canvas.width(text, Font::small) + 4, 14};
  ctx.canvas.fill(plate, ctx.colors().panel, 0.72F, 2);
  ctx.canvas.text_in({plate.x + 2, plate.y, plate.w, plate.h}, text, ctx.colors().text, Font::small);
}

/// Outline: none yet; half high: in a bucket; full height, pale: flushed; hatched: being reduced; solid:
/// reduced, at stages 2 and 3 where this rank owns it.
void PartitionView::gradient_cell(Context& ctx, const Rect& box, std::uint32_t rank, std::uint32_t param,
                                  const ElementAxis& elements) {
  const Palette& c = ctx.colors();
  const ev::RunTables& tables = ctx.app.store().tables();
  const ev::ParamInfo& info = tables.params[param];
  const Rgb color = c.of(Meaning::reduce);
  ctx.canvas.outline(box, mix(c.line, c.muted, 0.25F));
  if (info.frozen) {
    ctx.canvas.dots(box, c.muted, 0.5F);
    return;
  }
  const std::vector<GradientState>& states = gradients(ctx.app, rank);
  if (param >= states.size()) return;
  switch (states[param].status) {
    case GradientStatus::none:
      return;
    case GradientStatus::in_bucket:
      ctx.canvas.fill({box.x, box.y + box.h / 2, box.w, box.h / 2}, color, 0.8F);
      return;
    case GradientStatus::flushed:
      ctx.canvas.fill(box, color, 0.45F);
      return;
    case GradientStatus::reducing:
      ctx.canvas.fill(box, color, 0.25F);
      ctx.canvas.hatch(box, color, 1, 6);
      return;
    case GradientStatus::reduced:
      if (tables.stage < 2 || tables.world == 1)
        ctx.canvas.fill(box, color);
      else
        pieces(ctx, box, info, elements.owned(rank, param), color, 1);
      return;
  }
}

/// Master weights, momentum and variance: at stage 0 on every rank, from stage 1 on at the owner.
void PartitionView::optimizer_cell(Context& ctx, const Rect& box, std::uint32_t rank, std::uint32_t param,
                                   const ElementAxis& elements) {
  const Palette& c = ctx.colors();
  const ev::RunTables& tables = ctx.app.store().tables();
  const ev::ParamInfo& info = tables.params[param];
  const Rgb color = c.of(Meaning::optimizer);
  ctx.canvas.outline(box, mix(c.line, c.muted, 0.25F));
  if (info.frozen) {
    ctx.canvas.dots(box, c.muted, 0.5F);
    return;
  }
  if (tables.stage == 0 || tables.world == 1)
    ctx.canvas.fill(box, color);
  else
    pieces(ctx, box, info, elements.owned(rank, param), color, 1);
}

bool PartitionView::coloured(Context& ctx, const Rect& box, std::uint32_t rank, std::uint32_t param,
                             const store::ParamState& state, const ElementAxis& elements) {
  constexpr std::uint32_t kMostOwners = 256;
  const AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const ev::RunTables& tables = app.store().tables();
  const ev::ParamInfo& info = tables.params[param];
  const bool here = tables.stage < 3 || static_cast<plan::ParamStatus>(ev::status_of(state.status)) ==
                                            plan::ParamStatus::available;
  switch (colour_by_) {
    case ColourBy::status:
      return false;
    case ColourBy::owner:
      if (tables.world > kMostOwners) return false;
      for (std::uint32_t owner = 0; owner < tables.world; ++owner) {
        const bool own = owner == rank;
        pieces(ctx, box, info, elements.owned(owner, param), hue(owner, c), own || here ? 1.0F : 0.28F);
      }
      break;
    case ColourBy::module: {
      const auto block = std::hash<std::string_view>{}(block_of(info.name)) % 97;
      ctx.canvas.fill(box, hue(block, c), here ? 0.9F : 0.2F);
      pieces(ctx, box, info, elements.owned(rank, param), hue(block, c), 1);
      break;
    }
    case ColourBy::age: {
      if (state.since_ns <= 0) {
        ctx.canvas.outline(box, mix(c.line, c.muted, 0.25F));
        break;
      }
      // 1 us: bright; 1 s and more: the panel's colour nearly.
      const double age = std::max(1.0, static_cast<double>(app.now_ns() - state.since_ns));
      const auto old = static_cast<float>(std::clamp((std::log10(age) - 3) / 6, 0.0, 1.0));
      ctx.canvas.fill(
          box, mix(here ? c.of(Meaning::gather) : c.of(Meaning::neutral), c.panel, 0.1F + 0.75F * old));
      break;
    }
  }
  return true;
}

void PartitionView::axis(Context& ctx, const Rect& rect, const ElementAxis& elements) {
  const Palette& c = ctx.colors();
  const auto& params = ctx.app.store().tables().params;
  const Clip clip(ctx.canvas, rect);
  std::size_t i = 0;
  while (i < params.size()) {
    const std::string_view group = block_of(params[i].name);
    std::size_t next = i + 1;
    while (next < params.size() && block_of(params[next].name) == group) ++next;
    const float x0 = x_of(rect, elements.begin(static_cast<std::uint32_t>(i)));
    const float x1 = x_of(rect, elements.end(static_cast<std::uint32_t>(next - 1)));
    if (x1 > rect.x && x0 < rect.right()) {
      ctx.canvas.vertical(x0, rect.y + 4, rect.h - 4, c.line);
      const float left = std::max(x0, rect.x);
      const Rect label{left + 4, rect.y, std::min(x1, rect.right()) - left - 8, rect.h};
      const auto chars = static_cast<std::size_t>(std::max(0.0F, label.w / 6));
      const std::string_view text = short_path(tail_path(group), chars);
      if (label.w > 12 && text.size() <= chars + 1) ctx.canvas.text_in(label, text, c.muted, Font::small);
    }
    i = next;
  }
}

void PartitionView::cell(Context& ctx, const Rect& box, std::uint32_t rank, std::uint32_t param,
                         const store::ParamState& state, const ElementAxis& elements, bool labels) {
  const AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const ev::RunTables& tables = app.store().tables();
  const ev::ParamInfo& info = tables.params[param];
  const Rgb own = c.of(Meaning::compute);
  const Rgb here = c.of(Meaning::gather);
  const auto status = static_cast<plan::ParamStatus>(ev::status_of(state.status));
  const bool stage3 = tables.stage == 3;
  if (layer_ != Layer::parameters) {
    if (layer_ == Layer::gradients)
      gradient_cell(ctx, box, rank, param, elements);
    else
      optimizer_cell(ctx, box, rank, param, elements);
    if (labels) label(ctx, box, info.name);
    return;
  }
  if (coloured(ctx, box, rank, param, state, elements)) {
    if (labels) label(ctx, box, info.name);
    return;
  }
  Rgb ground = c.panel;
  if (!stage3) {
    ground = mix(c.panel, own, 0.35F);  // a replica of what others own
    ctx.canvas.fill(box, ground);
  } else if (status == plan::ParamStatus::available) {
    ground = here;
    ctx.canvas.fill(box, here);
  } else if (status == plan::ParamStatus::in_flight) {
    ctx.canvas.fill(box, here, 0.25F);
    const bool moves = app.run->live() && !app.cursor_ns && !app.paused();
    ctx.canvas.hatch(box, here, 1, 6, moves ? static_cast<float>(std::fmod(ctx.seconds * 12, 6)) : 0);
    if (moves) ctx.moving = true;
    ground = mix(c.panel, here, 0.4F);
  } else {
    ctx.canvas.outline(box, mix(c.line, c.muted, 0.25F));
  }
  if (tables.world == 1 || tables.stage == 0) {
    ctx.canvas.fill(box, own);
    ground = own;
  } else {
    for (const OwnedSlice& slice : elements.owned(rank, param)) {
      const Rect row_rect{box.x, box.y, box.w, box.h};
      const double share0 = static_cast<double>(slice.param_offset) /
                            static_cast<double>(std::max<std::int64_t>(1, info.elems));
      const double share1 = static_cast<double>(slice.param_offset + slice.elems) /
                            static_cast<double>(std::max<std::int64_t>(1, info.elems));
      const float x0 = row_rect.x + static_cast<float>(share0) * row_rect.w;
      const float x1 = std::max(x0 + 1, row_rect.x + static_cast<float>(std::min(1.0, share1)) * row_rect.w);
      const Rect piece{x0, box.y, std::min(x1, box.right()) - x0, box.h};
      ctx.canvas.fill(piece, own);
      if (slice.padding_elems > 0 && box.w > 16) {
        const Rect pad{std::max(box.x, std::min(piece.right(), box.right() - 6)), box.y, 6, box.h};
        ctx.canvas.fill(pad, c.panel);
        ctx.canvas.dots(pad, c.muted);
      }
    }
  }
  if (ev::secondary_held(state.status)) {
    double_outline(ctx, box);
    secondary_of_ = tables.run_id;
  }
  const bool persistent = stage3 && info.persistent && status == plan::ParamStatus::available;
  if (persistent && box.w >= 5)
    ctx.canvas.disc(box.x + box.w / 2, box.y + box.h / 2, std::min(2.5F, box.w / 3), text_on(here));
  if (labels) label(ctx, box, info.name);
}

/// A secondary copy (hpZ).
void PartitionView::double_outline(Context& ctx, const Rect& box) {
  const Rgb line = ctx.colors().text;
  ctx.canvas.outline(box, line, 0.6F);
  if (box.w >= 8 && box.h >= 8) ctx.canvas.outline({box.x + 2, box.y + 2, box.w - 4, box.h - 4}, line, 0.6F);
}

void PartitionView::row(Context& ctx, const Rect& rect, const ElementAxis& elements, std::uint32_t rank,
                        bool labels) {
  AppState& app = ctx.app;
  marks_.clear();
  states_.assign(elements.size(), {});
  app.store().param_states(rank, app.now_ns(), states_);
  if (!app.store().is_known(rank, app.now_ns())) {
    ctx.canvas.hatch(rect, ctx.colors().muted, 0.3F, 10);
    ctx.canvas.text_in(rect.inset(6, 0), not_kept_text(), ctx.colors().muted, Font::small);
    return;
  }
  const std::uint32_t first =
      std::min(elements.param_at(shown_.begin), static_cast<std::uint32_t>(elements.size()));
  float painted_to = rect.x - 1;
  for (std::uint32_t param = first; param < elements.size() && elements.begin(param) < shown_.end; ++param) {
    const float x0 = x_of(rect, elements.begin(param));
    const float x1 = x_of(rect, elements.end(param));
    const bool chosen = app.selected(param);
    if (chosen) marks_.push_back({x0 - 1, rect.y - 1, std::max(1.0F, x1 - x0) + 1, rect.h + 2});
    if (x1 < painted_to + 0.5F) continue;
    const float gap = x1 - x0 > 5 ? 1.0F : 0.0F;
    const float left = std::max({x0, painted_to, rect.x - 2000});
    const Rect box{left, rect.y, std::max(1.0F, std::min(x1, rect.right() + 2000) - left - gap), rect.h};
    cell(ctx, box, rank, param, states_[param], elements, labels);
    painted_to = x1 - x0 < 1 ? std::floor(x0) + 1 : x1;
  }
  // After all cells, so that no neighbour covers a mark; a parameter too narrow to be drawn keeps its own.
  for (const Rect& mark : marks_) ctx.canvas.outline(mark, ctx.colors().text, 1, 2);
}

void PartitionView::hover(Context& ctx, const Rect& rect, const ElementAxis& elements, std::uint32_t rank) {
  const double position =
      shown_.begin + static_cast<double>((ctx.pointer.x - rect.x) / rect.w) * (shown_.end - shown_.begin);
  const std::uint32_t param = elements.param_at(position);
  if (param == ev::kNoId) return;
  AppState& app = ctx.app;
  Details details = describe_param(app, param, rank, app.now_ns());
  for (const OwnedSlice& slice : elements.owned(rank, param)) {
    details.fields.push_back(
        {"rank " + std::to_string(rank) + " owns",
         grouped(slice.param_offset) + " to " + grouped(slice.param_offset + slice.elems), "", ""});
  }
  if (layer_ == Layer::gradients) {
    const std::vector<GradientState>& states = gradients(app, rank);
    if (param < states.size()) {
      const GradientState& state = states[param];
      details.fields.push_back({"gradient", word(state.status), "", ""});
      if (state.bucket != ev::kNoId)
        details.fields.push_back({"bucket", std::to_string(state.bucket), "", ""});
      if (state.since_ns > 0)
        details.fields.push_back({"for", duration(app.now_ns() - state.since_ns).text(), "", ""});
    }
  }
  details.fields.push_back(
      {"under the pointer", "element " + grouped(elements.element_at(param, position)), "", ""});
  ctx.tip(details);
}

void PartitionView::legend(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  const bool stage3 = ctx.app.store().tables().stage == 3;
  const auto entry = [&](const char* text, const auto& swatch) {
    const float w = ctx.canvas.width(text, Font::small) + 30;
    if (room.w < w) return;
    Rect place = room.take_left(w);
    const Rect mark{place.x, place.y + (place.h - 10) / 2, 14, 10};
    swatch(mark);
    ctx.canvas.text_in({mark.right() + 5, place.y, place.w, place.h}, text, c.muted, Font::small);
  };
  if (layer_ == Layer::gradients) {
    const Rgb color = c.of(Meaning::reduce);
    entry("none yet", [&](const Rect& r) { ctx.canvas.outline(r, mix(c.line, c.muted, 0.5F)); });
    entry("in a bucket", [&](const Rect& r) {
      ctx.canvas.outline(r, mix(c.line, c.muted, 0.5F));
      ctx.canvas.fill({r.x, r.y + r.h / 2, r.w, r.h / 2}, color, 0.8F);
    });
    entry("flushed", [&](const Rect& r) { ctx.canvas.fill(r, color, 0.45F); });
    entry("being reduced", [&](const Rect& r) {
      ctx.canvas.fill(r, color, 0.25F);
      ctx.canvas.hatch(r, color, 1, 5);
    });
    entry(ctx.app.store().tables().stage < 2 ? "reduced, on every rank" : "reduced, the owner's part",
          [&](const Rect& r) { ctx.canvas.fill(r, color); });
    return;
  }
  if (layer_ == Layer::optimizer) {
    entry(ctx.app.store().tables().stage == 0 ? "whole on every rank" : "this rank's optimizer states",
          [&](const Rect& r) { ctx.canvas.fill(r, c.of(Meaning::optimizer)); });
    entry("elsewhere", [&](const Rect& r) { ctx.canvas.outline(r, mix(c.line, c.muted, 0.5F)); });
    entry("not trained", [&](const Rect& r) { ctx.canvas.dots(r, c.muted); });
    return;
  }
  if (colour_by_ == ColourBy::owner) {
    const std::uint32_t world = std::min<std::uint32_t>(ctx.app.store().tables().world, 16);
    for (std::uint32_t rank = 0; rank < world; ++rank)
      entry(("rank " + std::to_string(rank)).c_str(),
            [&](const Rect& r) { ctx.canvas.fill(r, hue(rank, c)); });
    entry("pale: not here", [&](const Rect& r) { ctx.canvas.fill(r, c.muted, 0.28F); });
    return;
  }
  if (colour_by_ == ColourBy::age) {
    for (const auto& [text, old] :
         {std::pair{"1 \u00b5s", 0.0F}, {"1 ms", 0.5F}, {"1 s and more since it changed", 1.0F}})
      entry(text, [&](const Rect& r) {
        ctx.canvas.fill(r, mix(c.of(Meaning::gather), c.panel, 0.1F + 0.75F * old));
      });
    entry("not here", [&](const Rect& r) { ctx.canvas.fill(r, c.of(Meaning::neutral)); });
    return;
  }
  entry(stage3 ? "owned" : "owned partition",
        [&](const Rect& r) { ctx.canvas.fill(r, c.of(Meaning::compute)); });
  if (!stage3) {
    entry("replica", [&](const Rect& r) { ctx.canvas.fill(r, mix(c.panel, c.of(Meaning::compute), 0.35F)); });
  } else {
    entry("available", [&](const Rect& r) { ctx.canvas.fill(r, c.of(Meaning::gather)); });
    entry("in flight", [&](const Rect& r) {
      ctx.canvas.fill(r, c.of(Meaning::gather), 0.25F);
      ctx.canvas.hatch(r, c.of(Meaning::gather), 1, 5);
    });
    entry("not available", [&](const Rect& r) { ctx.canvas.outline(r, mix(c.line, c.muted, 0.5F)); });
    if (secondary_of_ == ctx.app.store().tables().run_id) {
      entry("secondary copy", [&](const Rect& r) { double_outline(ctx, {r.x, r.y - 1, r.w, r.h + 2}); });
    }
    entry("persistent", [&](const Rect& r) {
      ctx.canvas.fill(r, c.of(Meaning::gather));
      ctx.canvas.disc(r.x + r.w / 2, r.y + r.h / 2, 2.5F, text_on(c.of(Meaning::gather)));
    });
  }
  entry("padding", [&](const Rect& r) { ctx.canvas.dots({r.x, r.y - 1, r.w, r.h + 2}, c.muted); });
}

void PartitionView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (!app.store().has_tables() || app.store().tables().params.empty()) {
    ctx.empty(room, "No parameters known yet",
              "The partition appears as soon as a rank has sent its tables.");
    return;
  }
  const Palette& c = ctx.colors();
  const ElementAxis& elements = app.run->elements(app.element_scale);
  shown_ = app.elements;
  room = {room.x + 12, room.y, room.w - 20, room.h};
  if (room.h > 90) legend(ctx, room.take_bottom(24));
  Rect top = room.take_top(kAxis);
  top.take_left(kRankGutter);
  axis(ctx, top, elements);
  const std::uint32_t world = app.store().tables().world;
  const float height =
      std::clamp(std::floor(room.h / static_cast<float>(world)) - 4, kSmallestRow, kLargestRow);
  const Rect map{room.x + kRankGutter, room.y, room.w - kRankGutter, room.h};
  if (ctx.hovered(map) && !ctx.pointer.shift && ctx.pointer.wheel != 0) {
    const double at =
        shown_.begin + static_cast<double>((ctx.pointer.x - map.x) / map.w) * (shown_.end - shown_.begin);
    app.elements.zoom(std::pow(0.82, static_cast<double>(ctx.pointer.wheel)), at);
    ctx.pointer.wheel = 0;
  }
  ctx.scroll(this, room, (height + 4) * static_cast<float>(world), scroll_);
  const Context::Drag drag = ctx.drag(&pan_owner_, map, 0);
  if (drag == Context::Drag::going) {
    app.elements.pan(static_cast<double>(-ctx.pointer.dx / map.w) * (shown_.end - shown_.begin));
    scroll_ -= ctx.pointer.dy;
  }
  const Clip clip(ctx.canvas, room);
  int labelled = 0;  // names on the first row only: the columns are the same below
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const Rect line{map.x, std::floor(room.y + static_cast<float>(rank) * (height + 4) - scroll_), map.w - 8,
                    height};
    if (line.bottom() < room.y || line.y > room.bottom()) continue;
    const bool chosen = app.selection.kind == SelectionKind::rank && app.selection.rank == rank;
    ctx.canvas.text_in({room.x, line.y, kRankGutter - 8, height}, "rank " + std::to_string(rank),
                       chosen ? c.accent : c.text, Font::small);
    {
      const Clip inner(ctx.canvas, line);
      row(ctx, line, elements, rank, labelled++ == 0);
    }
    const bool over =
        line.contains(ctx.pointer.x, ctx.pointer.y) && room.contains(ctx.pointer.x, ctx.pointer.y);
    if (over && ctx.hovered(line)) hover(ctx, line, elements, rank);
    if (over && drag == Context::Drag::clicked) {
      const double at =
          shown_.begin + static_cast<double>((ctx.pointer.x - line.x) / line.w) * (shown_.end - shown_.begin);
      const std::uint32_t param = elements.param_at(at);
      if (param != ev::kNoId) app.select_param(param, rank);
    }
  }
}

}  // namespace

std::unique_ptr<View> make_partition_view() { return std::make_unique<PartitionView>(); }

}  // namespace shardscope::gui
