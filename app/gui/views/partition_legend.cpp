#include "app/gui/views/partition_legend.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace shardscope::gui {
namespace {

/// The row as it fills from the left.
class LegendRow {
 public:
  LegendRow(Context& ctx, const Rect& room) : ctx_(ctx), room_(room) {}

  /// `swatch(rect)` draws what the word means; neither is drawn where there is no room for both.
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
  row.entry("in a bucket", [&](const Rect& r) {
    ctx.canvas.outline(r, mix(c.line, c.muted, 0.5F));
    ctx.canvas.fill({r.x, r.y + r.h / 2, r.w, r.h / 2}, color, 0.8F);
  });
  row.filled("flushed", color, 0.45F);
  row.hatched("being reduced", color);
  row.filled(ctx.app.store().tables().stage < 2 ? "reduced, on every rank" : "reduced, the owner's part",
             color);
}

void optimizer_entries(Context& ctx, LegendRow& row) {
  row.filled(ctx.app.store().tables().stage == 0 ? "whole on every rank" : "this rank's optimizer states",
             ctx.colors().of(Meaning::optimizer));
  row.outlined("elsewhere");
  row.entry("not trained", [&](const Rect& r) { ctx.canvas.dots(r, ctx.colors().muted); });
}

void owner_entries(Context& ctx, LegendRow& row) {
  const Palette& c = ctx.colors();
  const std::uint32_t world = std::min<std::uint32_t>(ctx.app.store().tables().world, 16);
  for (std::uint32_t rank = 0; rank < world; ++rank) row.filled("rank " + std::to_string(rank), hue(rank, c));
  row.filled("pale: not here", c.muted, 0.28F);
}

void age_entries(Context& ctx, LegendRow& row) {
  const Palette& c = ctx.colors();
  for (const auto& [text, age] :
       {std::pair{"1 \u00b5s", 0.0F}, {"1 ms", 0.5F}, {"1 s and more since it changed", 1.0F}})
    row.filled(text, aged(c.of(Meaning::gather), c, age));
  row.filled("not here", c.of(Meaning::neutral));
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

void draw_partition_legend(Context& ctx, const Rect& room, const PartitionCells& cells) {
  LegendRow row(ctx, room);
  if (cells.style.layer == PartitionLayer::gradients) return gradient_entries(ctx, row);
  if (cells.style.layer == PartitionLayer::optimizer) return optimizer_entries(ctx, row);
  if (cells.style.colour_by == ColourBy::owner) return owner_entries(ctx, row);
  if (cells.style.colour_by == ColourBy::age) return age_entries(ctx, row);
  status_entries(ctx, row, cells.saw_secondary(ctx.app.store().tables().run_id));
}

}  // namespace shardscope::gui
