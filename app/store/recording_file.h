// A recording's file: found to be one, and opened for reading as far as it can be read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "app/store/database.h"
#include "app/store/recording_problems.h"

namespace shardscope::store {

class RecordingFile {
 public:
  /// Looks at the file without SQLite. Throws std::runtime_error: path, reason, what to do.
  explicit RecordingFile(const std::string& path);
  /// Opens it, refuses another program's database or another version, and limits what SQLite may do with it.
  /// A log that cannot be read is added to `problems`. Throws as the constructor does.
  void open(Problems& problems);

  [[nodiscard]] const std::shared_ptr<Database>& database() const noexcept { return database_; }
  [[nodiscard]] std::int32_t format_version() const noexcept { return format_version_; }
  /// Whether it has only a part of its run's events: there are sums of the rest.
  [[nodiscard]] bool keeps_a_part() const noexcept { return keeps_a_part_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< with its log

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  [[nodiscard]] std::uint64_t bytes_by_header() const;
  void connect(Database::Access access);
  void check_schema();
  [[nodiscard]] bool has_column(const std::string& table, const std::string& column) const;

  std::string path_;
  std::shared_ptr<Database> database_;
  std::int32_t format_version_ = 0;
  bool keeps_a_part_ = false;
  std::uint64_t bytes_ = 0, bytes_without_log_ = 0;
};

}  // namespace shardscope::store
