// Flame: time of a range as nested boxes, over all ranks or per rank.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "app/gui/model/flame_of_range.h"
#include "app/gui/model/format.h"
#include "app/gui/model/rank_order.h"
#include "app/gui/views/flame_painter.h"
#include "app/gui/views/panels.h"

namespace shardscope::gui {
namespace {

constexpr float kBoxHeight = 20, kHighestBox = 26, kRankGutter = 64, kRankTotal = 84, kBetweenRanks = 8;
/// Time per frame for building the tree.
constexpr std::chrono::nanoseconds kShareOfFrame = std::chrono::milliseconds(1);

class FlameView final : public View {
 public:
  std::string_view name() const override { return "flame"; }
  std::string_view title() const override { return "Flame"; }
  std::vector<Choice> choices(const AppState& app) override;
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void heading(Context& ctx, const Rect& line) const;
  void ancestors(Rect& room, FlamePainter& painter) const;
  void over_ranks(Context& ctx, const Rect& room, FlamePainter& painter);
  void by_rank(Context& ctx, Rect room, FlamePainter& painter);
  void go_to(Context& ctx, const FlamePainter::Hit& hit);
  /// Scrolls to the box at the keyboard's cursor.
  void scroll_to_cursor(Context& ctx, const Rect& room, const FlamePainter& painter);

  FlameOfRange flame_;
  FlameScope scope_ = FlameScope::range;
  FlameSplit split_ = FlameSplit::over_ranks;
  FlameOf of_ = FlameOf::compute;
  std::vector<std::string> zoom_;  ///< path of the node at full width
  std::uint32_t top_ = 0;          ///< the same node in the current tree
  std::uint64_t version_ = 0;
  float scroll_ = 0;
};

std::vector<Choice> FlameView::choices(const AppState& app) {
  std::vector<Choice> out;
  if (flame_.has_gpu())
    out.push_back({"whose time", {"compute", "GPU"}, static_cast<int>(of_), [this](AppState&, int to) {
                     of_ = static_cast<FlameOf>(to);
                   }});
  if (app.store().ranks().size() > 1)
    out.push_back({"ranks", {"over ranks", "by rank"}, static_cast<int>(split_), [this](AppState&, int to) {
                     split_ = static_cast<FlameSplit>(to);
                   }});
  out.push_back({"of", {"range", "run"}, static_cast<int>(scope_), [this](AppState&, int to) {
                   scope_ = static_cast<FlameScope>(to);
                 }});
  return out;
}

void FlameView::header(Context& ctx, Rect& room) {
  if (ctx.button_right(room, "Copy", flame_.tree().nodes().size() > 1, Context::Look::plain,
                       "Self time of each box with the names above it, in the format that flame graph tools "
                       "read (\"folded stacks\", nanoseconds, sum over ranks)")) {
    ImGui::SetClipboardText(folded_stacks(flame_.tree()).c_str());
    ctx.ui.say("Copied " + std::to_string(flame_.tree().nodes().size() - 1) + " stacks");
  }
}

void FlameView::heading(Context& ctx, const Rect& line) const {
  const Palette& c = ctx.colors();
  const FlameTree& tree = flame_.tree();
  Rect room = line;
  const std::string& words = ctx.app.find.words;
  std::string right;
  if (flame_.progress() < 1) {
    right = "counting, " + decimal(100 * flame_.progress(), 0) + " %";
  } else if (!words.empty()) {
    const std::int64_t all = tree.nodes()[top_].total_ns;
    const std::int64_t found = found_ns(tree, top_, words);
    right = "\u201c" + words + "\u201d: " +
            (all > 0 ? decimal(100 * static_cast<double>(found) / static_cast<double>(all), 1) + " % of it"
                     : std::string(kMissing));
  } else if (tree.cut_short()) {
    right = "deeper levels counted as self time";
  }
  if (!right.empty()) {
    const Rect place = room.take_right(std::min(room.w * 0.5F, ctx.canvas.width(right, Font::small) + 1));
    ctx.canvas.text_in(place, right, c.muted, Font::small);
    room.take_right(12);
    if (ctx.hovered(place))
      ctx.tip(!words.empty() && flame_.progress() >= 1 ? "Time of the boxes that match Find's words; nested "
                                                         "boxes are not counted twice. The others are pale."
                                                       : "The spans of the range are still being added up");
  }
  const std::string text = flame_heading(ctx.app, scope_, split_, tree);
  if (ctx.canvas.text_in(room, text, c.muted, Font::small) && ctx.hovered(room)) ctx.tip(text);
}

void FlameView::go_to(Context& ctx, const FlamePainter::Hit& hit) {
  const FlameTree& tree = flame_.tree();
  const FlameNode& node = tree.nodes()[hit.node];
  zoom_ = tree.path(hit.node);
  top_ = hit.node;
  scroll_ = 0;
  if (hit.node == 0) return;
  if (hit.rank && tree.ranks()[*hit.rank] != node.lane.rank) {
    const std::uint32_t rank = tree.ranks()[*hit.rank];
    if (node.module != ev::kNoId)
      ctx.app.select_module(node.module, rank);
    else
      ctx.app.select_rank(rank);
    ctx.app.show_rank(rank);
    return;
  }
  ctx.app.select_span(node.lane, node.longest);
  // The longest span may be out of view, unless the tree covers the visible range.
  if (scope_ == FlameScope::run || ctx.app.measured)
    ctx.app.time.reveal({node.longest.begin_ns, std::min(node.longest.end_ns, ctx.app.store().end_ns())},
                        ctx.app.store().end_ns());
  ctx.app.show_rank(node.lane.rank);
}

/// Ancestors of the node at full width: a click zooms out to one.
void FlameView::ancestors(Rect& room, FlamePainter& painter) const {
  std::vector<std::uint32_t> line;
  for (std::uint32_t node = top_; node != 0;) {
    node = flame_.tree().nodes()[node].parent;
    line.push_back(node);
  }
  for (auto node = line.rbegin(); node != line.rend(); ++node) {
    if (room.h < 3 * kBoxHeight) break;
    painter.box({*node, 0, 0, 0, 0}, std::nullopt, room.take_top(kBoxHeight), FlamePainter::Look::around);
  }
}

void FlameView::over_ranks(Context& ctx, const Rect& room, FlamePainter& painter) {
  const FlameTree& tree = flame_.tree();
  const std::int64_t whole = tree.nodes()[top_].total_ns;
  const std::uint32_t levels = flame_levels(tree, top_);
  const float box = std::floor(std::clamp(room.h / static_cast<float>(levels), kBoxHeight, kHighestBox));
  const float height = box * static_cast<float>(levels);
  ctx.scroll("boxes", room, height, scroll_);
  const float width = height > room.h ? room.w - 10 : room.w;
  const double each = static_cast<double>(width) / static_cast<double>(std::max<std::int64_t>(whole, 1));
  const auto least = static_cast<std::int64_t>(std::ceil(FlamePainter::kNarrowest / each));
  const Clip clip(ctx.canvas, room);
  for (const FlameFrame& frame : flame_frames(tree, top_, std::nullopt, levels, least)) {
    const float y = room.y - scroll_ + box * static_cast<float>(frame.level);
    // The rows beside those that are seen too: the keyboard goes there.
    if (y + 2 * box < room.y || y - box > room.bottom()) continue;
    painter.box(frame, std::nullopt,
                {room.x + static_cast<float>(static_cast<double>(frame.begin_ns) * each), y,
                 static_cast<float>(static_cast<double>(frame.width_ns) * each), box},
                FlamePainter::Look::plain);
  }
  scroll_to_cursor(ctx, room, painter);
}

void FlameView::scroll_to_cursor(Context& ctx, const Rect& room, const FlamePainter& painter) {
  if (!painter.cursor()) return;
  const Rect& box = *painter.cursor();
  const float before = scroll_;
  scroll_ += std::max(0.0F, box.bottom() - room.bottom()) - std::max(0.0F, room.y - box.y);
  if (scroll_ != before) ctx.moving = true;
}

/// One row per rank on a common scale, as long as its time; as many levels as fit.
void FlameView::by_rank(Context& ctx, Rect room, FlamePainter& painter) {
  const FlameTree& tree = flame_.tree();
  const Palette& c = ctx.colors();
  painter.box({top_, 0, 0, 0, 0}, std::nullopt, room.take_top(kBoxHeight), FlamePainter::Look::around);
  room.take_top(4);
  std::vector<std::uint32_t> order = rank_order(ctx.app);
  if (order.empty()) order = tree.ranks();
  std::int64_t longest = 1;
  for (std::size_t rank = 0; rank < tree.ranks().size(); ++rank)
    longest = std::max(longest, tree.total_of(top_, rank));
  const auto count = static_cast<float>(order.size());
  const std::uint32_t below = std::max(1U, flame_levels(tree, top_) - 1);
  const float fit = std::floor((room.h / count - kBetweenRanks) / kBoxHeight);
  const auto levels = static_cast<std::uint32_t>(std::clamp(fit, 1.0F, static_cast<float>(below)));
  const bool low = fit < 1;
  const float row_height =
      (low ? kBoxHeight - 4 : kBoxHeight * static_cast<float>(levels)) + (low ? 2 : kBetweenRanks);
  ctx.scroll("ranks", room, row_height * count, scroll_);
  const float bars = std::max(20.0F, room.w - kRankGutter - kRankTotal - 10);
  const double each = static_cast<double>(bars) / static_cast<double>(longest);
  const auto least = static_cast<std::int64_t>(std::ceil(FlamePainter::kNarrowest / each));
  const Clip clip(ctx.canvas, room);
  // The rows beside those that are seen too: the keyboard goes there.
  const auto first = static_cast<std::size_t>(std::max(0.0F, scroll_ / row_height - 1));
  for (std::size_t i = first; i < order.size(); ++i) {
    const float y = room.y - scroll_ + row_height * static_cast<float>(i);
    if (y - row_height > room.bottom()) break;
    const auto found = std::ranges::lower_bound(tree.ranks(), order[i]);
    const Rect head{room.x, y, kRankGutter - 6, kBoxHeight};
    ctx.canvas.text_in(head, "rank " + std::to_string(order[i]), c.muted, Font::small);
    if (ctx.activated(head, "rank " + std::to_string(order[i]))) {
      ctx.app.select_rank(order[i]);
      ctx.app.show_rank(order[i]);
    }
    if (found == tree.ranks().end() || *found != order[i]) continue;
    const auto rank = static_cast<std::size_t>(found - tree.ranks().begin());
    const std::int64_t total = tree.total_of(top_, rank);
    const Rect whole{room.x + kRankGutter, y, static_cast<float>(static_cast<double>(total) * each),
                     row_height - (low ? 2 : kBetweenRanks)};
    painter.ground(top_, rank, whole);
    for (const FlameFrame& frame : flame_frames(tree, top_, rank, levels + 1, least)) {
      if (frame.level == 0) continue;
      const float level = static_cast<float>(frame.level - 1);
      painter.box(
          frame, rank,
          {whole.x + static_cast<float>(static_cast<double>(frame.begin_ns) * each), y + kBoxHeight * level,
           static_cast<float>(static_cast<double>(frame.width_ns) * each), low ? kBoxHeight - 4 : kBoxHeight},
          FlamePainter::Look::plain);
    }
    const Quantity text = duration(total);
    ctx.quantity({room.right() - kRankTotal - 10, y, kRankTotal, low ? kBoxHeight - 4 : kBoxHeight},
                 text.number, text.unit);
  }
  scroll_to_cursor(ctx, room, painter);
}

void FlameView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (app.store().ranks().empty()) {
    ctx.empty(room, "Nothing to add up yet", "Shown as soon as a rank has sent spans.");
    return;
  }
  if (!flame_.has_gpu()) of_ = FlameOf::compute;  // another run was opened
  const bool window = app.run->in_window();
  while (flame_.advance(app, scope_, of_, kShareOfFrame)) {
    ctx.moving = true;
    if (window) break;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  const FlameTree& tree = flame_.tree();
  if (!tree.begun()) {
    ctx.empty(room, "Adding up", "Spans of the range are added up piece by piece.");
    return;
  }
  if (version_ != flame_.version()) {
    version_ = flame_.version();
    top_ = tree.at_path(zoom_);
  }
  heading(ctx, room.take_top(20));
  room.take_top(4);
  if (tree.nodes().size() < 2) {
    const char* const of_range =
        of_ == FlameOf::gpu
            ? "No GPU work was recorded here. Choose \"run\", or move the timeline."
            : "No rank's compute stream has spans here. Choose \"run\", or move the timeline.";
    ctx.empty(room, "No spans in this range",
              scope_ == FlameScope::range
                  ? of_range
                  : "No rank's compute stream has spans: they are recorded from detail \"phases\" on.");
    return;
  }
  FlamePainter painter(ctx, tree, app.find.words);
  ancestors(room, painter);
  if (split_ == FlameSplit::by_rank && tree.ranks().size() > 1)
    by_rank(ctx, room, painter);
  else
    over_ranks(ctx, room, painter);
  painter.outline_cursor();
  if (!painter.hit()) return;
  if (painter.chosen() || (ctx.pointer.pressed[0] && ctx.hovered(room)))
    go_to(ctx, *painter.hit());
  else
    ctx.tip(flame_details(tree, top_, *painter.hit()));
}

}  // namespace

std::unique_ptr<View> make_flame_view() { return std::make_unique<FlameView>(); }

}  // namespace shardscope::gui
