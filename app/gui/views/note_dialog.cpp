// Dialog for writing a note.
#include <iterator>

#include "app/gui/model/format.h"
#include "app/gui/model/notebook.h"
#include "app/gui/model/span_text.h"
#include "app/gui/views/dialogs.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {

void Dialogs::note(Context& ctx) {
  AppState& app = ctx.app;
  Note& note = ctx.ui.note;
  if (ctx.ui.dialog_opened) text_ = note.text;
  const std::string rank = note.rank ? ", rank " + std::to_string(*note.rank) : std::string();
  const std::string at = "At " + timestamp(note.begin_ns, 1'000) + rank;
  const bool is_new = note.id.empty();
  if (is_new && app.measured) {
    const std::string range = "On the measured " +
                              range_text(app.store(), app.measured->begin_ns, app.measured->end_ns) +
                              " from " + timestamp(app.measured->begin_ns, 1'000) + rank;
    const std::string now = "At " + timestamp(app.now_ns(), 1'000) + rank;
    if (ImGui::RadioButton(range.c_str(), note.is_range())) {
      note.begin_ns = app.measured->begin_ns;
      note.end_ns = app.measured->end_ns;
    }
    if (ImGui::RadioButton(now.c_str(), !note.is_range())) note.begin_ns = note.end_ns = app.now_ns();
  } else {
    ImGui::TextUnformatted(
        (note.is_range() ? at + ", " + range_text(app.store(), note.begin_ns, note.end_ns) : at).c_str());
  }
  if (ctx.ui.dialog_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  const bool entered =
      text_field("##text", "text; empty: a bookmark", text_, ImGuiInputTextFlags_EnterReturnsTrue);
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
  if ((confirm(ctx, "Save", fits) || entered) && fits) {
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
