// A sound SQLite file with any values in any cells: the recording reader behind SQLite's own checks, which
// the target `recording` seldom passes. An input is a list of changes: table, column, row, type and value.
#include <sqlite3.h>

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/store/crc32.h"
#include "app/store/recording.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/read_all.h"
#include "tests/fuzz/sealed_chunk.h"
#include "tests/fuzz/seed_recording.h"
#include "tests/fuzz/take.h"

using namespace shardscope;

namespace {

struct Column {
  const char* table;
  const char* column;
};
constexpr std::array kColumns{
    Column{"chunks", "bytes"},     Column{"tables", "bytes"},    Column{"chunks", "id"},
    Column{"chunks", "rank"},      Column{"chunks", "sequence"}, Column{"tables", "rank"},
    Column{"tables", "crc"},       Column{"names", "name"},      Column{"names", "id"},
    Column{"names", "crc"},        Column{"messages", "text"},   Column{"messages", "at_ns"},
    Column{"messages", "crc"},     Column{"ranks", "host"},      Column{"ranks", "rank"},
    Column{"ranks", "gate_kind"},  Column{"ranks", "crc"},       Column{"meta", "value"},
    Column{"messages", "severity"}};

void apply(sqlite3* database, fuzz::Input& input) {
  const Column& column = kColumns[input.number<std::uint8_t>() % kColumns.size()];
  const auto row = input.number<std::uint8_t>();
  const auto type = input.number<std::uint8_t>();
  // Rows are counted, because not every table has a rowid.
  const std::string sql = std::string("UPDATE OR IGNORE ") + column.table + " SET " + column.column +
                          " = ?1 WHERE (SELECT count(*) FROM " + column.table + " AS other WHERE other." +
                          column.column + " < " + column.table + "." + column.column + ") = ?2";
  sqlite3_stmt* statement = nullptr;
  fuzz::must(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
  sqlite3_bind_int(statement, 2, row % 4);
  std::vector<std::byte> sealed;
  switch (type % 5) {
    case 0:
      sqlite3_bind_int64(statement, 1, input.number<std::int64_t>());
      break;
    case 1:
      sqlite3_bind_double(statement, 1, input.number<double>());
      break;
    case 2: {
      const std::string_view text = input.block();
      sqlite3_bind_text(statement, 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
      break;
    }
    case 3:
      sealed = fuzz::sealed_chunk(input.block());
      sqlite3_bind_blob(statement, 1, sealed.data(), static_cast<int>(sealed.size()), SQLITE_TRANSIENT);
      break;
    default:
      sqlite3_bind_null(statement, 1);
  }
  sqlite3_step(statement);  // a constraint may refuse it
  sqlite3_finalize(statement);
}

/// As docs/recording.md says how a table's checksum is made; or nothing behind it would be reached.
void crc_of_tables(sqlite3_context* context, int, sqlite3_value** values) {
  const auto* const bytes = static_cast<const std::byte*>(sqlite3_value_blob(values[0]));
  sqlite3_result_int64(context,
                       store::crc32c(bytes, static_cast<std::size_t>(sqlite3_value_bytes(values[0]))));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ScratchPath file(".rows.zscope");
  static const std::string sound = fuzz::seed_recording(file.path());
  fuzz::write_file(file.path(), sound);
  sqlite3* database = nullptr;
  fuzz::must(sqlite3_open(file.path().c_str(), &database) == SQLITE_OK);
  sqlite3_exec(database, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", nullptr, nullptr, nullptr);
  sqlite3_create_function(database, "crc_of_tables", 1, SQLITE_UTF8, nullptr, crc_of_tables, nullptr,
                          nullptr);
  fuzz::Input input(data, size);
  for (int changes = 0; changes < 8 && !input.empty(); ++changes) apply(database, input);
  if (size % 2 == 0)
    sqlite3_exec(database, "UPDATE tables SET crc = crc_of_tables(bytes)", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  try {
    store::RecordingInfo info;
    fuzz::read_all(store::open_recording(file.path(), &info));
  } catch (const std::runtime_error&) {
  }
  return 0;
}
