// Notes: the user's notes on times and ranges of the run; a click goes there.
#include <algorithm>

#include "app/gui/model/notebook.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class NotesView final : public View {
 public:
  std::string_view name() const override { return "notes"; }
  std::string_view title() const override { return "Notes"; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void edit(Context& ctx) const;
  void remove(Context& ctx);
  std::string chosen_;  ///< id
  NoteTable table_;
  TableState state_;
};

void NotesView::edit(Context& ctx) const {
  if (const Note* const note = ctx.app.notes.find(chosen_)) {
    ctx.ui.note = *note;
    ctx.ui.open(Dialog::note);
  }
}

void NotesView::remove(Context& ctx) {
  const Note* const note = ctx.app.notes.find(chosen_);
  if (note == nullptr) return;
  ctx.ui.say("Deleted the note" + (note->text.empty() ? std::string() : " \"" + note->text + "\"") +
             "; Restore in the panel brings it back");
  ctx.app.notes.remove(chosen_);
}

void NotesView::header(Context& ctx, Rect& room) {
  Notebook& notes = ctx.app.notes;
  const bool any = notes.find(chosen_) != nullptr;
  if (ctx.button_right(room, "New", true, Context::Look::plain,
                       "A note at this time, or on the measured range (B)")) {
    ctx.ui.note = note_here(ctx.app);
    ctx.ui.open(Dialog::note);
  }
  if (ctx.button_right(room, "Edit", any, Context::Look::plain, "Change the chosen note (F2)")) edit(ctx);
  if (ctx.button_right(room, "Delete", any, Context::Look::plain, "Delete the chosen note (Delete)"))
    remove(ctx);
  const bool hidden = ctx.app.timeline.view.hides(ItemClass::notes);
  if (ctx.button_right(room, hidden ? "Show flags" : "Hide flags", true,
                       hidden ? Context::Look::chosen : Context::Look::plain,
                       "All flags of notes in the timeline"))
    ctx.app.timeline.view.set(ItemClass::notes, hidden);
  if (notes.can_restore()) {
    const bool deleted = notes.restores_deleted();
    if (ctx.button_right(room, deleted ? "Restore" : "Undo change", true, Context::Look::plain,
                         deleted ? "The note that was deleted last comes back"
                                 : "The note that was changed last is as it was before"))
      notes.restore();
  }
  const Note* const note = notes.find(chosen_);
  const auto& measured = ctx.app.measured;
  if (note != nullptr && measured &&
      (measured->begin_ns != note->begin_ns || measured->end_ns != note->end_ns) &&
      ctx.button_right(
          room, "Move to measured range", true, Context::Look::plain,
          "The chosen note is on the measured range, whose ends can be dragged in the timeline")) {
    Note moved = *note;
    moved.begin_ns = measured->begin_ns;
    moved.end_ns = measured->end_ns;
    notes.put(moved);
    ctx.ui.say(notes.problem().empty() ? "Moved the note" : notes.problem(), !notes.problem().empty());
  }
}

void NotesView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  room = {room.x + 12, room.y, room.w - 24, room.h - 6};
  if (!app.notes.problem().empty()) {
    const float h = ctx.canvas.paragraph(room, app.notes.problem(), c.of(Meaning::trouble), Font::small);
    room.take_top(h + 6);
  }
  if (!app.notes.has_file() && !app.notes.notes().empty())
    ctx.canvas.text_in(room.take_top(20),
                       "This run has not sent its id, or there is no home directory: these notes are lost "
                       "when the window closes.",
                       c.warning, Font::small);
  const auto notes = app.notes.notes();
  if (notes.empty()) {
    ctx.empty(
        room, "No notes yet",
        "B adds a note at the current time or on the measured range. Notes are kept beside the recording, "
        "those on a live run until its recording is opened, and are included in its report.");
    return;
  }
  const auto index = static_cast<std::size_t>(std::ranges::find(notes, chosen_, &Note::id) - notes.begin());
  TableOptions options;
  if (index < notes.size()) options.chosen = index;
  const TableHit hit = draw_table(ctx, "##notes", room, table_.of(app), state_, options);
  if (hit.clicked && *hit.clicked < notes.size()) {
    chosen_ = notes[*hit.clicked].id;
    go_to_note(app, notes[*hit.clicked]);
  }
  if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows) || ImGui::GetIO().WantTextInput) return;
  if (ImGui::IsKeyPressed(ImGuiKey_Delete, false)) remove(ctx);
  if (ImGui::IsKeyPressed(ImGuiKey_F2, false)) edit(ctx);
}

}  // namespace

std::unique_ptr<View> make_notes_view() { return std::make_unique<NotesView>(); }

}  // namespace shardscope::gui
