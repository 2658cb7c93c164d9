#include "app/export/notes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "app/analysis/foreign_json.h"
#include "app/export/output_file.h"
#include "instrumentation/plain_text.h"

namespace shardscope::exporter {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "shardscope notes";
constexpr int kVersion = 1;
constexpr std::uintmax_t kLargestFile = std::uintmax_t{kMostNotes} * kLongestNote * 2;
/// Upper bound on times of a run: a hundred years.
constexpr std::int64_t kLongestRun = std::int64_t{100} * 366 * 86'400 * 1'000'000'000;

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw std::runtime_error(path + ": " + reason);
}

std::string text_of_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) refuse(path, "is no file");
  if (std::filesystem::file_size(path, error) > kLargestFile) refuse(path, "is too large for notes");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file && !file.eof()) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  return text;
}

std::int64_t time_in(const json& note, const char* name, const std::string& path) {
  if (!note.contains(name) || !note[name].is_number_integer() ||
      (note[name].is_number_unsigned() && note[name].get<std::uint64_t>() > INT64_MAX) ||
      note[name].get<std::int64_t>() < -kLongestRun || note[name].get<std::int64_t>() > kLongestRun)
    refuse(path, std::string("a note's ") + name + " is no time in nanoseconds");
  return note[name].get<std::int64_t>();
}

Note note_from(const json& from, const std::string& path) {
  if (!from.is_object()) refuse(path, "a note is no object");
  Note note;
  note.begin_ns = time_in(from, "begin_ns", path);
  note.end_ns = from.contains("end_ns") ? time_in(from, "end_ns", path) : note.begin_ns;
  if (note.end_ns < note.begin_ns) refuse(path, "a note ends before it begins");
  for (const auto& [name, to] : {std::pair("id", &note.id), std::pair("text", &note.text)}) {
    if (!from.contains(name) || !from[name].is_string()) refuse(path, std::string("a note has no ") + name);
    *to = instrumentation::plain_line(from[name].get<std::string>());
  }
  if (note.id.empty() || note.id.size() > 64) refuse(path, "a note has no id");
  if (note.text.size() > kLongestNote * 4) refuse(path, "a note's text is too long");
  if (from.contains("rank")) {
    if (!from["rank"].is_number_unsigned() || from["rank"].get<std::uint64_t>() >= UINT32_MAX)
      refuse(path, "a note's rank is no number of a rank");
    note.rank = from["rank"].get<std::uint32_t>();
  }
  // A colour that this version does not know becomes `none`: the note is worth more than its colour.
  const auto named = from.find("colour");
  const std::string colour = named != from.end() && named->is_string() ? named->get<std::string>() : "none";
  const auto* const known = std::ranges::find(kNoteColours, colour);
  if (known != std::end(kNoteColours)) note.colour = static_cast<NoteColour>(known - kNoteColours);
  return note;
}

}  // namespace

std::string notes_path(const std::string& recording) { return recording + ".notes.json"; }

std::vector<Note> read_notes(const std::string& path, const std::string& run_id) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const json file = analysis::parse_foreign(text_of_file(path));
  if (file.is_discarded()) refuse(path, "is no JSON");
  const auto text = [&](const char* name) {
    return file.is_object() && file.contains(name) && file[name].is_string() ? file[name].get<std::string>()
                                                                             : std::string();
  };
  if (text("format") != kFormat || !file.contains("notes") || !file["notes"].is_array() ||
      !file.contains("version") || !file["version"].is_number_unsigned())
    refuse(path, "holds no notes of Shardscope");
  if (file["version"].get<std::uint64_t>() > kVersion) refuse(path, "was written by a newer version");
  if (text("run_id") != run_id) refuse(path, "has notes of another run");
  if (file["notes"].size() > kMostNotes) refuse(path, "has more notes than a run can have");
  std::vector<Note> out;
  std::set<std::string> ids;
  for (const json& note : file["notes"]) {
    out.push_back(note_from(note, path));
    if (!ids.insert(out.back().id).second) refuse(path, "has two notes with one id");
  }
  std::ranges::sort(out, {}, [](const Note& note) { return std::tie(note.begin_ns, note.end_ns, note.id); });
  return out;
}

void write_notes(const std::string& path, const std::string& run_id, const std::vector<Note>& notes) {
  json list = json::array();
  for (const Note& note : notes) {
    json one{{"id", note.id}, {"begin_ns", note.begin_ns}, {"text", note.text}};
    if (note.is_range()) one["end_ns"] = note.end_ns;
    if (note.rank) one["rank"] = *note.rank;
    if (note.colour != NoteColour::none) one["colour"] = kNoteColours[static_cast<std::size_t>(note.colour)];
    list.push_back(std::move(one));
  }
  const json file{{"format", kFormat}, {"version", kVersion}, {"run_id", run_id}, {"notes", list}};
  OutputFile out(path);
  out.stream() << analysis::to_text(file, 1) << '\n';
  out.commit();
}

}  // namespace shardscope::exporter
