// Notes that a user makes on a recording, in a small file beside it: run.zscope.notes.json. They are shared
// with the recording by copying both, and stand in its report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::exporter {

/// Of the flag in the timeline; as the file names them.
enum class NoteColour : std::uint8_t { none, blue, green, yellow, red };
inline constexpr const char* kNoteColours[] = {"none", "blue", "green", "yellow", "red"};

struct Note {
  std::string id;             ///< of its own, so that two windows that write the file keep each other's notes
  std::int64_t begin_ns = 0;  ///< since the run's first event
  std::int64_t end_ns = 0;    ///< of a range; of a time it is begin_ns
  std::string text;           ///< one line; empty: a bookmark
  std::optional<std::uint32_t> rank;
  NoteColour colour = NoteColour::none;
  [[nodiscard]] bool is_range() const noexcept { return end_ns > begin_ns; }
  friend bool operator==(const Note&, const Note&) = default;
};
/// Bytes of a note's text, and notes of a run, at most.
inline constexpr std::size_t kLongestNote = 2000, kMostNotes = 10'000;

[[nodiscard]] std::string notes_path(const std::string& recording);
/// By begin; none where there is no file. Throws std::runtime_error when it cannot be read, is not of this
/// format, or of another run than `run_id`: path, reason.
[[nodiscard]] std::vector<Note> read_notes(const std::string& path, const std::string& run_id);
/// Whole or not at all (temporary file, then rename). Throws std::runtime_error: path, reason.
void write_notes(const std::string& path, const std::string& run_id, const std::vector<Note>& notes);

}  // namespace shardscope::exporter
