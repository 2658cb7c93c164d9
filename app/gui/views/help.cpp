// Keys and the meaning of every colour and mark, on one sheet.
#include "app/gui/views/workspace.h"

namespace shardscope::gui {
namespace {

struct Key {
  const char* keys;
  const char* what;
};
constexpr Key kKeys[] = {
    {"wheel", "zoom at the pointer (ctrl: finer, shift: scroll)"},
    {"drag", "pan; middle drag: zoom to a range"},
    {"W S A D", "zoom in, out, left, right"},
    {"F", "fit the whole run"},
    {"L", "follow the newest events"},
    {"click", "select; double click: zoom to it"},
    {"left right", "step back and forward by event"},
    {"E M N", "next event, module, step"},
    {"space", "pause and resume a live run"},
    {"1 to 5", "layouts"},
    {"a title", "click: another panel there; drag: move it"},
    {"T", "dark and light"},
    {"Esc", "clear the selection, then the cursor"},
};
struct Colour {
  Meaning meaning;
  const char* what;
};
constexpr Colour kColours[] = {
    {Meaning::compute, "computation, parameters"},
    {Meaning::gather, "all-gather, gathered parameters"},
    {Meaning::reduce, "reduction, gradients"},
    {Meaning::optimizer, "optimizer and its states"},
    {Meaning::activation, "activations"},
    {Meaning::copy, "copies, offload, swap"},
    {Meaning::buffer, "buffers"},
    {Meaning::trouble, "waiting (hatched), late, error"},
};

}  // namespace

void Workspace::help(Context& ctx) {
  if (!ctx.ui.help) return;
  const Palette& c = ctx.colors();
  ctx.canvas.fill(ctx.window, c.base, 0.7F);
  const float w = std::min(760.0F, ctx.window.w - 32);
  const float h = std::min(420.0F, ctx.window.h - 32);
  const Rect box{ctx.window.x + (ctx.window.w - w) / 2, ctx.window.y + (ctx.window.h - h) / 2, w, h};
  ctx.canvas.fill(box, c.panel, 1, 6);
  ctx.canvas.outline(box, c.line, 1, 1, 6);
  const Clip clip(ctx.canvas, box);
  Rect room = box.inset(24, 20);
  Rect left = room.take_left(room.w * 0.54F);
  ctx.canvas.text_in(left.take_top(28), "Keys and pointer", c.text, Font::strong);
  for (const Key& key : kKeys) {
    Rect line = left.take_top(26);
    ctx.canvas.text_in(line.take_left(92), key.keys, c.accent, Font::mono_small);
    ctx.canvas.text_in(line, key.what, c.text, Font::small);
  }
  ctx.canvas.text_in(room.take_top(28), "Colours", c.text, Font::strong);
  for (const Colour& colour : kColours) {
    Rect line = room.take_top(26);
    Rect swatch = line.take_left(28);
    swatch = {swatch.x, swatch.y + 6, 18, 14};
    ctx.canvas.fill(swatch, c.of(colour.meaning), colour.meaning == Meaning::trouble ? 0.45F : 1.0F, 2);
    if (colour.meaning == Meaning::trouble) ctx.canvas.hatch(swatch, c.of(colour.meaning), 1, 5);
    ctx.canvas.text_in(line, colour.what, c.text, Font::small);
  }
  if (help_shown_ && ctx.pointer.pressed[0]) ctx.ui.help = false;
  help_shown_ = ctx.ui.help;
}

}  // namespace shardscope::gui
