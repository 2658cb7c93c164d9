#include "app/gui/views/partition_cells.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "app/analysis/zero_settings.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {
namespace {

/// The part of a parameter's name that fits and identifies it: "c_attn.weight", "c_attn", or empty.
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

plan::ParamStatus param_status(const PartitionCell& cell) {
  return static_cast<plan::ParamStatus>(ev::status_of(cell.state.status));
}

void draw_nothing_here(Context& ctx, const Rect& box) {
  const Palette& c = ctx.colors();
  ctx.canvas.outline(box, mix(c.line, c.muted, 0.25F));
}

/// Rectangle of a slice within its parameter's box.
Rect piece_of(const Rect& box, std::int64_t param_elems, const OwnedSlice& slice) {
  const auto elems = static_cast<double>(std::max<std::int64_t>(1, param_elems));
  const float x0 = box.x + static_cast<float>(static_cast<double>(slice.param_offset) / elems) * box.w;
  const float share =
      static_cast<float>(std::min(1.0, static_cast<double>(slice.param_offset + slice.elems) / elems));
  const float x1 = std::max(x0 + 1, box.x + share * box.w);
  return {x0, box.y, std::min(x1, box.right()) - x0, box.h};
}

void fill_pieces(Context& ctx, const Rect& box, std::int64_t param_elems, std::span<const OwnedSlice> slices,
                 Rgb color, float alpha = 1) {
  for (const OwnedSlice& slice : slices) ctx.canvas.fill(piece_of(box, param_elems, slice), color, alpha);
}

/// The rank's slices of the parameter, with their padding.
void draw_owned(Context& ctx, const ElementAxis& elements, const PartitionCell& cell,
                std::int64_t param_elems) {
  const Palette& c = ctx.colors();
  const Rect& box = cell.box;
  for (const OwnedSlice& slice : elements.owned(cell.rank, cell.param)) {
    const Rect piece = piece_of(box, param_elems, slice);
    ctx.canvas.fill(piece, c.of(Meaning::compute));
    if (slice.padding_elems <= 0 || box.w <= 16) continue;
    const Rect pad{std::max(box.x, std::min(piece.right(), box.right() - 6)), box.y, 6, box.h};
    ctx.canvas.fill(pad, c.panel);
    ctx.canvas.dots(pad, c.muted);
  }
}

/// The owner's part, solid, and what was freed after the reduction, pale.
void draw_reduced_at_owner(Context& ctx, const Rect& box, std::int64_t param_elems,
                           std::span<const OwnedSlice> owned) {
  const Rgb color = ctx.colors().of(Meaning::reduce);
  ctx.canvas.fill(box, color, 0.14F);
  fill_pieces(ctx, box, param_elems, owned, color);
}

}  // namespace

Rgb hue(std::size_t which, const Palette& colors) {
  if (!colors.owners.empty()) return colors.owners[which % colors.owners.size()];
  const double h = std::fmod(static_cast<double>(which) * 0.381966, 1.0) * 6;
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + h, 6);
    const double v = 0.80 - 0.45 * std::clamp(std::min(k, 4 - k), 0.0, 1.0);
    return static_cast<Rgb>(std::lround(255 * v));
  };
  return mix(channel(5) << 16 | channel(3) << 8 | channel(1), colors.panel, 0.12F);
}

Rgb owner_hue(std::uint32_t colour, std::uint32_t world, const Palette& colors) {
  if (world <= kOwnColours) return hue(colour, colors);
  const std::vector<Rgb>& stops = colors.owner_scale;
  const float at = static_cast<float>(colour) / static_cast<float>(kScaleColours - 1) *
                   static_cast<float>(stops.size() - 1);
  const auto stop = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  return mix(stops[stop], stops[stop + 1], at - static_cast<float>(stop));
}

RemoteShardStyle not_here(Rgb color, const Palette& colors, float alpha) {
  if (colors.owners.empty()) return {mix(colors.panel, color, alpha), 1};
  return {color, 0.25F};
}

void fill_not_here(Context& ctx, const Rect& box, Rgb color, float alpha) {
  const RemoteShardStyle look = not_here(color, ctx.colors(), alpha);
  const float height = std::min(box.h, std::max(2.0F, look.height * box.h));
  ctx.canvas.fill({box.x, box.bottom() - height, box.w, height}, look.color);
}

void fill_use(Context& ctx, const Rect& box, ParamUse use) {
  const Palette& c = ctx.colors();
  const Rgb gathered = c.of(Meaning::gather);
  switch (use) {
    case ParamUse::not_here:
      draw_nothing_here(ctx, box);
      break;
    case ParamUse::persistent:
      ctx.canvas.fill(box, gathered);
      if (box.w > 7) ctx.canvas.disc(box.x + box.w / 2, box.y + box.h / 2, 2.5F, text_on(gathered));
      break;
    case ParamUse::wanted:
      ctx.canvas.fill(box, gathered);
      break;
    case ParamUse::kept:
      ctx.canvas.fill(box, mix(gathered, c.panel, 0.6F));
      break;
    case ParamUse::for_nothing:
      ctx.canvas.fill(box, c.of(Meaning::trouble), 0.35F);
      ctx.canvas.hatch(box, c.of(Meaning::trouble), 1, 6);
      break;
  }
}

Rgb aged(Rgb color, const Palette& colors, float age) { return mix(color, colors.panel, 0.1F + 0.75F * age); }

Rgb replica(const Palette& colors) { return mix(colors.panel, colors.of(Meaning::compute), 0.38F); }

void draw_place(Context& ctx, const Rect& box, const analysis::ShardPlace& place) {
  const Palette& c = ctx.colors();
  const ShardStyle look = style_of(place);
  const Rgb color = c.of(look.meaning);
  ctx.canvas.fill(box, color, look.hatched ? 0.25F : 1.0F);
  if (look.hatched) ctx.canvas.hatch(box, color, 1, 6);
  if (look.dotted) ctx.canvas.dots(box, look.hatched ? c.text : text_on(color));
}

void draw_optimizer_place(Context& ctx, const Rect& box,
                          const std::optional<analysis::OptimizerPlace>& place) {
  if (!place || place->place == plan::ShardPlace::device)
    ctx.canvas.fill(box, ctx.colors().of(Meaning::optimizer));
  else
    draw_place(ctx, box, {place->place, place->pinned, false});
}

void double_outline(Context& ctx, const Rect& box) {
  const Rgb line = ctx.colors().text;
  ctx.canvas.outline(box, line, 0.6F);
  if (box.w >= 8 && box.h >= 8) ctx.canvas.outline({box.x + 2, box.y + 2, box.w - 4, box.h - 4}, line, 0.6F);
}

void draw_cell_label(Context& ctx, const Rect& box, std::string_view name) {
  if (box.w <= 30 || box.h < 18) return;
  const std::string_view text = cell_label(ctx.canvas, name, box.w - 10);
  if (text.empty()) return;
  // On a plate, as the label may cover both owned and gathered elements.
  ctx.canvas.text_on_plate({box.x + 5, box.y, box.w - 10, box.h}, text, ctx.colors().text, ctx.colors().panel,
                           Font::small);
}

/// Master weights, momentum and variance: at stage 0 on every rank, from stage 1 on at the owner.
void PartitionCells::optimizer(Context& ctx, const ElementAxis& elements, const PartitionCell& cell) {
  const ev::RunTables& tables = ctx.app.store().tables();
  const ev::ParamInfo& info = tables.params[cell.param];
  const auto& place = places(*ctx.app.run).optimizer();
  draw_nothing_here(ctx, cell.box);
  if (info.frozen) {
    ctx.canvas.dots(cell.box, ctx.colors().muted, 0.5F);
  } else if (tables.stage == 0 || tables.world == 1) {
    draw_optimizer_place(ctx, cell.box, place);
  } else {
    for (const OwnedSlice& slice : elements.owned(cell.rank, cell.param))
      draw_optimizer_place(ctx, piece_of(cell.box, info.elems, slice), place);
  }
}

/// Outline: not written; quarter of the height: accumulated; half height: in a bucket; full height, pale:
/// flushed; hatched: being reduced; solid: reduced, at stages 2 and 3 on the owner only.
void PartitionCells::gradient(Context& ctx, const ElementAxis& elements, const PartitionCell& cell) {
  const Palette& c = ctx.colors();
  const Rect& box = cell.box;
  const ev::RunTables& tables = ctx.app.store().tables();
  const ev::ParamInfo& info = tables.params[cell.param];
  const Rgb color = c.of(Meaning::reduce);
  draw_nothing_here(ctx, box);
  if (info.frozen) {
    ctx.canvas.dots(box, c.muted, 0.5F);
    return;
  }
  const std::vector<GradientState>& states = gradients(ctx.app, cell.rank);
  if (cell.param >= states.size()) return;
  switch (states[cell.param].status) {
    case GradientStatus::none:
      return;
    case GradientStatus::accumulated:
      ctx.canvas.fill({box.x, box.bottom() - box.h / 4, box.w, box.h / 4}, color, 0.8F);
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
      if (tables.stage < 2 || analysis::copy_size(tables) == 1)
        ctx.canvas.fill(box, color);
      else
        draw_reduced_at_owner(ctx, box, info.elems, elements.owned(cell.rank, cell.param));
      return;
  }
}

/// Elements that the rank does not have are drawn by fill_not_here(), its own ones filled.
void PartitionCells::owners(Context& ctx, const ElementAxis& elements, const PartitionCell& cell, bool here) {
  constexpr float kNarrowest = 3;
  const Palette& c = ctx.colors();
  const ev::RunTables& tables = ctx.app.store().tables();
  const Rect& box = cell.box;
  const auto all = static_cast<double>(std::max<std::int64_t>(1, tables.params[cell.param].elems));
  const auto x_of = [&](std::int64_t element) {
    return box.x + static_cast<float>(static_cast<double>(element) / all) * box.w;
  };
  float painted_to = box.x;
  const std::vector<OwnerBand>& bands =
      bands_.of(ctx.app.run->number(), ctx.app.store(), elements, cell.rank, cell.param);
  for (const OwnerBand& band : bands) {
    const float x0 = std::max(painted_to, x_of(band.begin));
    const float x1 = std::min(box.right(), x_of(band.end));
    // Of bands too narrow to distinguish draw one at intervals, and the last.
    if (x1 - x0 < kNarrowest && tables.world > kOwnColours && &band != &bands.back()) continue;
    if (x1 <= x0) continue;
    const float from = tables.world > kOwnColours ? painted_to : x0;
    const Rect piece{from, box.y, std::max(1.0F, x1 - from), box.h};
    const Rgb color = owner_hue(band.colour, tables.world, c);
    if (here)
      ctx.canvas.fill(piece, color);
    else
      fill_not_here(ctx, piece, color);
    painted_to = x1;
  }
  if (here) return;
  fill_pieces(ctx, box, tables.params[cell.param].elems, elements.owned(cell.rank, cell.param),
              owner_hue(owner_colour(cell.rank, tables.world), tables.world, c));
}

bool PartitionCells::coloured(Context& ctx, const ElementAxis& elements, const PartitionCell& cell) {
  const Palette& c = ctx.colors();
  const Rect& box = cell.box;
  const ev::RunTables& tables = ctx.app.store().tables();
  const ev::ParamInfo& info = tables.params[cell.param];
  const bool here = tables.stage < 3 || param_status(cell) == plan::ParamStatus::available;
  switch (style.colour_by) {
    case ColourBy::status:
      return false;
    case ColourBy::owner:
      owners(ctx, elements, cell, here);
      break;
    case ColourBy::module: {
      const Rgb color = hue(blocks(*ctx.app.run).of(cell.param), c);
      if (here)
        ctx.canvas.fill(box, color, 0.9F);
      else
        fill_not_here(ctx, box, color, 0.2F);
      fill_pieces(ctx, box, info.elems, elements.owned(cell.rank, cell.param), color);
      break;
    }
    case ColourBy::place: {
      draw_nothing_here(ctx, box);
      const std::optional<analysis::ShardPlace> place = places(*ctx.app.run).of(cell.param);
      if (!place) break;
      for (const OwnedSlice& slice : elements.owned(cell.rank, cell.param))
        draw_place(ctx, piece_of(box, info.elems, slice), *place);
      break;
    }
    case ColourBy::use: {
      const analysis::HeldLong* const held = uses_.of(ctx.app.store(), cell.rank);
      if (held == nullptr)
        draw_nothing_here(ctx, box);
      else
        fill_use(ctx, box, param_use(*held, tables, cell.param, cell.state, ctx.app.now_ns()).use);
      break;
    }
    case ColourBy::age: {
      if (cell.state.since_ns <= 0) {
        draw_nothing_here(ctx, box);
        break;
      }
      const std::int64_t unused =
          unused_for_ns(tables.stage == 3 ? uses_.of(ctx.app.store(), cell.rank) : nullptr, tables,
                        cell.param, cell.state, ctx.app.now_ns());
      const double age = std::max(1.0, static_cast<double>(unused));
      const auto old = static_cast<float>(std::clamp((std::log10(age) - 3) / 6, 0.0, 1.0));
      ctx.canvas.fill(box, aged(here ? c.of(Meaning::gather) : c.of(Meaning::neutral), c, old));
      break;
    }
  }
  return true;
}

/// By status: the gathered part, and over it the part that the rank owns.
void PartitionCells::parameter(Context& ctx, const ElementAxis& elements, const PartitionCell& cell) {
  const AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const Rect& box = cell.box;
  const ev::RunTables& tables = app.store().tables();
  const ev::ParamInfo& info = tables.params[cell.param];
  const Rgb here = c.of(Meaning::gather);
  const plan::ParamStatus status = param_status(cell);
  const bool stage3 = tables.stage == 3;
  if (!stage3) {
    ctx.canvas.fill(box, replica(c));
  } else if (status == plan::ParamStatus::available) {
    ctx.canvas.fill(box, here);
  } else if (status == plan::ParamStatus::in_flight) {
    ctx.canvas.fill(box, here, 0.25F);
    const bool moves = app.run->live() && !app.cursor_ns && !app.paused();
    ctx.canvas.hatch(box, here, 1, 6, moves ? static_cast<float>(std::fmod(ctx.seconds * 12, 6)) : 0);
    if (moves) ctx.moving = true;
  } else {
    draw_nothing_here(ctx, box);
  }
  if (analysis::copy_size(tables) == 1 || tables.stage == 0)
    ctx.canvas.fill(box, c.of(Meaning::compute));
  else
    draw_owned(ctx, elements, cell, info.elems);
  if (ev::secondary_held(cell.state.status)) {
    double_outline(ctx, box);
    secondary_of_ = app.run->number();
  }
  const bool persistent = stage3 && info.persistent && status == plan::ParamStatus::available;
  if (persistent && box.w >= 5)
    ctx.canvas.disc(box.x + box.w / 2, box.y + box.h / 2, std::min(2.5F, box.w / 3), text_on(here));
}

void PartitionCells::draw(Context& ctx, const ElementAxis& elements, const PartitionCell& cell) {
  switch (style.layer) {
    case PartitionLayer::gradients:
      return gradient(ctx, elements, cell);
    case PartitionLayer::optimizer:
      return optimizer(ctx, elements, cell);
    case PartitionLayer::parameters:
      if (!coloured(ctx, elements, cell)) parameter(ctx, elements, cell);
      return;
  }
}

}  // namespace shardscope::gui
