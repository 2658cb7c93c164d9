#include "app/store/recording_parts.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>

#include "instrumentation/possible_time.h"

namespace shardscope::store {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::optional<PartIdentity> part_identity(Database& database) {
  Statement rows = database.prepare(
      "SELECT key, value FROM meta WHERE key IN ('series', 'part', 'first_part', 'first_chunk', 'followed')");
  PartIdentity out;
  const auto number = [&](std::int64_t least) {
    const std::int64_t value = rows.integer(1);
    if (value < least || value > UINT32_MAX) throw std::runtime_error("what it says of its part is damaged");
    return static_cast<std::uint32_t>(value);
  };
  while (rows.step()) {
    const std::string key = rows.text(0);
    if (key == "series") out.series = rows.text(1);
    if (key == "part") out.part = number(1);
    if (key == "first_part") out.first_part = number(1);
    if (key == "first_chunk") out.first_chunk = rows.integer(1);
    if (key == "followed") out.followed = rows.integer(1) == 1;
  }
  if (out.series.empty()) return std::nullopt;
  if (out.part == 0 || out.first_part > out.part)
    throw std::runtime_error("what it says of its part is damaged");
  return out;
}

void write_part_row(Database& database, const PartRow& row) {
  Statement put = database.prepare("INSERT OR REPLACE INTO parts VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  put.bind(1, std::int64_t{row.part}).bind(2, row.file).bind(3, row.begin_ns).bind(4, row.end_ns);
  put.bind(5, static_cast<std::int64_t>(row.events)).bind(6, static_cast<std::int64_t>(row.bytes));
  put.bind(7, row.ended).run();
}

std::vector<PartRow> part_rows(Database& database) {
  std::vector<PartRow> out;
  Statement rows =
      database.prepare("SELECT part, file, begin_ns, end_ns, events, bytes, ended FROM parts ORDER BY part");
  while (rows.step()) {
    if (rows.integer(0) < 1 || rows.integer(0) > UINT32_MAX || !instrumentation::is_time(rows.integer(2)) ||
        !instrumentation::is_time(rows.integer(3)) || rows.integer(4) < 0 || rows.integer(5) < 0)
      throw std::runtime_error("a row of table parts is damaged");
    out.push_back({.part = static_cast<std::uint32_t>(rows.integer(0)),
                   .file = rows.text(1),
                   .begin_ns = rows.integer(2),
                   .end_ns = rows.integer(3),
                   .events = static_cast<std::uint64_t>(rows.integer(4)),
                   .bytes = static_cast<std::uint64_t>(rows.integer(5)),
                   .ended = rows.text(6)});
  }
  return out;
}

std::vector<NamedPart> parts_beside(const std::string& recording, Unfinished unfinished) {
  constexpr std::string_view kNew = ".new";
  std::vector<NamedPart> out;
  const fs::path whole(recording);
  const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  const std::string own = whole.filename().string();
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.ends_with(kNew)) {
      if (unfinished == Unfinished::without) continue;
      name.resize(name.size() - kNew.size());
    }
    const std::optional<PartName> part = part_name(name);
    if (part && part->recording == own) out.push_back({at->path().string(), part->part});
  }
  std::ranges::sort(out, {}, [](const NamedPart& part) { return std::tie(part.part, part.path); });
  return out;
}

void link_to_part(const std::string& recording, const std::string& part) {
  // Atomic: a reader that opens the recording finds either the previous part or this one.
  const std::string made = recording + ".link";
  std::error_code error;
  fs::remove(made, error);
  fs::create_symlink(fs::path(part).filename(), made, error);
  if (!error) fs::rename(made, recording, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(made, ignored);
  throw std::runtime_error("cannot make it a symbolic link to " + fs::path(part).filename().string() + ": " +
                           error.message() + "; choose a folder whose file system has such links");
}

}  // namespace shardscope::store
