// The status bar: source, missing data, clocks, and number of findings.
#include <algorithm>

#include "app/gui/model/clock_bound.h"
#include "app/gui/model/connection_facts.h"
#include "app/gui/model/format.h"
#include "app/gui/model/history_text.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/trace_info.h"
#include "app/gui/views/workspace.h"
#include "app/store/control_text.h"
#include "app/store/losses.h"

namespace shardscope::gui {

/// Pauses, steps and changes of detail, with their origin; reread after a new message.
void Workspace::last_action_text(const store::Store& store) {
  const auto messages = store.messages();
  const std::pair<std::size_t, std::int64_t> of{messages.size(),
                                                messages.empty() ? 0 : messages.back().at_ns};
  if (of == done_.of) return;
  done_ = {of, {}, {}, store::detail_was_lowered(messages)};
  const std::vector<std::string> lines = store::control_lines(messages, 8);
  for (const std::string& line : lines) {
    done_.all += (done_.all.empty() ? "" : "\n") + line;
    // A reduced level of detail stays visible despite later actions.
    if (!done_.lowered || line.starts_with(store::kDetailLowered.substr(store::kControlPrefix.size())))
      done_.newest = line;
  }
}

void Workspace::status_bar(Context& ctx, Rect rect) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.canvas.fill(rect, c.panel);
  ctx.canvas.horizontal(rect.x, rect.y, rect.w, c.line);
  Rect room = rect.inset(12, 0);
  const auto piece = [&](std::string_view text, Rgb color, std::string_view tip) {
    const float w = ctx.canvas.width(text, Font::small) + 1;
    if (text.empty() || room.w < std::min(w, 40.0F)) return;
    const Rect place = room.take_left(std::min(w, room.w));
    ctx.canvas.text_in(place, text, color, Font::small);
    if (!tip.empty() && ctx.hovered(place)) ctx.tip(tip);
    room.take_left(20);
  };
  const std::size_t found = app.run->findings().size();
  ev::Severity worst = ev::Severity::info;
  for (const analysis::Finding& finding : app.run->findings()) worst = std::max(worst, finding.severity);
  const bool serious = worst != ev::Severity::info;
  const std::string findings = std::to_string(found) + (found == 1 ? " finding" : " findings");
  const Rect right = room.take_right(ctx.canvas.width(findings, Font::small) + 14);
  if (serious) {
    const Rgb mark = worst == ev::Severity::error ? c.of(Meaning::trouble) : c.warning;
    ctx.canvas.disc(right.x + 4, right.y + right.h / 2, 3.5F, mark);
  }
  ctx.canvas.text_in({right.x + 12, right.y, right.w - 12, right.h}, findings, serious ? c.text : c.muted,
                     Font::small);
  placed_.push_back({"finding_count", right});
  if (ctx.hovered(right)) {
    ctx.canvas.horizontal(right.x + 12, right.bottom() - 4, right.w - 12, c.text);
    ctx.tip("Diagnoses of this run: click to show them");
  }
  if (ctx.activated(right, "findings")) ctx.ui.show_panel = "findings";

  std::string source = app.run->source();
  if (const std::size_t slash = source.rfind('/'); app.run->info() && slash != std::string::npos)
    source = source.substr(slash + 1);
  piece(source, c.text, app.run->source());
  const bool connects = app.run->live() || app.run->disconnected();
  const bool is_live = app.run->live() && app.run->link() == collector::Viewer::Link::live;
  const float before = room.x;
  const float state_width = std::min(room.w, ctx.canvas.width(link_text(*app.run), Font::small) + 1);
  piece(link_text(*app.run), is_live ? c.good : c.muted,
        connects ? "Click: rates, backlog, disconnect and reconnect" : "Click: the run and its file");
  const Rect state{before, rect.y, state_width, rect.h};
  placed_.push_back({"link", state});
  if (ctx.hovered(state)) ctx.canvas.horizontal(state.x, state.bottom() - 4, state.w, c.muted);
  if (ctx.activated(state, "link")) ctx.ui.show_panel = connects ? "connection" : "trace_info";
  piece(count(static_cast<double>(app.store().event_count()), "events").text(), c.muted, "");
  const collector::Viewer::Traffic traffic = app.run->traffic();
  if (app.run->live() && notices_.behind(ctx.seconds))
    piece("behind by " + bytes(static_cast<std::int64_t>(traffic.waiting_bytes)).text() +
              (traffic.items_behind > 0 ? " and what the collector has not sent" : ""),
          c.warning,
          "Events arrive faster than this window takes them in: what it shows is late. The run is not "
          "slowed, and "
          "its recording is complete. Lower the detail, or close other windows.");
  // Pictures of a recording must be reproducible: no load time.
  if (const auto load = app.run->in_window() ? load_text(*app.run) : std::nullopt)
    piece(load->brief, c.muted, load->whole);
  piece(app.run->partial(), c.warning,
        "Summary, findings and step times cover these steps so far; the rest is being analysed");
  piece(details_from(app.store()), c.of(Meaning::trouble), eviction_text(app.store()));
  const std::uint64_t dropped = app.store().dropped_count();
  piece(grouped(static_cast<std::int64_t>(dropped)) + " dropped",
        dropped == 0 ? c.muted : c.of(Meaning::trouble),
        "Events that a rank's ring had no room for; they show as gaps in the lanes");
  const auto& ends = app.run->summary().unmatched_ends;
  std::uint64_t wrong = 0;
  for (const store::Store::UnmatchedEnds& row : ends) wrong += row.count - row.explained;
  if (wrong > 0) {
    piece(store::unmatched_ends_text(wrong, 0), c.of(Meaning::trouble),
          store::unmatched_ends_by_rank(ends) +
              "; no missing events explain it, and the spans that they ended are in no figure");
  }
  const ClockBound bound = clock_bound(app);
  piece("clock ±" + duration(bound.in_view_ns).text(), c.muted,
        "Bound on the error of a rank's times in the range that the timeline shows: the largest of any rank. "
        "In the whole run: ±" +
            duration(bound.in_run_ns).text());
  if (const std::string line = dialogs_.export_line(); !line.empty())
    piece(line, dialogs_.export_failed() ? c.of(Meaning::trouble) : c.text, line);
  // While recording a live run the strip below the top bar shows its progress.
  if (const CopyRecording::State copy = dialogs_.copy().state(); copy.done)
    piece(dialogs_.copy().line(true), copy.problem.empty() ? c.text : c.of(Meaning::trouble),
          dialogs_.copy().line());
  if (!ctx.ui.notice.empty())
    piece(ctx.ui.notice, ctx.ui.notice_is_trouble ? c.of(Meaning::trouble) : c.text, ctx.ui.notice);
  piece(identify(app.store()).link, c.warning,
        "Collectives are held for as long as this link would take: times are emulated");
  last_action_text(app.store());
  piece(done_.newest, done_.lowered ? c.of(Meaning::trouble) : c.muted, done_.all);
  if (!app.run->control().note.empty()) piece(app.run->control().note, c.text, app.run->control().note);
}

}  // namespace shardscope::gui
