#include "app/gui/views/note_marks.h"

#include <algorithm>
#include <cmath>

#include "app/gui/model/notebook.h"

namespace shardscope::gui {
namespace {

constexpr float kFlag = 9;  ///< width and height

Rgb colour_of(const Palette& c, exporter::NoteColour colour) {
  switch (colour) {
    case exporter::NoteColour::none:
      return c.text;
    case exporter::NoteColour::blue:
      return c.of(Meaning::compute);
    case exporter::NoteColour::green:
      return c.of(Meaning::gather);
    case exporter::NoteColour::yellow:
      return c.of(Meaning::optimizer);
    case exporter::NoteColour::red:
      return c.of(Meaning::trouble);
  }
  return c.text;
}

}  // namespace

bool draw_note_flags(Context& ctx, const Rect& ruler, const TimeScale& scale) {
  const auto notes = ctx.app.notes.notes();
  const Palette& c = ctx.colors();
  bool on_one = false;
  for (const NoteFlag& flag : note_flags(notes, scale)) {
    const float x = std::floor(flag.x0);
    const float top = ruler.bottom() - kFlag - 4;
    const Rect place{x - 3, top - 2, kFlag + 6, kFlag + 6};
    const bool over = ctx.hovered(place);
    const Rgb color = over ? c.accent : colour_of(c, notes[flag.notes.front()].colour);
    if (flag.x1 > flag.x0) ctx.canvas.fill({x, ruler.y, std::max(2.0F, flag.x1 - x), 3}, color, 0.75F);
    ctx.canvas.fill({x - 1, top - 1, kFlag + 3, kFlag + 2}, c.panel);
    ctx.canvas.vertical(x, top, kFlag + 4, color, 1, 1.5F);
    ctx.canvas.triangle(x, top, x, top + kFlag - 1, x + kFlag, top + (kFlag - 1) / 2, color);
    // Several notes: a second pennant behind.
    if (flag.notes.size() > 1)
      ctx.canvas.line(x + 4, top - 1, x + kFlag + 2, top + (kFlag - 1) / 2, color, 0.8F, 1.5F);
    if (!over || on_one) continue;
    on_one = true;
    ctx.tip(flag_text(ctx.app.store(), notes, flag));
    if (ctx.pointer.pressed[0]) go_to_note(ctx.app, notes[flag.notes.front()]);
  }
  return on_one;
}

void draw_note_lines(Context& ctx, const Rect& lanes, const TimeScale& scale) {
  const auto notes = ctx.app.notes.notes();
  for (const NoteFlag& flag : note_flags(notes, scale))
    ctx.canvas.vertical(flag.x0, lanes.y, lanes.h, colour_of(ctx.colors(), notes[flag.notes.front()].colour),
                        0.28F);
}

}  // namespace shardscope::gui
