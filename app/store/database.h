// A thin owner of an SQLite connection and its statements. Every failure throws DatabaseError with
// SQLite's own words; the callers add which file and what to do.
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
  /// Next row; false at the end, after which the statement can be bound and run again.
  bool step();
  void run();    ///< step() to the end
  void reset();  ///< forgets the rest of the rows
  enum class Type : std::uint8_t { null, integer, real, text, bytes };
  [[nodiscard]] Type type(int column) const;  ///< of the value in this row
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
  /// A file that ends before its header says, or whose schema is damaged in part, is read as far as it goes.
  void tolerate_damage();
  /// Limits SQLite's instructions from now on, or removes the limit: beyond it every statement fails.
  void limit_work(std::optional<std::uint64_t> instructions);
  /// close() will not delete the log by its name: that may be the log of another file by now.
  void abandon_log() noexcept;
  /// Leaves undone what another connection's lock forbids now.
  void execute_unless_busy(const std::string& sql);
  [[nodiscard]] Statement prepare(std::string_view sql) { return {database_.get(), sql}; }
  [[nodiscard]] std::int64_t integer(
      std::string_view sql);  ///< first column of the first row; 0 without rows
  /// In a transaction that has not been rolled back by an error.
  [[nodiscard]] bool in_transaction() const noexcept;
  void close();  ///< throws if something could not be written
  /// From here on nothing is moved from the write-ahead log to the file by itself, and each commit notes how
  /// long the log is.
  void leave_log();
  /// Pages of the write-ahead log after the last commit: those that are not in the file yet, and those that
  /// are but have not been written over.
  [[nodiscard]] int log_pages() const noexcept { return *log_pages_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept;
  };
  std::unique_ptr<std::uint64_t> work_left_ = std::make_unique<std::uint64_t>(0);
  std::unique_ptr<int> log_pages_ = std::make_unique<int>(0);  ///< written by SQLite, wherever this is moved
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace shardscope::store
