#include "app/store/database.h"

#include <sqlite3.h>

#include <cmath>
#include <cstring>
#include <utility>

namespace shardscope::store {
namespace {

constexpr int kBusyTimeoutMs = 3000;

/// The SQLite URI of a file, with reserved characters escaped.
std::string uri_of(const std::string& path, const char* query) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      const auto byte = static_cast<unsigned char>(c);
      uri += {'%', kHex[byte >> 4], kHex[byte & 0xFU]};
    } else {
      uri += c;
    }
  }
  return uri + query;
}

std::string words(sqlite3* database, int code) {
  if ((code & 0xFF) == SQLITE_INTERRUPT) return "reading it takes more work than a file of its size can need";
  std::string text = database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database);
  const int system = database == nullptr ? 0 : sqlite3_system_errno(database);
  const int primary = code & 0xFF;
  if (system != 0 && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR || primary == SQLITE_FULL)) {
    text += std::string(" (") + std::strerror(system) + ")";
  }
  return text;
}

/// Limits for files of unknown origin: above what any recording needs, and small enough for memory.
constexpr int kLongestValue = 512 << 20;
constexpr int kLongestStatement = 1 << 20;
constexpr int kMostColumns = 100;
constexpr int kMostInstructions = 100'000;
constexpr int kBetweenLooks = 1000;

void distrust(sqlite3* database) {
  for (const auto& [option, value] :
       {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1}, std::pair{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        std::pair{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, std::pair{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        std::pair{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}}) {
    sqlite3_db_config(database, option, value, nullptr);
  }
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(database, SQLITE_LIMIT_SQL_LENGTH, kLongestStatement);
  sqlite3_limit(database, SQLITE_LIMIT_COLUMN, kMostColumns);
  sqlite3_limit(database, SQLITE_LIMIT_VDBE_OP, kMostInstructions);
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
}

}  // namespace

void Statement::Close::operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }

Statement::Statement(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) throw DatabaseError(code, words(database, code));
  statement_.reset(statement);
}

void Statement::check(int code) const {
  if (code == SQLITE_OK) return;
  sqlite3* database = sqlite3_db_handle(statement_.get());
  throw DatabaseError(code, words(database, code));
}

Statement& Statement::bind(int at, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), at, value));
  return *this;
}

Statement& Statement::bind(int at, double value) {
  check(std::isnan(value) ? sqlite3_bind_null(statement_.get(), at)
                          : sqlite3_bind_double(statement_.get(), at, value));
  return *this;
}

Statement& Statement::bind(int at, std::string_view text) {
  // A null pointer would bind NULL; an empty string is a value.
  const char* data = text.data() == nullptr ? "" : text.data();
  check(sqlite3_bind_text64(statement_.get(), at, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(int at, std::span<const std::byte> bytes) {
  check(sqlite3_bind_blob64(statement_.get(), at, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  const std::string text = words(sqlite3_db_handle(statement_.get()), code);
  sqlite3_reset(statement_.get());
  throw DatabaseError(code, text);
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

Statement::Type Statement::type(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_INTEGER:
      return Type::integer;
    case SQLITE_FLOAT:
      return Type::real;
    case SQLITE_TEXT:
      return Type::text;
    case SQLITE_BLOB:
      return Type::bytes;
    default:
      return Type::null;
  }
}

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nan("");
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::span<const std::byte> Statement::bytes(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_.get(), column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? std::span<const std::byte>{} : std::span(data, size);
}

void Database::Close::operator()(sqlite3* database) const noexcept { sqlite3_close_v2(database); }

Database::Database(const std::string& path, Access access) {
  const int flags =
      access == Access::create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const std::string uri = uri_of(path, access == Access::read_as_is ? "?immutable=1" : "");
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(uri.c_str(), &database, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) throw DatabaseError(code, words(database, code));
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
  if (access != Access::create) distrust(database);
}

void Database::tolerate_damage() {
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  execute("PRAGMA writable_schema = ON");
}

void Database::limit_work(std::optional<std::uint64_t> instructions) {
  if (!instructions) return sqlite3_progress_handler(database_.get(), 0, nullptr, nullptr);
  *work_left_ = *instructions;
  sqlite3_progress_handler(
      database_.get(), kBetweenLooks,
      [](void* left) {
        auto& work = *static_cast<std::uint64_t*>(left);
        if (work < kBetweenLooks) return 1;
        work -= kBetweenLooks;
        return 0;
      },
      work_left_.get());
}

void Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw DatabaseError(code, words(database_.get(), code));
}

void Database::leave_log() {
  sqlite3_wal_hook(
      database_.get(),
      [](void* pages, sqlite3*, const char*, int in_log) {
        *static_cast<int*>(pages) = in_log;
        return SQLITE_OK;
      },
      log_pages_.get());
}

void Database::abandon_log() noexcept {
  int persist = 1;
  sqlite3_file_control(database_.get(), nullptr, SQLITE_FCNTL_PERSIST_WAL, &persist);
}

void Database::execute_unless_busy(const std::string& sql) {
  const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED) return;
  throw DatabaseError(code, words(database_.get(), code));
}

std::int64_t Database::integer(std::string_view sql) {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

bool Database::in_transaction() const noexcept {
  return database_ != nullptr && sqlite3_get_autocommit(database_.get()) == 0;
}

void Database::close() {
  sqlite3* database = database_.release();
  const int code = sqlite3_close(database);
  if (code == SQLITE_OK) return;
  const std::string text = words(database, code);
  sqlite3_close_v2(database);
  throw DatabaseError(code, text);
}

}  // namespace shardscope::store
