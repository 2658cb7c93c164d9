// Lecture: one step of stage 3 played slowly, with the actions, the plan's reasons and explanations as
// captions. The other panels show the same time.
#include "app/gui/model/lecture.h"

#include <imgui.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/lecture_words.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/panels.h"

namespace shardscope::gui {
namespace {

constexpr float kControls = 28, kProgress = 18;
/// Fraction of the step that is visible in the timeline during playback.
constexpr double kViewOfStep = 0.2;

class LectureView final : public View {
 public:
  std::string_view name() const override { return "lecture"; }
  std::string_view title() const override { return "Lecture"; }
  std::vector<Choice> choices(const AppState& app) override;
  void update(Context& ctx) override;
  void draw(Context& ctx, Rect room) override;

 private:
  bool refresh(AppState& app);
  void play(Context& ctx);
  void show(AppState& app, std::int64_t at_ns, bool select);
  void controls(Context& ctx, Rect room);
  void progress(Context& ctx, const Rect& room);
  void caption(Context& ctx, Rect room);

  Lecture lecture_;
  LecturePlayer player_;
  LectureLength length_ = LectureLength::brief;
  std::uint64_t run_ = 0;  ///< Session::number() of lecture_
  std::uint64_t revision_ = 0;
  std::optional<std::int64_t> shown_ns_;  ///< the cursor as set last: differs if the user has moved it
  double last_seconds_ = 0;
};

std::vector<Choice> LectureView::choices(const AppState&) {
  return {{"scenes", {"brief", "every event"}, static_cast<int>(length_), [this](AppState&, int to) {
             length_ = static_cast<LectureLength>(to);
           }}};
}

/// Updates the lecture to the current step; while playing it keeps its step. False without a lecture.
bool LectureView::refresh(AppState& app) {
  const auto steps = app.store().steps();
  LectureQuery wanted = lecture_.of;
  const bool same_run = run_ == app.run->number();
  if (!same_run || !player_.playing) {
    const auto at = measured_step_of(steps, app.now_ns());
    const bool at_its_end = same_run && lecture_.missing.empty() && app.now_ns() == lecture_.end_ns;
    if (!at_its_end) wanted.step = at ? steps[*at].step : 0;
    wanted.rank = app.stepper_rank;
  }
  wanted.length = length_;
  const bool live_and_grown =
      app.run->live() && !lecture_.missing.empty() && revision_ != app.store().revision();
  if (same_run && wanted == lecture_.of && !live_and_grown) return lecture_.missing.empty();
  run_ = app.run->number();
  revision_ = app.store().revision();
  lecture_ = lecture_of(app.store(), app.run->index(), wanted);
  player_.go_to(lecture_, app.cursor_ns ? lecture_.scene_at(*app.cursor_ns) : 0);
  if (!lecture_.missing.empty()) player_.playing = false;
  return lecture_.missing.empty();
}

/// Sets the cursor, and moves the visible range with it.
void LectureView::show(AppState& app, std::int64_t at_ns, bool select) {
  app.cursor_ns = shown_ns_ = at_ns;
  app.follow = false;
  const std::int64_t whole = lecture_.end_ns - lecture_.begin_ns;
  const auto length = std::max<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(whole) * kViewOfStep), TimeAxis::kShortest);
  TimeRange range = app.time.range();
  if (player_.playing && range.length() > length) range.end_ns = range.begin_ns + length;
  // Keeps a part of the range before the cursor, to show what has just happened.
  const std::int64_t least = at_ns - range.length() * 3 / 5;
  const std::int64_t most = at_ns - range.length() / 5;
  const std::int64_t begin = std::clamp(range.begin_ns, least, most);
  app.time.set({begin, begin + range.length()}, app.store().end_ns());
  if (!select) return;
  const Scene& scene = lecture_.scenes[player_.scene];
  if (scene.param != ev::kNoId)
    app.select_param(scene.param, lecture_.of.rank);
  else if (scene.module != ev::kNoId)
    app.select_module(scene.module, lecture_.of.rank);
  else
    app.clear_selection();
}

void LectureView::play(Context& ctx) {
  AppState& app = ctx.app;
  const double passed = last_seconds_ > 0 ? std::clamp(ctx.seconds - last_seconds_, 0.0, 5.0) : 0;
  last_seconds_ = ctx.seconds;
  if (!player_.playing) {
    // The user has moved the cursor: continue with the scene at that time, without a cursor with the
    // first.
    if (app.cursor_ns != shown_ns_)
      player_.go_to(lecture_, app.cursor_ns ? lecture_.scene_at(*app.cursor_ns) : 0);
    shown_ns_ = app.cursor_ns;
    return;
  }
  ctx.moving = true;
  const std::size_t before = player_.scene;
  const std::int64_t at = player_.advance(lecture_, passed);
  show(app, at, player_.scene != before);
}

/// Continues playback while the panel is hidden; pauses where the user has moved the cursor.
void LectureView::update(Context& ctx) {
  if (!player_.playing) return;
  if (ctx.app.store().ranks().empty() || !refresh(ctx.app)) return;
  if (ctx.app.cursor_ns != shown_ns_) player_.playing = false;
  play(ctx);
}

void LectureView::controls(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  room = {room.x, room.y + 2, room.w, room.h - 4};
  // `name`: in the palette.
  const auto next = [&](std::string_view label, std::string_view name, bool enabled, Context::Look look,
                        std::string_view tip) {
    const float width = std::min(ctx.button_width(label), room.w);
    const Rect place = room.take_left(width);
    room.take_left(4);
    const bool chosen = ctx.offered(name, enabled, tip);
    return ctx.button(place, label, enabled, look, tip) || chosen;
  };
  const std::size_t count = lecture_.scenes.size();
  const bool at_end = player_.scene + 1 == count;
  if (next(player_.playing ? "Pause"
           : at_end        ? "From the start"
                           : "Play",
           "Play or pause", true, player_.playing ? Context::Look::chosen : Context::Look::primary,
           "Each scene is shown for as long as it takes to read")) {
    player_.playing = !player_.playing;
    if (player_.playing) show(ctx.app, player_.go_to(lecture_, at_end ? 0 : player_.scene), true);
  }
  const auto step = [&](std::size_t which) { show(ctx.app, player_.go_to(lecture_, which), true); };
  if (next("<", "Previous scene", player_.scene > 0, Context::Look::plain, "Go to the previous scene"))
    step(player_.scene - 1);
  if (next(">", "Next scene", !at_end, Context::Look::plain, "Go to the next scene")) step(player_.scene + 1);
  room.take_left(8);
  if (room.w > 260) {
    ctx.canvas.text_in(room.take_left(ctx.canvas.width("pace", Font::small) + 6), "pace", c.muted,
                       Font::small);
    for (const auto& [label, pace] : {std::pair{"1/2", 0.5}, std::pair{"1", 1.0}, std::pair{"2", 2.0}}) {
      const float width = ctx.button_width(label);
      if (ctx.button(room.take_left(width), label, true,
                     player_.pace == pace ? Context::Look::chosen : Context::Look::plain))
        player_.pace = pace;
      room.take_left(1);
    }
    room.take_left(8);
  }
  std::string text = std::to_string(player_.scene + 1) + " of " + std::to_string(count);
  if (lecture_.left_out > 0)
    text += ", " + grouped(static_cast<std::int64_t>(lecture_.left_out)) + " left out";
  text += "; step " + std::to_string(lecture_.of.step) + ", rank " + std::to_string(lecture_.of.rank);
  ctx.canvas.text_in(room, text, c.muted, Font::small, Align::right);
}

/// A mark per scene, in the colour of its kind, below ImGui's slider over the scenes: a click, a drag or the
/// arrow keys go there.
void LectureView::progress(Context& ctx, const Rect& room) {
  const Palette& c = ctx.colors();
  const Rect line{room.x, room.y + 4, room.w, room.h - 8};
  ctx.canvas.fill(line, c.raised, 1, 2);
  const auto count = static_cast<float>(lecture_.scenes.size());
  const float each = line.w / count;
  for (std::size_t i = 0; i < lecture_.scenes.size(); ++i) {
    const Rgb color = c.of(meaning_of(lecture_.scenes[i].kind));
    const float x = line.x + each * static_cast<float>(i);
    ctx.canvas.fill({x, line.y, std::max(1.0F, each - (each > 3 ? 1.0F : 0.0F)), line.h}, color,
                    i <= player_.scene ? 0.95F : 0.35F);
  }
  const float at = line.x + each * (static_cast<float>(player_.scene) + 0.5F);
  ctx.canvas.outline({at - std::max(each, 5.0F) / 2, line.y - 2, std::max(each, 5.0F), line.h + 4}, c.text);
  const std::size_t last = lecture_.scenes.size() - 1;
  int scene = static_cast<int>(player_.scene);
  ImGui::SetCursorScreenPos({room.x, room.y});
  ImGui::SetNextItemWidth(room.w);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_GrabMinSize, std::max(each, 5.0F));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, (room.h - ImGui::GetFontSize()) / 2});
  for (const ImGuiCol drawn : {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive,
                               ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive})
    ImGui::PushStyleColor(drawn, ImVec4{0, 0, 0, 0});  // the marks are drawn above
  const bool moved =
      ImGui::SliderInt("##scene", &scene, 0, static_cast<int>(last), "", ImGuiSliderFlags_NoInput);
  ImGui::PopStyleColor(5);
  ImGui::PopStyleVar(3);
  // Not at the keyboard's cursor: the caption says the same, and the tip would cover it.
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_NoNavOverride)) {
    const float at_pointer = std::clamp((ctx.pointer.x - line.x) / std::max(each, 0.01F), 0.0F, count - 1);
    ctx.tip(lecture_.scenes[static_cast<std::size_t>(at_pointer)].text);
  }
  const auto wanted = static_cast<std::size_t>(std::clamp(scene, 0, static_cast<int>(last)));
  if (moved && wanted != player_.scene) show(ctx.app, player_.go_to(lecture_, wanted), true);
}

void LectureView::caption(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  const Scene& scene = lecture_.scenes[player_.scene];
  room.take_top(4);
  Rect head = room.take_top(20);
  const Rect mark = head.take_left(16);
  ctx.canvas.fill({mark.x, mark.y + 5, 10, 10}, c.of(meaning_of(scene.kind)), 1, 2);
  const std::string into = duration(scene.at_ns - lecture_.begin_ns).text() + " into the step";
  ctx.canvas.text_in(head.take_right(std::min(head.w * 0.5F, ctx.canvas.width(into, Font::mono_small) + 1)),
                     into, c.muted, Font::mono_small, Align::right);
  ctx.canvas.text_in(head, name_of(scene.kind), c.muted, Font::small);
  // Larger text in a large panel: a lecture is read from a distance.
  const bool large = room.h > 84 && room.w > 600;
  const Font font = large ? Font::title : Font::strong;
  const float text = ctx.canvas.paragraph_height(room.w, scene.text, font);
  ctx.canvas.paragraph(room.take_top(std::min(text + 4, room.h)), scene.text, c.text, font);
  const float width = std::min(room.w, 860.0F);  // longer lines are hard to read
  if (!scene.reason.empty() && room.h > 20) {
    const std::string why = "Why: " + scene.reason + ".";
    const float height = ctx.canvas.paragraph_height(width - 12, why, Font::body);
    const Rect place = room.take_top(std::min(height + 8, room.h));
    ctx.canvas.fill({place.x, place.y + 2, 3, place.h - 6}, c.accent, 1, 1);
    ctx.canvas.paragraph({place.x + 12, place.y + 2, width - 12, place.h}, why, c.text, Font::body);
  }
  if (!scene.lesson.empty() && room.h > 20) {
    room.take_top(4);
    ctx.canvas.paragraph({room.x, room.y, width, room.h}, scene.lesson, c.muted, Font::body);
  }
}

void LectureView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (app.store().ranks().empty()) {
    ctx.empty(room, "Nothing to play yet", "A step of stage 3 is played here, slowly and with its reasons.");
    return;
  }
  if (!refresh(app)) {
    ctx.empty(room, "No lecture of this run", lecture_.missing);
    return;
  }
  if (!player_.playing) play(ctx);  // while playing update() does this
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  controls(ctx, room.take_top(kControls));
  progress(ctx, room.take_top(kProgress));
  caption(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_lecture_view() { return std::make_unique<LectureView>(); }

}  // namespace shardscope::gui
