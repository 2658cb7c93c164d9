// The user's notes on the run that is shown: kept beside its recording, written at each change.
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
  /// Once a frame: reads the notes of another run when one is shown. Those of a live run have no file.
  void show(const Session& run);
  /// The next show() reads anew, also of the same recording.
  void forget() noexcept { run_ = 0; }
  [[nodiscard]] std::span<const Note> notes() const noexcept { return notes_; }  ///< by begin
  /// Why notes were not read, or not saved; empty: all is well.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] bool has_file() const noexcept { return !path_.empty(); }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }  ///< grows when a note changes

  /// Each reads the file again before it writes, so that what another window wrote stays, and writes what
  /// could not be saved before as well. A file that cannot be read is set aside under another name first, and
  /// problem() names it; while it cannot be set aside nothing is written.
  /// `note.id` empty: a new one.
  void put(Note note);
  void remove(std::string id);
  /// The one that was removed last comes back.
  void restore();
  [[nodiscard]] bool can_restore() const noexcept { return removed_.has_value(); }
  [[nodiscard]] const Note* find(std::string_view id) const;

 private:
  /// What this window did that its file has not got yet, by id; nothing: removed.
  using Changes = std::map<std::string, std::optional<Note>>;
  void change(const std::string& id, const std::optional<Note>& to);
  /// Reads, changes and writes the file. Returns what there is to say.
  std::string save();
  std::uint64_t run_ = 0;  ///< Session::number(); 0: none was shown
  bool foreign_ = false;   ///< the file is none that can be read, and could not be set aside
  Changes unsaved_;
  std::string source_, path_, run_id_, problem_;
  std::vector<Note> notes_;  ///< of the file, with what is unsaved
  std::optional<Note> removed_;
  std::uint64_t version_ = 0;
};

/// What a new note would be of: the measured range, else "now"; with the rank of the selection.
[[nodiscard]] Note note_here(const AppState& app);
/// Shows its time, or measures its range again.
void go_to_note(AppState& app, const Note& note);
/// The note that begins next after "now", or last before it. Null beyond the last.
[[nodiscard]] const Note* note_beside(const AppState& app, bool later);

/// Columns: time, length, step, rank, note. One row a note, in their order.
[[nodiscard]] Table note_table(const AppState& app);
/// The same, made when a note or a step is another.
class NoteTable {
 public:
  [[nodiscard]] const Table& of(const AppState& app);

 private:
  std::optional<std::array<std::uint64_t, 2>> made_of_;
  Table table_;
};

/// A mark on the times above the lanes: of one note, or of several whose marks would touch.
struct NoteFlag {
  float x0 = 0, x1 = 0;  ///< a range's ends, within the scale; of a time the same
  std::vector<std::size_t> notes;
};
[[nodiscard]] std::vector<NoteFlag> note_flags(std::span<const Note> notes, const TimeScale& scale);
/// "decoder stalls here", "2 notes: ...": for under the pointer.
[[nodiscard]] std::string flag_text(const store::Store& store, std::span<const Note> notes,
                                    const NoteFlag& flag);

}  // namespace shardscope::gui
