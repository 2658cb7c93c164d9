// The files of a recording in parts: their names, and what each stores about itself and the other parts.
// docs/recording.md, "Parts".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/database.h"
#include "app/store/rotation.h"

namespace shardscope::store {

/// Identity of a part, from its table `meta`.
struct PartIdentity {
  std::string series;            ///< random; the same in all parts of a recording
  std::uint32_t part = 0;        ///< from 1
  std::uint32_t first_part = 1;  ///< the oldest part kept when this one was begun
  std::int64_t first_chunk =
      1;                  ///< smaller ids belong to earlier parts, or are in `moved` of the previous one
  bool followed = false;  ///< the recorder has begun the next part
};
/// nullopt for a recording that is one file. Throws DatabaseError, and std::runtime_error if a value is
/// damaged.
[[nodiscard]] std::optional<PartIdentity> part_identity(Database& database);

/// A row of table `parts`: a part that has ended.
struct PartRow {
  std::uint32_t part = 0;
  std::string file;                       ///< its name, without a folder
  std::int64_t begin_ns = 0, end_ns = 0;  ///< first and last event, collector clock
  std::uint64_t events = 0, bytes = 0;    ///< bytes: size when it ended, pages in the log included
  std::string ended;                      ///< name_of(PartEnd)
};
inline constexpr const char* kPartsSchema =
    "CREATE TABLE parts(part INTEGER PRIMARY KEY, file TEXT, begin_ns INTEGER, end_ns INTEGER, "
    "events INTEGER, bytes INTEGER, ended TEXT);"
    "CREATE TABLE moved(id INTEGER PRIMARY KEY)";
void write_part_row(Database& database, const PartRow& row);
/// Sorted by part number. Throws as part_identity() does.
[[nodiscard]] std::vector<PartRow> part_rows(Database& database);

/// Files in the folder of `recording` that have the name of one of its parts, sorted by part number.
/// `unfinished`: whether to include parts that a recorder was making when it was killed. Only names are
/// compared, not the series.
enum class Unfinished : std::uint8_t { without, with };
struct NamedPart {
  std::string path;
  std::uint32_t part = 0;
};
[[nodiscard]] std::vector<NamedPart> parts_beside(const std::string& recording, Unfinished unfinished);
/// Replaces `recording` by a symbolic link to `part`, a file in the same folder. Throws std::runtime_error.
void link_to_part(const std::string& recording, const std::string& part);

}  // namespace shardscope::store
