#include "app/gui/views/moment_marks.h"

#include <algorithm>
#include <cmath>

#include "app/gui/model/moment_marks.h"

namespace shardscope::gui {

bool draw_moments(Context& ctx, const Rect& ruler, const TimeScale& scale, bool takes_pointer) {
  constexpr float kHalf = 5;
  const auto moments = ctx.app.store().moments();
  const Palette& c = ctx.colors();
  bool on_one = false;
  for (const MomentMark& mark : moment_marks(moments, scale)) {
    const store::Moment& first = moments[mark.moments.front()];
    // A moment requested by a user is not a problem.
    const Rgb color = first.kind == store::kRequested ? c.text : c.of(Meaning::trouble);
    ctx.canvas.fill({mark.kept_from, ruler.bottom() - 3, std::max(2.0F, mark.kept_to - mark.kept_from), 3},
                    color, 0.6F);
    if (!mark.shown) continue;
    const float x = std::floor(mark.x), y = ruler.bottom() - kHalf - 3;
    const bool over =
        takes_pointer && ctx.hovered({x - kHalf - 2, y - kHalf - 2, 2 * kHalf + 4, 2 * kHalf + 4});
    const auto diamond = [&](float half, Rgb fill) {
      ctx.canvas.triangle(x - half, y, x + half, y, x, y - half, fill);
      ctx.canvas.triangle(x - half, y, x + half, y, x, y + half, fill);
    };
    diamond(kHalf + 1.5F, c.panel);
    diamond(kHalf, over ? c.accent : color);
    if (!over || on_one) continue;
    on_one = true;
    ctx.tip(tip_of(moments, mark) +
            (mark.moments.size() > 1 ? "\nClick: go to the first" : "\nClick: go there"));
    if (ctx.pointer.pressed[0]) go_to_moment(ctx.app, first);
  }
  return on_one;
}

}  // namespace shardscope::gui
