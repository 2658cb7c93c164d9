// Checks that a file is a recording and opens it for reading. A damaged file is opened as far as possible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "app/store/database.h"
#include "app/store/recording_problems.h"

namespace shardscope::store {

class RecordingFile {
 public:
  /// Checks the file without SQLite. Throws std::runtime_error: path, reason, what to do.
  explicit RecordingFile(const std::string& path);
  /// Opens the file and limits SQLite's work on it. Refuses databases of other programs, versions that this
  /// program does not read, and schemas that no recording has. A log that cannot be read is added to
  /// `problems`. Throws as the constructor does.
  void open(Problems& problems);

  [[nodiscard]] const std::shared_ptr<Database>& database() const noexcept { return database_; }
  [[nodiscard]] std::int32_t format_version() const noexcept { return format_version_; }
  /// Whether the recorder had limits or wrote parts: the file has tables of sums, and may lack events.
  [[nodiscard]] bool keeps_a_part() const noexcept { return keeps_a_part_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< including the log

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
