// The user's notes on the current run: stored beside its recording, of a live run by its id (live_notes.h),
// written at each change.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/export/notes.h"
#include "app/gui/model/table.h"
#include "app/gui/model/time_axis.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct AppState;
class Session;
using exporter::Note;

class Notebook {
 public:
  /// Call once per frame: reads the notes when another run is shown, or when the id of a live run has
  /// arrived. A recording also gets the notes that were made while its run was watched.
  void show(const Session& run);
  /// Makes the next show() read the notes again, also for the same recording.
  void forget() noexcept { run_ = 0; }
  [[nodiscard]] std::span<const Note> notes() const noexcept { return notes_; }  ///< in order of begin
  /// Why notes were not read or not saved; empty: no error.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] bool has_file() const noexcept { return !path_.empty(); }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }  ///< incremented by every change

  /// Each change rereads the file before writing, so that notes of another window are kept, and also writes
  /// changes that could not be saved before. An unreadable file is first renamed, and problem() names it;
  /// nothing is written while it cannot be renamed.
  /// An empty `note.id` adds a new note.
  void put(Note note);
  void remove(std::string id);
  /// Takes the last deletion or change of a note back.
  void restore();
  [[nodiscard]] bool can_restore() const noexcept { return !undo_.empty(); }
  /// Whether restore() brings a deleted note back, rather than an earlier text, time or colour.
  [[nodiscard]] bool restores_deleted() const { return can_restore() && find(undo_.back().id) == nullptr; }
  [[nodiscard]] const Note* find(std::string_view id) const;

 private:
  /// Changes of this window that are not in the file yet, by id; nullopt: removed.
  using Changes = std::map<std::string, std::optional<Note>>;
  void change(const std::string& id, const std::optional<Note>& to);
  void open(const Session& run);
  void change_live(const std::string& id, const std::optional<Note>& to);
  /// Copies notes made on the live run into the recording's file.
  void join_live();
  /// [Note: times of a live run's notes]
  /// A live run's first event may still become an earlier one, and its recording may begin earlier than what
  /// a window received. So the file of a live run has times of the collector's clock, as both have.
  [[nodiscard]] std::vector<Note> read(const std::string& path) const;
  void write(const std::string& path, std::vector<Note> notes) const;
  /// The first event of the run was at another time than before.
  void follow_origin(std::int64_t origin_ns);
  /// Keeps the note for restore(), if there is one.
  void keep(std::string_view id);
  /// Rereads the file, applies the changes and writes it. Returns the message for problem().
  std::string save(const char* failure = "Not saved, and lost when this window closes: ");
  std::int64_t origin_ns_ = 0;  ///< of the run, collector clock
  std::uint64_t run_ = 0;       ///< Session::number(); 0: none yet
  bool foreign_ = false;        ///< the file is unreadable and could not be renamed
  Changes unsaved_;
  std::string source_, path_, run_id_, problem_;
  std::string live_path_;    ///< of a recording: the notes made while its run was watched; else empty
  std::vector<Note> notes_;  ///< those of the file with the unsaved changes
  std::vector<Note> undo_;   ///< notes as they were before each change, the last change at the end
  std::uint64_t version_ = 0;
};

/// Initial values of a new note: the measured range, or else the cursor; and the rank of the selection.
[[nodiscard]] Note note_here(const AppState& app);
/// Shows the note's time, or measures its range again.
void go_to_note(AppState& app, const Note& note);
/// The note that begins next after the cursor, or last before it; null without one.
[[nodiscard]] const Note* note_beside(const AppState& app, bool later);

/// Columns: time, length, step, rank, note. One row per note, in the same order.
[[nodiscard]] Table note_table(const AppState& app);
/// note_table(), cached until a note or a step changes.
class NoteTable {
 public:
  [[nodiscard]] const Table& of(const AppState& app);

 private:
  std::optional<std::array<std::uint64_t, 2>> made_of_;
  Table table_;
};

/// A mark above the lanes: one note, or several whose marks would touch.
struct NoteFlag {
  float x0 = 0, x1 = 0;  ///< ends of the range, within the scale; equal for a time
  std::vector<std::size_t> notes;
};
[[nodiscard]] std::vector<NoteFlag> note_flags(std::span<const Note> notes, const TimeScale& scale);
/// "decoder stalls here", "2 notes: ...": the tooltip.
[[nodiscard]] std::string flag_text(const store::Store& store, std::span<const Note> notes,
                                    const NoteFlag& flag);

}  // namespace shardscope::gui
