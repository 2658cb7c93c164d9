#include "app/store/next_part.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "app/store/recording_schema.h"
#include "app/store/written_file.h"

namespace shardscope::store {
namespace {

/// Tables copied into each part, so that the newest part alone has them for the whole run.
constexpr std::array kRepeated = {"run",      "models", "process_groups", "lane_names", "tables",
                                  "modules",  "params", "module_params",  "slices",     "ranks",
                                  "messages", "names",  "parts"};
/// Chunks that are not in a block yet. There are some at any time, since ranks complete blocks at different
/// times.
constexpr const char* kWithoutBlock =
    "SELECT id FROM {chunks} INDEXED BY chunks_by_time WHERE id NOT IN (SELECT id FROM {blocks})";

std::string without_block(const std::string& schema) {
  std::string out = kWithoutBlock;
  for (const char* table : {"chunks", "blocks"}) {
    const std::string place = "{" + std::string(table) + "}";
    out.replace(out.find(place), place.size(), schema + "." + table);
  }
  return out;
}

void wait_for_disk(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
  const int failed = ::fdatasync(file) == 0 ? 0 : errno;
  ::close(file);
  if (failed != 0) throw std::runtime_error(path + ": " + std::strerror(failed));
}

void write_identity(Database& database, const PartIdentity& identity) {
  Statement put = database.prepare("INSERT INTO meta VALUES(?1, ?2)");
  put.bind(1, "series").bind(2, identity.series).run();
  put.bind(1, "part").bind(2, std::int64_t{identity.part}).run();
  put.bind(1, "first_part").bind(2, std::int64_t{identity.first_part}).run();
  put.bind(1, "first_chunk").bind(2, identity.first_chunk).run();
}

}  // namespace

void begin_parts(Database& database, const PartIdentity& identity) {
  database.execute(kPartsSchema);
  write_identity(database, identity);
}

void write_tails(Database& database, std::span<const Block> tails) {
  Statement add = database.prepare("INSERT OR REPLACE INTO tails VALUES(?1, ?2, ?3)");
  for (const Block& tail : tails)
    add.bind(1, std::int64_t{tail.rank}).bind(2, tail.statuses).bind(3, encode_block(tail)).run();
}

void make_next_part(const std::string& path, const NextPart& next, SumsWriter& sums, const Store& store) {
  make_recording_file(path, next.before, [&](Database& database) {
    create_sums(database);
    begin_parts(database, next.identity);
    // All keys but those that belong to one part: its identity, its state, and how far its steps are.
    database.execute(
        "INSERT INTO meta SELECT key, value FROM before.meta WHERE key NOT IN "
        "('complete', 'series', 'part', 'first_part', 'first_chunk', 'followed', 'sum_steps_through')");
    for (const char* table : kRepeated) {
      std::string copy = "INSERT INTO ";
      copy.append(table).append(" SELECT * FROM before.").append(table);
      database.execute(copy);
    }
    if (database.integer("SELECT count(*) FROM before.sqlite_schema WHERE name = 'param_groups'") != 0) {
      database.execute(kParamGroupsSchema);
      database.execute("INSERT INTO param_groups SELECT * FROM before.param_groups");
    }
    write_part_row(database, next.ended);
    database.execute("INSERT INTO chunks SELECT * FROM before.chunks WHERE id IN (" +
                     without_block("before") + ")");
    write_tails(database, next.tails);
    sums.begin_part(database, store);
  });
  wait_for_disk(path);
}

void end_part(Database& database, const PartRow& ended, std::span<const Block> tails) {
  database.execute("INSERT INTO moved " + without_block("main"));
  write_tails(database, tails);
  write_part_row(database, ended);
  database.execute("INSERT INTO meta VALUES('followed', 1)");
}

}  // namespace shardscope::store
