// Dialog for writing a note.
#include <iterator>

#include "app/gui/model/format.h"
#include "app/gui/model/notebook.h"
#include "app/gui/model/span_text.h"
#include "app/gui/views/dialogs.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {

namespace {

constexpr float kTimeField = 150;

}  // namespace

void Dialogs::note(Context& ctx) {
  AppState& app = ctx.app;
  Note& note = ctx.ui.note;
  if (ctx.ui.dialog_opened) {
    text_ = note.text;
    times_ = times_of(note);
  }
  const std::string rank = note.rank ? ", rank " + std::to_string(*note.rank) : std::string();
  const bool is_new = note.id.empty();
  if (is_new && app.measured) {
    const std::string range = "On the measured " +
                              range_text(app.store(), app.measured->begin_ns, app.measured->end_ns) +
                              " from " + timestamp(app.measured->begin_ns, 1'000) + rank;
    const std::string now = "At " + timestamp(app.now_ns(), 1'000) + rank;
    if (ImGui::RadioButton(range.c_str(), note.is_range())) {
      note.begin_ns = app.measured->begin_ns;
      note.end_ns = app.measured->end_ns;
      times_ = times_of(note);
    }
    if (ImGui::RadioButton(now.c_str(), !note.is_range())) {
      note.begin_ns = note.end_ns = app.now_ns();
      times_ = times_of(note);
    }
  }
  if (ctx.ui.dialog_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  bool entered = text_field("##text", "text; empty: a bookmark", text_, ImGuiInputTextFlags_EnterReturnsTrue);
  Note timed = note;
  const std::string wrong = set_times(timed, times_, app.store().end_ns());
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("from");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(kTimeField);
  entered |= text_field("##begin", "12.5 ms", times_.begin, ImGuiInputTextFlags_EnterReturnsTrue);
  item_tip("Since the run's first event: ns, us, ms, s, min or h");
  ImGui::SameLine();
  ImGui::TextDisabled("to");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(kTimeField);
  entered |= text_field("##end", "empty: a point in time", times_.end, ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::SameLine();
  const std::string length =
      wrong.empty() ? (timed.is_range() ? range_text(app.store(), timed.begin_ns, timed.end_ns) : "") + rank
                    : wrong;
  ImGui::TextColored(ink(wrong.empty() ? ctx.colors().muted : ctx.colors().of(Meaning::trouble)), "%s",
                     length.starts_with(", ") ? length.c_str() + 2 : length.c_str());
  static constexpr Meaning kMeanings[] = {Meaning::neutral, Meaning::compute, Meaning::gather,
                                          Meaning::optimizer, Meaning::trouble};
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("flag");
  for (std::size_t i = 0; i < std::size(exporter::kNoteColours); ++i) {
    ImGui::SameLine();
    // Buttons have the note colour they select.
    const Rgb own = ctx.colors().of(kMeanings[i]);
    ImGui::PushStyleColor(ImGuiCol_FrameBg, ink(own, 0.55F));
    ImGui::PushStyleColor(ImGuiCol_FrameBgHovered, ink(own, 0.8F));
    ImGui::PushStyleColor(ImGuiCol_CheckMark, ink(ctx.colors().text));
    const auto colour = static_cast<exporter::NoteColour>(i);
    if (ImGui::RadioButton(exporter::kNoteColours[i], note.colour == colour)) note.colour = colour;
    ImGui::PopStyleColor(3);
  }
  const bool fits = text_.size() <= exporter::kLongestNote;
  if (!fits) ImGui::TextDisabled("at most %d bytes", static_cast<int>(exporter::kLongestNote));
  const bool sound = fits && wrong.empty();
  if ((confirm(ctx, "Save", sound) || entered) && sound) {
    note = timed;
    note.text = text_;
    app.notes.put(note);
    if (app.notes.problem().empty())
      ctx.ui.say(is_new ? "Noted: the panel Notes lists it" : "Changed the note");
    else
      ctx.ui.say(app.notes.problem(), true);
    close(ctx);
  }
}

}  // namespace shardscope::gui
