// A user's notes on a recording, in a small file beside it: run.zscope.notes.json. Copy both to share them;
// the report shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::exporter {

/// Colour of the flag in the timeline; kNoteColours are the names in the file.
enum class NoteColour : std::uint8_t { none, blue, green, yellow, red };
inline constexpr const char* kNoteColours[] = {"none", "blue", "green", "yellow", "red"};

struct Note {
  std::string id;             ///< unique: two windows that write the same file keep each other's notes
  std::int64_t begin_ns = 0;  ///< since the run's first event
  std::int64_t end_ns = 0;    ///< end of a range; equal to begin_ns for a point in time
  std::string text;           ///< one line; empty: a bookmark
  std::optional<std::uint32_t> rank;
  NoteColour colour = NoteColour::none;
  [[nodiscard]] bool is_range() const noexcept { return end_ns > begin_ns; }
  friend bool operator==(const Note&, const Note&) = default;
};
/// Limits: bytes of a note's text, notes of a run.
inline constexpr std::size_t kLongestNote = 2000, kMostNotes = 10'000;

[[nodiscard]] std::string notes_path(const std::string& recording);
/// The notes by begin; none if the file does not exist. Throws std::runtime_error if it cannot be read, has
/// another format, or belongs to another run than `run_id`: path, reason.
[[nodiscard]] std::vector<Note> read_notes(const std::string& path, const std::string& run_id);
/// Writes it, whole or not at all (temporary file, then rename). Throws std::runtime_error: path, reason.
void write_notes(const std::string& path, const std::string& run_id, const std::vector<Note>& notes);

}  // namespace shardscope::exporter
