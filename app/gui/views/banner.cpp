// Strips below the top bar: a pause, a lost connection, a failed rank, an incomplete recording; lost and late
// events.
#include <algorithm>
#include <array>

#include "app/gui/model/format.h"
#include "app/gui/views/run_to.h"
#include "app/gui/views/workspace.h"
#include "app/store/losses.h"
#include "app/store/rank_end.h"

namespace shardscope::gui {
namespace {

/// A line with a mark in `color` at the top of `room`. `opens`: a click opens something. Its tooltip has the
/// text that does not fit, or `tip`.
Rect warning_strip(Context& ctx, Rect& room, Rgb color, const std::string& text, const std::string& hint,
                   const std::string& tip, bool opens) {
  const Palette& c = ctx.colors();
  const Rect strip = room.take_top(26);
  constexpr float kGround = 0.18F;  // the hint is readable also on the brightest, that of a warning
  ctx.canvas.fill(strip, mix(c.panel, color, kGround));
  ctx.canvas.fill({strip.x, strip.y, 4, strip.h}, color);
  Rect line = strip.inset(16, 0);
  const float w = std::min(line.w, ctx.canvas.width(text, Font::strong) + 16);
  const bool over = ctx.hovered(strip);
  const bool cut =
      ctx.canvas.text_in(line.take_left(w), text, opens && over ? c.accent : c.text, Font::strong);
  constexpr float kNarrowestHint = 120;  // narrower: only its first word
  const bool room_for_hint = line.w >= kNarrowestHint;
  const bool hint_cut =
      room_for_hint ? ctx.canvas.text_in(line, hint, mix(c.muted, c.text, 0.4F)) : !hint.empty();
  if (over && !tip.empty())
    ctx.tip(tip);
  else if (over && (cut || hint_cut))
    ctx.tip(hint.empty() ? text : text + ": " + hint);
  return strip;
}

}  // namespace

void Workspace::banner(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const collector::ControlState control = app.run->control();
  const collector::Viewer::Link link = app.run->link();
  std::string text;
  std::string hint, tip;
  const char* panel = nullptr;  // the panel with details
  Rgb color = c.accent;
  if (app.run->live() && control.paused) {
    const GatePosition at = gate_position(app.store(), app.stepper_rank, app.store().end_ns());
    text = "Paused at gate " + grouped(static_cast<std::int64_t>(control.gate)) +
           (at.known ? ", " + at.place : std::string());
    hint =
        "the run resumes by itself in " + decimal(control.lease_left_s, 0) + " s if this window disconnects";
  } else if (app.run->live() && link == collector::Viewer::Link::lost) {
    color = c.of(Meaning::trouble);
    text = "Connection to " + app.run->source() + " is lost";
    hint = "received events are kept; reconnecting";
  } else if (app.run->live() && link == collector::Viewer::Link::connecting) {
    text = "Connecting to " + app.run->source();
    hint = control.note;  // for example a reply of another protocol version
  } else if (app.run->live() && link == collector::Viewer::Link::catching_up) {
    text = "Catching up with the run";
  } else if (app.other && app.other->live() && app.other->link() == collector::Viewer::Link::lost) {
    color = c.of(Meaning::trouble);
    text =
        std::string("Connection to ") + app.letter_of(*app.other) + ", " + app.other->source() + ", is lost";
    hint = "received events are kept; reconnecting";
  } else {
    if (const auto failure = store::first_failure(app.store())) {
      color = c.of(Meaning::trouble);
      text = "R" + store::text_of(*failure).substr(1) + " at " + store::seconds_text(failure->at_ns);
      hint = store::words_on(app.store(), *failure);
    } else if (const analysis::Hang* hang = app.run->current_hang();
               hang != nullptr && !hang->headline.empty()) {
      color = c.warning;
      text = "Hangs: " + hang->headline;
      hint = "since " + store::seconds_text(hang->since_ns) + "; click for the full diagnosis";
      panel = "why";
      tip = hang->text;
    }
  }
  if (text.empty() && app.run->info() && !app.run->info()->problems.empty()) {
    color = c.warning;
    text = "This recording is incomplete";
    hint = app.run->info()->problems.front();
    if (app.run->info()->problems.size() > 1)
      hint += " (and " + std::to_string(app.run->info()->problems.size() - 1) + " more)";
  }
  if (text.empty()) return;
  const Rect strip = warning_strip(ctx, room, color, text, hint, tip, panel != nullptr);
  if (panel == nullptr) return;
  placed_.push_back({"banner", strip});
  if (ctx.activated(strip, "diagnosis")) ctx.ui.show_panel = panel;
}

/// Events of a live run that are lost or late, and its warnings, whatever the banner above says.
void Workspace::notice_strip(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  if (!app.run->live()) return;
  if (const std::array key{app.run->number(), app.store().revision()}; losses_of_ != key) {
    losses_of_ = key;
    losses_ = store::losses_of(app.store());
  }
  const collector::Viewer::Link link = app.run->link();
  const bool caught_up =
      link != collector::Viewer::Link::connecting && link != collector::Viewer::Link::catching_up;
  notices_.look({app.run->number(), app.store().revision(), caught_up, losses_, app.store().messages(),
                 app.run->traffic()},
                ctx.seconds);
  if (notices_.changes(ctx.seconds)) ctx.again_s = 1;
  const auto notice = notices_.at(ctx.seconds);
  if (!notice) return;
  const Rgb color = notice->bad ? ctx.colors().of(Meaning::trouble) : ctx.colors().warning;
  const Rect strip =
      warning_strip(ctx, room, color, notice->what, notice->hint,
                    notice->what + ": " + notice->hint + "\nClick: the panel with the details", true);
  placed_.push_back({"notice_strip", strip, {notice->what, notice->hint}});
  if (ctx.activated(strip, "notice")) ctx.ui.show_panel = notice->panel;
}

/// Progress of the recording of a live run, with its file and a Stop button.
void Workspace::copy_strip(Context& ctx, Rect& room) {
  if (!dialogs_.copy().state().running) return;
  const Palette& c = ctx.colors();
  const Rect strip = room.take_top(26);
  placed_.push_back({"copy_strip", strip});
  ctx.canvas.fill(strip, mix(c.panel, c.accent, 0.30F));
  ctx.canvas.fill({strip.x, strip.y, 4, strip.h}, c.accent);
  ctx.canvas.horizontal(strip.x, strip.y, strip.w, c.line);  // separates it from a banner of the same colour
  Rect line = strip.inset(16, 2);
  if (ctx.button_right(line, "Stop", true, Context::Look::plain, "Ends the file; the run continues"))
    ctx.ui.stop_copy = true;
  ctx.canvas.text_in(line, dialogs_.copy().line(true), c.text);
  if (ctx.hovered(line)) ctx.tip(dialogs_.copy().line());
}

/// Findings above severity note, if the layout does not show their panel: problems are visible without a
/// click.
void Workspace::finding_strip(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const std::vector<std::string>& shown = docks_.shown(app.layout_name);
  if (std::ranges::find(shown, "findings") != shown.end()) return;
  const auto& findings = app.run->findings();
  const auto serious = std::ranges::count_if(
      findings, [](const analysis::Finding& finding) { return finding.severity != ev::Severity::info; });
  if (serious == 0) return;
  Rect strip = room.take_top(24);
  placed_.push_back({"finding_strip", strip});
  ctx.canvas.fill(strip, c.panel);
  ctx.canvas.horizontal(strip.x, strip.bottom() - 1, strip.w, c.line);
  Rect line = strip.inset(12, 0);
  for (const analysis::Finding& finding : findings) {
    if (finding.severity == ev::Severity::info) continue;
    const float width = ctx.canvas.width(finding.title, Font::small) + 18;
    if (line.w < std::min(width, 120.0F)) break;
    const Rect place = line.take_left(std::min(width, line.w));
    line.take_left(20);
    const bool over = ctx.hovered(place);
    const float y = place.y + place.h / 2;
    const Rgb color = finding.severity == ev::Severity::error ? c.of(Meaning::trouble) : c.warning;
    ctx.canvas.triangle(place.x, y + 4, place.x + 9, y + 4, place.x + 4.5F, y - 4, color);
    ctx.canvas.text_in({place.x + 14, place.y, place.w - 14, place.h}, finding.title,
                       over ? c.accent : c.text, Font::small);
    if (over) ctx.tip(finding.title + ": " + finding.evidence);
    if (ctx.activated(place, finding.title)) {
      app.show_finding(finding);
      ctx.ui.show_panel = "findings";
    }
  }
}

}  // namespace shardscope::gui
