// Buckets: filling buckets at the cursor, one bar per buffer, and every flush with its reason. The
// panel keeps this name for frameworks without buckets, since menus, layouts and the guide refer to
// it.
#include <algorithm>
#include <cmath>
#include <optional>

#include "app/analysis/decision_text.h"
#include "app/analysis/missing_reason.h"
#include "app/gui/model/flush_marks.h"
#include "app/gui/model/format.h"
#include "app/gui/model/gradient_states.h"
#include "app/gui/model/names.h"
#include "app/gui/model/panel_range.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class BucketsView final : public View {
 public:
  std::string_view name() const override { return "buckets"; }
  std::string_view title() const override { return "Buckets"; }
  void draw(Context& ctx, Rect room) override;

 private:
  struct Of {
    std::uint64_t run = 0;  ///< Session::number()
    std::uint32_t rank = 0;
    TimeRange range;
    std::uint64_t revision = 0;
    friend bool operator==(const Of&, const Of&) = default;
  };
  void build(const AppState& app, const Of& of);
  void filling(Context& ctx, Rect& room, std::uint32_t rank) const;

  Of of_;
  std::vector<BucketFlush> flushes_;
  Table table_;
  TableState state_;
  std::string figures_;                   ///< of flushes_
  std::optional<std::int64_t> capacity_;  ///< elements; nullopt: no size is configured
};

void BucketsView::build(const AppState& app, const Of& of) {
  of_ = of;
  const store::Store& store = app.store();
  flushes_ = bucket_flushes(store, of.rank, of.range.begin_ns, of.range.end_ns);
  const analysis::DecisionLimits limits = analysis::limits_of(store.tables());
  capacity_ = limits.reduce_bucket_elems;
  table_ = {};
  const store::Vocabulary& words = words_of(store);
  figures_ = figures_text(words, flushes_, capacity_);
  table_.columns = {{words.has_buckets ? "flushed" : "begun", 0.8F, true, "Since the run's first event"},
                    {words.bucket, 0.5F, true},
                    {"buffer", 0.4F, true,
                     words.has_buckets ? "With overlap_comm and contiguous_gradients 0 and 1 alternate"
                                       : "Only where buckets have buffers"},
                    {"gradients", 0.5F, true},
                    {"elements", 0.7F, true},
                    {"full", 0.5F, true, "Elements / reduce_bucket_size; empty where no size is set"},
                    {"filled for", 0.7F, true, "From opening to the flush"},
                    {"why", 2.2F}};
  for (const BucketFlush& flush : flushes_) {
    const auto number = [](std::uint32_t id) {
      return id != ev::kNoId ? number_cell(id, std::to_string(id)) : number_cell(std::nullopt, "");
    };
    const auto share = [&] {
      if (!capacity_ || *capacity_ <= 0) return number_cell(std::nullopt, "");
      const double percent = 100 * static_cast<double>(flush.elems) / static_cast<double>(*capacity_);
      return number_cell(percent, decimal(percent, percent < 10 ? 1 : 0) + " %");
    };
    const bool triggered = flush.trigger_param < store.tables().params.size();
    const std::string trigger =
        triggered ? param_name(store, flush.trigger_param) + " (" +
                        count(static_cast<double>(store.tables().params[flush.trigger_param].elems)).text() +
                        " elements)"
                  : "";
    const std::string why = analysis::explain(flush.reason, flush.elems, trigger, limits);
    table_.add({number_cell(static_cast<double>(flush.at_ns), timestamp(flush.at_ns, 10'000)),
                number(flush.bucket),
                number(flush.buffer),
                number_cell(flush.params, std::to_string(flush.params)),
                number_cell(static_cast<double>(flush.elems), count(static_cast<double>(flush.elems)).text()),
                share(),
                flush.opened_ns > 0 ? number_cell(static_cast<double>(flush.at_ns - flush.opened_ns),
                                                  duration(flush.at_ns - flush.opened_ns).text())
                                    : number_cell(std::nullopt, ""),
                {why, {}, Tone::normal, {}, ""}});
  }
}

/// A bar for each filling bucket, divided by gradients, and its capacity.
void BucketsView::filling(Context& ctx, Rect& room, std::uint32_t rank) const {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const store::Store& store = app.store();
  const std::vector<store::BucketState> open = store.buckets_at(rank, app.now_ns());
  ctx.section(room, "Filling on rank " + std::to_string(rank) + " at " + timestamp(app.now_ns(), 10'000));
  if (!store.is_known(rank, app.now_ns())) {
    ctx.canvas.text_in(room.take_top(22), not_kept_text(), c.muted, Font::small);
    return;
  }
  if (open.empty()) {
    ctx.canvas.text_in(
        room.take_top(22),
        "No " + std::string(words_of(store).bucket) + " is open: none is between two backward passes.",
        c.muted, Font::small);
    return;
  }
  for (const store::BucketState& bucket : open) {
    if (room.h < 30) return;
    Rect line = room.take_top(28);
    const std::string name = words_of(store).bucket + (" " + std::to_string(bucket.bucket)) +
                             (bucket.buffer != ev::kNoId ? ", buffer " + std::to_string(bucket.buffer) : "");
    ctx.canvas.text_in(line.take_left(130), name, c.text, Font::small);
    const std::string amount =
        count(static_cast<double>(bucket.elems)).text() +
        (capacity_ ? " of " + count(static_cast<double>(*capacity_)).text() : " elements");
    ctx.canvas.text_in(line.take_right(130), amount, c.text, Font::mono_small, Align::right);
    line.take_right(8);
    const Rect bar = line.inset(0, 6);
    ctx.canvas.outline(bar, c.line);
    // A gradient larger than the bucket is reduced alone and fills the bar.
    const double whole = static_cast<double>(std::max(capacity_.value_or(0), bucket.elems));
    float x = bar.x;
    for (const std::uint32_t param : bucket.params) {
      if (param >= store.tables().params.size()) continue;
      const auto w =
          static_cast<float>(static_cast<double>(store.tables().params[param].elems) / whole) * bar.w;
      const Rect piece{x, bar.y, std::max(1.0F, std::min(w, bar.right() - x) - (w > 3 ? 1.0F : 0.0F)), bar.h};
      x += w;
      ctx.canvas.fill(piece, c.of(Meaning::reduce), app.selected(param) ? 1.0F : 0.75F);
      if (ctx.activated(piece, param_name(store, param))) app.select_param(param, rank);
      if (ctx.hovered(piece))
        ctx.tip(param_name(store, param) + ": " + grouped(store.tables().params[param].elems) + " elements");
    }
  }
}

void BucketsView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const store::Store& store = app.store();
  const auto ranks = store.ranks();
  if (!store.has_tables() || ranks.empty()) {
    ctx.empty(room, "No rank yet", sentence(words_of(store).bucket) + "s appear with the first backward.");
    return;
  }
  const std::uint32_t rank = app.selection.rank != ev::kNoId ? app.selection.rank : app.memory_rank;
  const PanelRange shown = panel_range(app);
  const Of of{app.run->number(), rank, shown.range, store.revision()};
  const bool moves = app.run->live() && of.range == of_.range && of.rank == of_.rank;
  if (of != of_ && ctx.ui.captured == nullptr && (!moves || of_.revision + 200 < of.revision)) build(app, of);
  room = {room.x + 12, room.y, room.w - 20, room.h - 8};
  filling(ctx, room, rank);
  if (room.h < 60) return;
  ctx.section(room, std::string(words_of(store).has_buckets ? "Flushes" : "Reductions") + " in the " +
                        text_of(shown));
  if (flushes_.empty()) {
    const std::uint64_t all = store.instant_count(rank, ev::EventKind::bucket_flush);
    ctx.canvas.text_in(
        room.take_top(22),
        all > 0 ? "None here; the run has " + grouped(static_cast<std::int64_t>(all)) + " on this rank."
                : "None so far: " +
                      analysis::missing_reason(app.run->summary(), "buckets", ev::Detail::modules,
                                               ev::Capability::buckets) +
                      ".",
        ctx.colors().muted, Font::small);
    return;
  }
  const Rect figures = room.take_top(20);
  if (ctx.canvas.text_in(figures, figures_, ctx.colors().text, Font::small) && ctx.hovered(figures))
    ctx.tip(figures_);
  const TableHit hit = draw_table(ctx, "##flushes", room, table_, state_);
  if (!hit.clicked) return;
  const BucketFlush& flush = flushes_[*hit.clicked];
  app.jump_to(flush.at_ns);
  if (flush.trigger_param != ev::kNoId) app.select_param(flush.trigger_param, rank);
}

}  // namespace

std::unique_ptr<View> make_buckets_view() { return std::make_unique<BucketsView>(); }

}  // namespace shardscope::gui
