// Connection: state and traffic of the connection to a live run, with buttons to disconnect and reconnect.
#include <implot.h>

#include <algorithm>
#include <vector>

#include "app/gui/model/connection_facts.h"
#include "app/gui/model/format.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/plots.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class ConnectionView final : public View {
 public:
  std::string_view name() const override { return "connection"; }
  std::string_view title() const override { return "Connection"; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  static void graphs(Context& ctx, Rect room);
  static void graph(Context& ctx, Rect room, const char* id, const char* title,
                    const std::vector<double>& seconds, const std::vector<double>& values);
  TableState state_;
};

void ConnectionView::header(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const bool live = app.run->live();
  if (!live && !app.run->disconnected()) {
    if (ctx.button_right(room, "Connect...", true, Context::Look::plain, "Connect to a run (Ctrl+Shift+C)"))
      ctx.ui.open(Dialog::connect);
    return;
  }
  if (ctx.button_right(room, "Reconnect", true,
                       app.run->disconnected() ? Context::Look::primary : Context::Look::plain,
                       "Connects again and fetches what the collector still has of the run"))
    app.reconnect();
  if (ctx.button_right(room, "Disconnect", live, Context::Look::plain,
                       "Received events stay in the window; the run continues"))
    app.run->disconnect();
  if (ctx.button_right(room, "Record a copy...", live && !ctx.ui.copying, Context::Look::plain,
                       "Writes what the collector still has of the run, and what follows, to another file"))
    ctx.ui.open(Dialog::record_copy);
  if (ctx.button_right(room, "Keep this moment", live, Context::Look::plain,
                       "Asks the recorder to keep the events around the current time"))
    app.keep_moment();
}

/// Traffic per second over the last two minutes; in a narrow panel only events.
void ConnectionView::graphs(Context& ctx, Rect room) {
  const ConnectionRates::Curve curve = ctx.app.run->rates().curve();
  if (curve.x.size() < 2) {
    ctx.canvas.text_in(room, "Rates appear after a few seconds", ctx.colors().muted, Font::small,
                       Align::centre);
    return;
  }
  if (room.w > 640) {
    std::vector<double> kib(curve.bytes.size());
    std::ranges::transform(curve.bytes, kib.begin(), [](double bytes) { return bytes / 1024; });
    graph(ctx, room.take_right((room.w - 16) / 2), "##bytes", "KiB per second, the last two minutes", curve.x,
          kib);
    room.take_right(16);
  }
  graph(ctx, room, "##events", "events per second, the last two minutes", curve.x, curve.events);
}

void ConnectionView::graph(Context& ctx, Rect room, const char* id, const char* title,
                           const std::vector<double>& seconds, const std::vector<double>& values) {
  ctx.canvas.text_in(room.take_top(18), title, ctx.colors().muted, Font::small);
  if (!begin_plot(ctx, id, room, ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText)) return;
  const double most = *std::ranges::max_element(values);
  ImPlot::SetupAxes(nullptr, nullptr, 0, ImPlotAxisFlags_LockMin);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%g s");
  ImPlot::SetupAxesLimits(std::min(-10.0, seconds.front()), 0, 0, std::max(1.0, most * 1.15),
                          ImPlotCond_Always);
  ImPlot::SetupFinish();
  ImPlotSpec spec;
  spec.LineColor = ink(ctx.colors().accent);
  ImPlot::PlotLine(title, seconds.data(), values.data(), static_cast<int>(values.size()), spec);
  end_plot(ctx);
}

void ConnectionView::draw(Context& ctx, Rect room) {
  const Session& run = *ctx.app.run;
  if (!run.live() && !run.disconnected()) {
    ctx.empty(room, "This is a recording",
              "To connect to a live run use File, Connect to a run (Ctrl+Shift+C).");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  const Table table = connection_table(ctx.app);
  const float rows = table_height(table);
  if (room.h > rows + 90) {
    graphs(ctx, room.take_bottom(std::min(200.0F, room.h - rows - 8)));
    room.take_bottom(8);
  } else if (room.w > 760) {
    graphs(ctx, room.take_right(room.w * 0.4F));
    room.take_right(12);
  }
  draw_table(ctx, "##connection", room, table, state_);
}

}  // namespace

std::unique_ptr<View> make_connection_view() { return std::make_unique<ConnectionView>(); }

}  // namespace shardscope::gui
