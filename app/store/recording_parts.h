// The files of a recording in parts: which there are, and what each says about itself and about the others.
// docs/recording.md, "Parts".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/database.h"
#include "app/store/rotation.h"

namespace shardscope::store {

/// What a part's table `meta` says of it.
struct PartIdentity {
  std::string series;            ///< random; the same in all parts of a recording
  std::uint32_t part = 0;        ///< from 1
  std::uint32_t first_part = 1;  ///< the oldest one that was there when this one was begun
  std::int64_t first_chunk =
      1;                  ///< smaller ids are of parts before it, or in table `moved` of the one before
  bool followed = false;  ///< the recorder went on in the next part
};
/// Nothing of a recording that is one file. Throws DatabaseError, and std::runtime_error where it is damaged.
[[nodiscard]] std::optional<PartIdentity> part_identity(Database& database);

/// A row of table `parts`: a part that has ended.
struct PartRow {
  std::uint32_t part = 0;
  std::string file;                       ///< its name, without a folder
  std::int64_t begin_ns = 0, end_ns = 0;  ///< its first and last event, collector clock
  std::uint64_t events = 0, bytes = 0;    ///< bytes: of its file when it ended, with its log
  std::string ended;                      ///< name_of(PartEnd)
};
inline constexpr const char* kPartsSchema =
    "CREATE TABLE parts(part INTEGER PRIMARY KEY, file TEXT, begin_ns INTEGER, end_ns INTEGER, "
    "events INTEGER, bytes INTEGER, ended TEXT);"
    "CREATE TABLE moved(id INTEGER PRIMARY KEY)";
void write_part_row(Database& database, const PartRow& row);
/// By number. Throws likewise.
[[nodiscard]] std::vector<PartRow> part_rows(Database& database);

/// The files that are named as parts of `recording` and lie beside it, oldest first. `unfinished`: those that
/// a recorder was making when it was killed, too. Whether they are of one series is not looked at.
enum class Unfinished : std::uint8_t { without, with };
struct NamedPart {
  std::string path;
  std::uint32_t part = 0;
};
[[nodiscard]] std::vector<NamedPart> parts_beside(const std::string& recording, Unfinished unfinished);
/// Makes `recording` a symbolic link to `part`, a file in its folder, in place of what it was. Throws
/// std::runtime_error.
void link_to_part(const std::string& recording, const std::string& part);

}  // namespace shardscope::store
