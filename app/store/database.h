// RAII wrappers of an SQLite connection and its statements. Every failure throws DatabaseError with SQLite's
// message; callers add the path and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace shardscope::store {

class DatabaseError : public std::runtime_error {
 public:
  DatabaseError(int code_value, const std::string& text) : std::runtime_error(text), code(code_value) {}
  int code;  ///< SQLite result code
};

/// A prepared statement. Parameters are numbered from 1, columns from 0, as in SQLite.
class Statement {
 public:
  Statement() = default;
  Statement(sqlite3* database, std::string_view sql);

  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, double value);  ///< NaN is stored as NULL
  Statement& bind(int at, std::string_view text);
  Statement& bind(int at, std::span<const std::byte> bytes);
  /// Advances to the next row. False at the end; the statement is then reset and can be bound and run again.
  bool step();
  void run();    ///< step() to the end
  void reset();  ///< discards the remaining rows
  enum class Type : std::uint8_t { null, integer, real, text, bytes };
  [[nodiscard]] Type type(int column) const;  ///< of the value in the current row
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::span<const std::byte> bytes(int column) const;  ///< valid until step() or reset()

 private:
  void check(int code) const;
  struct Close {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  std::unique_ptr<sqlite3_stmt, Close> statement_;
};

class Database {
 public:
  enum class Access : std::uint8_t {
    create,
    read,
    read_as_is
  };  ///< read_as_is: no locks, no write-ahead log
  Database(const std::string& path, Access access);
  void execute(const std::string& sql);
  /// Makes a file that is shorter than its header states, or whose schema is partly damaged, readable as far
  /// as possible.
  void tolerate_damage();
  /// Limits the number of SQLite instructions from now on; beyond it every statement fails. nullopt: no
  /// limit.
  void limit_work(std::optional<std::uint64_t> instructions);
  /// Keeps close() from deleting the log by its name, which may by now belong to another file.
  void abandon_log() noexcept;
  /// Like execute(), but returns without an error if another connection's lock prevents it.
  void execute_unless_busy(const std::string& sql);
  [[nodiscard]] Statement prepare(std::string_view sql) { return {database_.get(), sql}; }
  [[nodiscard]] std::int64_t integer(
      std::string_view sql);  ///< first column of the first row; 0 without rows
  /// Whether a transaction is open; false after an error has rolled it back.
  [[nodiscard]] bool in_transaction() const noexcept;
  void close();  ///< throws DatabaseError if SQLite cannot close
  /// Disables automatic checkpoints. From now on each commit stores the length of the log for log_pages().
  void leave_log();
  /// Pages of the write-ahead log after the last commit. Pages that were already moved into the file count
  /// until they are overwritten.
  [[nodiscard]] int log_pages() const noexcept { return *log_pages_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept;
  };
  std::unique_ptr<std::uint64_t> work_left_ = std::make_unique<std::uint64_t>(0);
  std::unique_ptr<int> log_pages_ = std::make_unique<int>(0);  ///< written by SQLite; stays in place on move
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace shardscope::store
