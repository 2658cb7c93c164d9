// Findings: what is wrong with the run, how much, and what to do about it.
#include "app/gui/model/format.h"
#include "app/gui/views/panels.h"

namespace shardscope::gui {
namespace {

class FindingsView final : public View {
 public:
  std::string_view name() const override { return "findings"; }
  std::string_view title() const override { return "Findings"; }
  bool analysed() const override { return true; }
  void draw(Context& ctx, Rect room) override;

 private:
  float scroll_ = 0;
  float content_ = 0;
};

const char* severity_word(ev::Severity severity) {
  switch (severity) {
    case ev::Severity::info:
      return "note";
    case ev::Severity::warning:
      return "warning";
    case ev::Severity::error:
      return "error";
  }
  return "";
}

void FindingsView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const auto& findings = app.run->findings();
  if (findings.empty()) {
    const std::string partial = app.run->partial();
    ctx.empty(room,
              app.run->summary().steps == 0 ? "Nothing to judge yet"
              : partial.empty()             ? "Nothing is wrong as far as can be seen"
                                            : "Nothing is wrong so far; " + partial,
              app.run->summary().steps == 0
                  ? "Findings appear after the first completed steps."
                  : "Late prefetches, exposed communication, stragglers, memory above "
                    "the expression and drops would be listed here.");
    return;
  }
  room = {room.x + 12, room.y, room.w - 16, room.h};
  ctx.scroll(this, room, content_, scroll_);
  const Clip clip(ctx.canvas, room);
  float y = room.y - scroll_;
  const float w = room.w - 12;
  for (const analysis::Finding& finding : findings) {
    const float text_width = w - 20;
    const float evidence = ctx.canvas.paragraph_height(text_width, finding.evidence, Font::small);
    const std::string advice = finding.next_step.empty() ? "" : "Next: " + finding.next_step;
    const float next = ctx.canvas.paragraph_height(text_width, advice, Font::small);
    const Rect card{room.x, y, w, 26 + evidence + next + 14};
    y += card.h;
    if (card.bottom() < room.y || card.y > room.bottom()) continue;
    const bool over = ctx.hovered(card) && room.contains(ctx.pointer.x, ctx.pointer.y);
    if (over) ctx.canvas.fill(card, c.raised, 0.6F);
    const Rgb color = finding.severity == ev::Severity::error     ? c.of(Meaning::trouble)
                      : finding.severity == ev::Severity::warning ? c.of(Meaning::reduce)
                                                                  : c.accent;
    // The shape says the severity as well as the colour.
    const float mx = card.x + 6;
    const float my = card.y + 15;
    if (finding.severity == ev::Severity::info)
      ctx.canvas.disc(mx, my, 4, color);
    else if (finding.severity == ev::Severity::warning)
      ctx.canvas.triangle(mx - 5, my + 4, mx + 5, my + 4, mx, my - 5, color);
    else
      ctx.canvas.fill({mx - 4, my - 4, 8, 8}, color);
    Rect head{card.x + 18, card.y + 4, w - 24, 22};
    std::string where = severity_word(finding.severity);
    if (finding.rank != ev::kNoId) where += ", rank " + std::to_string(finding.rank);
    if (finding.at_ns > 0) where += ", " + timestamp(finding.at_ns, 1'000'000);
    ctx.canvas.text_in(head.take_right(ctx.canvas.width(where, Font::small) + 1), where, c.muted, Font::small,
                       Align::right);
    head.take_right(8);
    if (ctx.canvas.text_in(head, finding.title, c.text, Font::strong) && over) ctx.tip(finding.title);
    ctx.canvas.paragraph({card.x + 18, card.y + 28, text_width, evidence + 2}, finding.evidence,
                         mix(c.muted, c.text, 0.5F), Font::small);
    ctx.canvas.paragraph({card.x + 18, card.y + 28 + evidence, text_width, next + 2}, advice, c.text,
                         Font::small);
    ctx.canvas.horizontal(card.x, card.bottom() - 3, card.w, c.line);
    if (over && ctx.pointer.pressed[0]) {
      if (finding.rank != ev::kNoId) {
        app.select_rank(finding.rank);
        app.timeline.expanded.insert(finding.rank);
      }
      if (finding.at_ns > 0) app.jump_to(finding.at_ns);
    }
  }
  content_ = y + scroll_ - room.y + 8;
}

}  // namespace

std::unique_ptr<View> make_findings_view() { return std::make_unique<FindingsView>(); }

}  // namespace shardscope::gui
