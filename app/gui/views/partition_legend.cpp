#include "app/gui/views/partition_legend.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/names.h"

namespace shardscope::gui {
namespace {

/// A row of the legend, filled from the left.
class LegendRow {
 public:
  LegendRow(Context& ctx, const Rect& room) : ctx_(ctx), room_(room) {}

  /// `swatch(rect)` draws the colour or pattern; an entry that does not fit is omitted.
  template <typename Swatch>
  void entry(std::string_view text, const Swatch& swatch) {
    const float w = ctx_.canvas.width(text, Font::small) + 30;
    if (room_.w < w) return;
    const Rect place = room_.take_left(w);
    const Rect mark{place.x, place.y + (place.h - 10) / 2, 14, 10};
    swatch(mark);
    ctx_.canvas.text_in({mark.right() + 5, place.y, place.w, place.h}, text, ctx_.colors().muted,
                        Font::small);
  }
  void filled(std::string_view text, Rgb color, float alpha = 1) {
    entry(text, [&](const Rect& r) { ctx_.canvas.fill(r, color, alpha); });
  }
  /// Draws as many of `count` names as fit before `last`, which always ends the row, and the number of those
  /// left out.
  template <typename Name, typename Color>
  void list(std::size_t count, const Name& name, const Color& color, std::string_view last) {
    const float end = ctx_.canvas.width(last, Font::small) + 34;
    const auto more = [&](std::size_t shown) { return "and " + std::to_string(count - shown) + " more"; };
    std::size_t shown = 0;
    for (; shown < count; ++shown) {
      const std::string text = name(shown);
      const float rest = shown + 1 == count ? 0 : ctx_.canvas.width(more(shown + 1), Font::small) + 16;
      if (room_.w < ctx_.canvas.width(text, Font::small) + 30 + rest + end) break;
      filled(text, color(shown));
    }
    if (shown == count) return;
    const std::string text = more(shown);
    const Rect place = room_.take_left(std::min(room_.w, ctx_.canvas.width(text, Font::small) + 16));
    ctx_.canvas.text_in(place, text, ctx_.colors().muted, Font::small);
    if (!ctx_.hovered(place)) return;
    constexpr std::size_t kInTip = 24;
    std::string all;
    for (std::size_t i = shown; i < std::min(count, shown + kInTip); ++i)
      all += (all.empty() ? "" : ", ") + name(i);
    if (shown + kInTip < count) all += " and others";
    ctx_.tip(all + ". A cell's tool tip says whose it is.");
  }
  /// A scale of `steps` colours between two labels.
  template <typename Color>
  void scale(std::string_view from, std::string_view to, std::uint32_t steps, const Color& color) {
    constexpr float kWidth = 160;
    const float w0 = ctx_.canvas.width(from, Font::small) + 6, w1 = ctx_.canvas.width(to, Font::small) + 22;
    if (room_.w < w0 + kWidth + w1) return;
    const Rect left = room_.take_left(w0);
    ctx_.canvas.text_in(left, from, ctx_.colors().muted, Font::small);
    const Rect bar = room_.take_left(kWidth);
    for (std::uint32_t i = 0; i < steps; ++i) {
      const float x0 = bar.x + kWidth * static_cast<float>(i) / static_cast<float>(steps);
      const float x1 = bar.x + kWidth * static_cast<float>(i + 1) / static_cast<float>(steps);
      ctx_.canvas.fill({x0, bar.y + (bar.h - 10) / 2, x1 - x0, 10}, color(i));
    }
    Rect right = room_.take_left(w1);
    right.x += 6;
    ctx_.canvas.text_in(right, to, ctx_.colors().muted, Font::small);
  }
  void outlined(std::string_view text) {
    const Palette& c = ctx_.colors();
    entry(text, [&](const Rect& r) { ctx_.canvas.outline(r, mix(c.line, c.muted, 0.5F)); });
  }
  void hatched(std::string_view text, Rgb color) {
    entry(text, [&](const Rect& r) {
      ctx_.canvas.fill(r, color, 0.25F);
      ctx_.canvas.hatch(r, color, 1, 5);
    });
  }

 private:
  Context& ctx_;
  Rect room_;
};

void gradient_entries(Context& ctx, LegendRow& row) {
  const Palette& c = ctx.colors();
  const Rgb color = c.of(Meaning::reduce);
  row.outlined("none yet");
  row.entry("accumulated", [&](const Rect& r) {
    ctx.canvas.outline(r, mix(c.line, c.muted, 0.5F));
    ctx.canvas.fill({r.x, r.bottom() - r.h / 3, r.w, r.h / 3}, color, 0.8F);
  });
  const store::Vocabulary& words = words_of(ctx.app.store());
  row.entry(words.in_bucket, [&](const Rect& r) {
    ctx.canvas.outline(r, mix(c.line, c.muted, 0.5F));
    ctx.canvas.fill({r.x, r.y + r.h / 2, r.w, r.h / 2}, color, 0.8F);
  });
  row.filled(words.flushed, color, 0.45F);
  row.hatched("being reduced", color);
  row.filled(ctx.app.store().tables().stage < 2 ? "reduced, on every rank" : "reduced, the owner's part",
             color);
  if (ctx.app.store().tables().stage >= 2) row.filled("reduced, freed here", color, 0.14F);
}

void optimizer_entries(Context& ctx, LegendRow& row, PartitionCells& cells) {
  std::string text =
      ctx.app.store().tables().stage == 0 ? "whole on every rank" : "this rank's optimizer states";
  const auto& place = cells.places(*ctx.app.run).optimizer();
  if (place && ctx.app.store().tables().stage > 0)
    text += ", " + text_of({place->place, place->pinned, false});
  if (place && place->share < 1) text += ": " + decimal(100 * place->share, 0) + " % of the sub-groups";
  row.entry(text, [&](const Rect& r) { draw_optimizer_place(ctx, r, place); });
  row.outlined("elsewhere");
  row.entry("not trained", [&](const Rect& r) { ctx.canvas.dots(r, ctx.colors().muted); });
}

std::string_view not_here_words(const Palette& colors) {
  return not_here(colors.muted, colors).height < 1 ? "low: not here" : "pale: not here";
}

void not_here_entry(Context& ctx, LegendRow& row) {
  row.entry(not_here_words(ctx.colors()), [&](const Rect& r) { fill_not_here(ctx, r, ctx.colors().muted); });
}

void owner_entries(Context& ctx, LegendRow& row) {
  const Palette& c = ctx.colors();
  const std::uint32_t world = ctx.app.store().tables().world;
  const auto color = [&](std::size_t which) {
    return owner_hue(static_cast<std::uint32_t>(which), world, c);
  };
  if (world <= kOwnColours) {
    row.list(
        world, [](std::size_t rank) { return "rank " + std::to_string(rank); }, color, not_here_words(c));
  } else {
    row.scale("owner: rank 0", "rank " + std::to_string(world - 1), owner_colours(world), color);
  }
  not_here_entry(ctx, row);
}

void module_entries(Context& ctx, LegendRow& row, PartitionCells& cells) {
  const Palette& c = ctx.colors();
  const std::vector<std::string>& names = cells.blocks(*ctx.app.run).names();
  const NameCells& short_names = ctx.app.name_cells();
  row.list(
      names.size(), [&](std::size_t block) { return std::string(short_names.without_model(names[block])); },
      [&](std::size_t block) { return hue(block, c); }, not_here_words(c));
  not_here_entry(ctx, row);
}

void age_entries(Context& ctx, LegendRow& row) {
  const Palette& c = ctx.colors();
  for (const auto& [text, age] :
       {std::pair{"used now", 0.0F}, {"1 ms ago", 0.5F}, {"1 s ago and more", 1.0F}})
    row.filled(text, aged(c.of(Meaning::gather), c, age));
  row.filled("not here, since its release", c.of(Meaning::neutral));
}

void use_entries(Context& ctx, LegendRow& row, PartitionCells& cells) {
  if (const std::string_view missing = cells.uses().missing(); !missing.empty()) {
    row.outlined(missing);
    return;
  }
  const auto entry = [&](std::string_view text, ParamUse use) {
    row.entry(text, [&](const Rect& r) { fill_use(ctx, r, use); });
  };
  entry("in use, or no use seen yet", ParamUse::wanted);
  entry("kept for a later use", ParamUse::kept);
  entry("held without further use", ParamUse::for_nothing);
  entry("persistent", ParamUse::persistent);
  entry(cells.uses().reading() ? "not here, or being read" : "not here", ParamUse::not_here);
}

/// Only storage places used by shards of this run.
void place_entries(Context& ctx, LegendRow& row, PartitionCells& cells) {
  std::vector<analysis::ShardPlace> shown;
  for (const analysis::ShardPlace& place : cells.places(*ctx.app.run).all())
    if (std::ranges::find(shown, place) == shown.end()) shown.push_back(place);
  for (const analysis::ShardPlace& place : shown)
    row.entry(text_of(place), [&](const Rect& r) { draw_place(ctx, r, place); });
  if (shown.empty())
    row.outlined(ctx.app.store().tables().stage < 3 ? "shards are stored elsewhere only at stage 3"
                                                    : "where shards are stored is not known for this run");
  else
    row.outlined("another rank's");
}

void status_entries(Context& ctx, LegendRow& row, bool secondary) {
  const Palette& c = ctx.colors();
  const bool stage3 = ctx.app.store().tables().stage == 3;
  const Rgb here = c.of(Meaning::gather);
  row.filled(stage3 ? "owned" : "owned partition", c.of(Meaning::compute));
  if (!stage3) {
    row.filled("replica", replica(c));
  } else {
    row.filled("available", here);
    row.hatched("in flight", here);
    row.outlined("not available");
    if (secondary)
      row.entry("secondary copy", [&](const Rect& r) { double_outline(ctx, {r.x, r.y - 1, r.w, r.h + 2}); });
    row.entry("persistent", [&](const Rect& r) {
      ctx.canvas.fill(r, here);
      ctx.canvas.disc(r.x + r.w / 2, r.y + r.h / 2, 2.5F, text_on(here));
    });
  }
  row.entry("padding", [&](const Rect& r) { ctx.canvas.dots({r.x, r.y - 1, r.w, r.h + 2}, c.muted); });
}

}  // namespace

void draw_partition_legend(Context& ctx, const Rect& room, PartitionCells& cells) {
  LegendRow row(ctx, room);
  if (cells.style.layer == PartitionLayer::gradients) return gradient_entries(ctx, row);
  if (cells.style.layer == PartitionLayer::optimizer) return optimizer_entries(ctx, row, cells);
  if (cells.style.colour_by == ColourBy::owner) return owner_entries(ctx, row);
  if (cells.style.colour_by == ColourBy::module) return module_entries(ctx, row, cells);
  if (cells.style.colour_by == ColourBy::age) return age_entries(ctx, row);
  if (cells.style.colour_by == ColourBy::place) return place_entries(ctx, row, cells);
  if (cells.style.colour_by == ColourBy::use) return use_entries(ctx, row, cells);
  status_entries(ctx, row, cells.saw_secondary(*ctx.app.run));
}

}  // namespace shardscope::gui
