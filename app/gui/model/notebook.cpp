#include "app/gui/model/notebook.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <random>
#include <tuple>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"
#include "app/gui/model/live_notes.h"
#include "app/gui/model/span_text.h"
#include "app/gui/model/step_of.h"

namespace shardscope::gui {
namespace {

std::string new_id() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

void sort(std::vector<Note>& notes) {
  std::ranges::sort(notes, {},
                    [](const Note& note) { return std::tie(note.begin_ns, note.end_ns, note.id); });
}

/// Renames `path` to an unused name beside it. Returns an error message, empty on success.
std::string set_aside(const std::string& path, std::string& kept_as) {
  std::error_code error;
  for (int i = 1; i < 1000; ++i) {
    kept_as = path + ".unreadable" + (i == 1 ? "" : "-" + std::to_string(i));
    if (std::filesystem::exists(kept_as, error)) continue;
    std::filesystem::rename(path, kept_as, error);
    return error ? error.message() : std::string();
  }
  return "too many are kept already";
}

std::string of_range(const store::Store& store, const Note& note) {
  return timestamp(note.begin_ns, 1'000) +
         (note.is_range() ? ", " + range_text(store, note.begin_ns, note.end_ns) : "");
}

Cell length_cell(const store::Store& store, const Note& note) {
  const std::int64_t ns = store::time_between(store, note.begin_ns, note.end_ns).running_ns;
  return number_cell(static_cast<double>(ns), range_text(store, note.begin_ns, note.end_ns));
}

}  // namespace

namespace {

/// False if the limit is reached.
bool apply(std::vector<Note>& notes, const std::string& id, const std::optional<Note>& to) {
  const auto same = std::ranges::find(notes, id, &Note::id);
  if (!to) {
    if (same != notes.end()) notes.erase(same);
  } else if (same != notes.end()) {
    *same = *to;
  } else if (notes.size() < exporter::kMostNotes) {
    notes.push_back(*to);
  } else {
    return false;
  }
  return true;
}

Note moved(Note note, std::int64_t by_ns) {
  note.begin_ns += by_ns;
  note.end_ns += by_ns;
  return note;
}

std::string run_id_of(const Session& run) {
  return run.store().has_tables() ? run.store().tables().run_id : std::string();
}

}  // namespace

void Notebook::show(const Session& run) {
  const bool same = run_ == run.number();
  // A live run's id comes with its first tables, and another run may come to its endpoint.
  if (same && (!run.live() || run_id_of(run) == run_id_)) {
    follow_origin(run.store().origin_ns());
    return;
  }
  const std::uint64_t version = version_ + 1;
  std::vector<Note> without_file;
  if (same && run_id_.empty()) without_file = std::move(notes_);
  *this = {};
  version_ = version;
  run_ = run.number();
  source_ = run.source();
  run_id_ = run_id_of(run);
  origin_ns_ = run.store().origin_ns();
  open(run);
  for (const Note& note : without_file) change(note.id, note);
}

void Notebook::open(const Session& run) {
  const bool recorded = run.recorded() && run.info();
  if (recorded)
    path_ = exporter::notes_path(source_);
  else if (run.live())
    path_ = live_notes_path(run_id_);
  if (path_.empty()) return;
  try {
    notes_ = read(path_);
  } catch (const std::exception& failed) {
    problem_ = std::string("Notes not read: ") + failed.what();
    return;
  }
  if (recorded) live_path_ = live_notes_path(run_id_);
  if (!live_path_.empty()) join_live();
}

void Notebook::follow_origin(std::int64_t origin_ns) {
  const std::int64_t by_ns = std::exchange(origin_ns_, origin_ns) - origin_ns;
  if (by_ns == 0) return;
  ++version_;
  for (std::vector<Note>* notes : {&notes_, &undo_})
    for (Note& note : *notes) note = moved(std::move(note), by_ns);
  for (auto& [id, to] : unsaved_)
    if (to) to = moved(*std::move(to), by_ns);
}

std::vector<Note> Notebook::read(const std::string& path) const {
  std::vector<Note> notes = exporter::read_notes(path, run_id_);
  if (path == live_notes_path(run_id_))
    for (Note& note : notes) note = moved(std::move(note), -origin_ns_);
  return notes;
}

void Notebook::write(const std::string& path, std::vector<Note> notes) const {
  if (path == live_notes_path(run_id_)) {
    std::error_code ignored;  // without the folder the file cannot be written either
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    for (Note& note : notes) note = moved(std::move(note), origin_ns_);
  }
  exporter::write_notes(path, run_id_, notes);
}

void Notebook::join_live() {
  try {
    for (const Note& note : read(live_path_))
      if (find(note.id) == nullptr) unsaved_[note.id] = note;
  } catch (const std::exception& failed) {
    problem_ = std::string("Notes made on the live run not read: ") + failed.what();
    live_path_.clear();
  }
  if (!unsaved_.empty()) problem_ = save("Notes made on the live run are not beside the recording: ");
}

void Notebook::change(const std::string& id, const std::optional<Note>& to) {
  ++version_;
  problem_.clear();
  const auto full = [] {
    return "Not noted: there are " + std::to_string(exporter::kMostNotes) + " notes already";
  };
  if (!has_file()) {
    if (!apply(notes_, id, to)) problem_ = full();
    sort(notes_);
    return;
  }
  std::vector<Note> with = notes_;
  if (!apply(with, id, to)) {
    problem_ = full();
    return;
  }
  unsaved_[id] = to;
  problem_ = save();
  if (!live_path_.empty()) change_live(id, to);
}

/// A note that was joined from the live run is changed there too, or would come back with the next opening.
void Notebook::change_live(const std::string& id, const std::optional<Note>& to) {
  try {
    std::vector<Note> notes = read(live_path_);
    if (std::ranges::find(notes, id, &Note::id) == notes.end()) return;
    (void)apply(notes, id, to);
    write(live_path_, std::move(notes));
  } catch (const std::exception& failed) {
    if (problem_.empty()) problem_ = failed.what();
  }
}

std::string Notebook::save(const char* failure) {
  std::vector<Note> notes;
  std::string problem;
  try {
    notes = read(path_);
    foreign_ = false;
  } catch (const std::exception& failed) {
    std::string kept_as;
    const std::string why = set_aside(path_, kept_as);
    problem = why.empty() ? std::string(failed.what()) + "; it is kept as " + kept_as
                          : std::string(failed.what()) + "; it cannot be set aside: " + why;
    foreign_ = !why.empty();
  }
  std::size_t too_many = 0;
  for (const auto& [id, to] : unsaved_) too_many += apply(notes, id, to) ? 0 : 1;
  sort(notes);
  if (!foreign_) {
    try {
      write(path_, notes);
      unsaved_.clear();
      notes_ = std::move(notes);
    } catch (const std::exception& failed) {
      problem = std::string(failure) + failed.what();
    }
  }
  if (!unsaved_.empty()) {  // still shown, but lost when the window closes
    for (const auto& [id, to] : unsaved_) (void)apply(notes_, id, to);
    sort(notes_);
    return problem;
  }
  if (too_many != 0)  // another window has added notes
    return std::to_string(too_many) + " not noted: there are " + std::to_string(exporter::kMostNotes) +
           " notes already";
  return problem;
}

void Notebook::keep(std::string_view id) {
  constexpr std::size_t kMost = 100;
  const Note* const note = find(id);
  if (note == nullptr) return;
  if (undo_.size() == kMost) undo_.erase(undo_.begin());
  undo_.push_back(*note);
}

void Notebook::put(Note note) {
  if (note.id.empty()) note.id = new_id();
  const Note* const before = find(note.id);
  if (before != nullptr && *before == note) return;
  keep(note.id);
  change(note.id, note);
}

void Notebook::remove(std::string id) {
  keep(id);
  change(id, std::nullopt);
}

void Notebook::restore() {
  if (undo_.empty()) return;
  const Note before = std::move(undo_.back());
  undo_.pop_back();
  change(before.id, before);
}

const Note* Notebook::find(std::string_view id) const {
  const auto found = std::ranges::find(notes_, id, &Note::id);
  return found == notes_.end() ? nullptr : &*found;
}

Note note_here(const AppState& app) {
  Note note;
  note.begin_ns = app.measured ? app.measured->begin_ns : app.now_ns();
  note.end_ns = app.measured ? app.measured->end_ns : note.begin_ns;
  if (app.selection.rank != ev::kNoId) note.rank = app.selection.rank;
  return note;
}

void go_to_note(AppState& app, const Note& note) {
  if (note.is_range()) {
    app.measured = TimeRange{note.begin_ns, note.end_ns};
    app.follow = false;
    app.cursor_ns = note.begin_ns;
    constexpr std::int64_t kSeen = 100;  // of the visible range: a shorter note is zoomed to
    const std::int64_t margin = (note.end_ns - note.begin_ns) / 2 + 1;
    if (app.time.range().length() / kSeen > note.end_ns - note.begin_ns)
      app.time.go({note.begin_ns - margin, note.end_ns + margin}, app.store().end_ns());
    else
      app.time.reveal({note.begin_ns, note.end_ns}, app.store().end_ns());
  } else {
    app.jump_to(note.begin_ns);
  }
  const auto ranks = app.store().ranks();
  if (note.rank && std::ranges::find(ranks, *note.rank, &store::RankRow::rank) != ranks.end())
    app.show_rank(*note.rank);
}

const Note* note_beside(const AppState& app, bool later) {
  const std::int64_t now = app.now_ns();
  const Note* best = nullptr;
  for (const Note& note : app.notes.notes()) {
    if (later ? note.begin_ns <= now : note.begin_ns >= now) continue;
    if (best == nullptr || !later) best = &note;
  }
  return best;
}

const Table& NoteTable::of(const AppState& app) {
  const std::array made_of{app.notes.version(), app.store().revision()};
  if (made_of_ != made_of) {
    table_ = note_table(app);
    made_of_ = made_of;
  }
  return table_;
}

Table note_table(const AppState& app) {
  Table table;
  table.columns = {{"time", 0.16F, true, "Since the run's first event"},
                   {"length", 0.12F, true, "Of a measured range, pauses cut out"},
                   {"step", 0.08F, true},
                   {"rank", 0.08F, true, "That was selected"},
                   {"note", 1.0F}};
  const auto steps = app.store().steps();
  for (const Note& note : app.notes.notes()) {
    const auto step = step_of(steps, note.begin_ns);
    table.add({number_cell(static_cast<double>(note.begin_ns), timestamp(note.begin_ns, 1'000)),
               note.is_range() ? length_cell(app.store(), note) : Cell{"", -1.0, Tone::muted, {}, ""},
               step ? number_cell(steps[*step].step, std::to_string(steps[*step].step))
                    : number_cell(std::nullopt, ""),
               note.rank ? number_cell(*note.rank, std::to_string(*note.rank))
                         : Cell{"", -1.0, Tone::muted, {}, ""},
               {note.text.empty() ? "bookmark" : note.text,
                {},
                note.text.empty() ? Tone::muted : Tone::normal,
                {},
                ""}});
  }
  return table;
}

std::vector<NoteFlag> note_flags(std::span<const Note> notes, const TimeScale& scale) {
  std::vector<NoteFlag> out;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const Note& note = notes[i];
    const bool seen = note.is_range()
                          ? note.begin_ns < scale.range.end_ns && note.end_ns > scale.range.begin_ns
                          : scale.range.contains(note.begin_ns);
    if (!seen) continue;
    const float left = scale.left;
    const float right = scale.left + scale.width;
    const float x0 = std::clamp(scale.x_of(note.begin_ns), left, right);
    const float x1 = std::clamp(scale.x_of(note.end_ns), x0, right);
    if (!out.empty() && x0 - out.back().x0 < kTouching) {
      out.back().x1 = std::max(out.back().x1, x1);
      out.back().notes.push_back(i);
    } else {
      out.push_back({x0, x1, {i}});
    }
  }
  return out;
}

std::string flag_text(const store::Store& store, std::span<const Note> notes, const NoteFlag& flag) {
  constexpr std::size_t kLines = 8;
  std::string out = flag.notes.size() > 1 ? std::to_string(flag.notes.size()) + " notes\n" : "";
  for (std::size_t i = 0; i < std::min(flag.notes.size(), kLines); ++i) {
    const Note& note = notes[flag.notes[i]];
    out += (i == 0 ? "" : "\n") + of_range(store, note) + ": " + (note.text.empty() ? "bookmark" : note.text);
  }
  if (flag.notes.size() > kLines) out += "\n...";
  return out;
}

}  // namespace shardscope::gui
