#include "app/store/recording_file.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "app/store/recording_schema.h"
#include "app/store/schema_check.h"
#include "runtime/base/open_file.h"

namespace shardscope::store {
namespace {

constexpr int kCorrupt = 11;  ///< SQLITE_CORRUPT

/// Limit of SQLite's instructions: far more than reading every row several times needs. Without it, reading a
/// damaged file whose pages form a cycle would not end.
std::uint64_t work_of(std::uint64_t file_bytes) {
  constexpr std::uint64_t kPerByte = 16, kAtLeast = 1'000'000;
  return kPerByte * file_bytes + kAtLeast;
}

}  // namespace

void RecordingFile::refuse(const std::string& why) const {
  throw std::runtime_error("recording " + path_ + ": " + why);
}

RecordingFile::RecordingFile(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (!fs::exists(status)) refuse("no such file");
  if (fs::is_directory(status)) refuse("is a folder, not a recording");
  try {
    ::close(base::open_file(path_));
  } catch (const base::FileError& why) {
    refuse(why.what());
  }
  std::ifstream file(path_, std::ios::binary);
  char head[16] = {};
  file.read(head, sizeof head);
  if (file.gcount() == 0) refuse("is empty: nothing was committed to it");
  if (std::memcmp(head, "SQLite format 3", sizeof head) != 0)
    refuse("is not a Shardscope recording (*.zscope)");
  bytes_ = bytes_without_log_ = fs::file_size(path_, error);
  // While a run is recorded, or after a crash, most of the data may be in the log.
  const std::uintmax_t log = fs::file_size(path_ + "-wal", error);
  if (!error) bytes_ += log;
}

/// Size of the SQLite file according to its header; 0 if the header has none.
std::uint64_t RecordingFile::bytes_by_header() const {
  std::array<unsigned char, 32> head{};
  std::ifstream(path_, std::ios::binary).read(reinterpret_cast<char*>(head.data()), sizeof head);
  const std::uint64_t page = std::uint64_t{head[16]} << 8U | head[17];
  const std::uint64_t pages = std::uint64_t{head[28]} << 24U | std::uint64_t{head[29]} << 16U |
                              std::uint64_t{head[30]} << 8U | head[31];
  return (page == 1 ? 65536 : page) * pages;
}

void RecordingFile::open(Problems& problems) {
  try {
    connect(Database::Access::read);
  } catch (const DatabaseError& first) {
    // The log cannot be read (read-only folder): the file alone is an older but consistent state.
    try {
      connect(Database::Access::read_as_is);
      problems.add(std::string("the write-ahead log beside the file could not be read (") + first.what() +
                   "); what is not in the file itself is missing");
    } catch (const DatabaseError& second) {
      if (const std::uint64_t whole = bytes_by_header(); whole > bytes_without_log_) {
        refuse("is cut off: " + std::to_string(bytes_without_log_) + " of " + std::to_string(whole) +
               " bytes are there, too few to read anything of it; look for a whole copy");
      }
      refuse(std::string("cannot be read: ") + second.what() + "; the beginning of the file is damaged");
    }
  }
}

void RecordingFile::connect(Database::Access access) {
  database_ = std::make_shared<Database>(path_, access);
  database_->limit_work(work_of(bytes_));
  if (bytes_by_header() > bytes_without_log_) database_->tolerate_damage();
  try {
    check_schema();
  } catch (const DatabaseError& error) {
    if ((error.code & 0xFF) != kCorrupt) throw;
    database_->tolerate_damage();
    check_schema();
  }
}

void RecordingFile::check_schema() {
  if (database_->integer("PRAGMA application_id") != kRecordingApplicationId) {
    refuse("is an SQLite database but not a Shardscope recording");
  }
  format_version_ = static_cast<std::int32_t>(database_->integer("PRAGMA user_version"));
  if (format_version_ > kRecordingVersion) {
    refuse("has format version " + std::to_string(format_version_) + ", this program reads up to " +
           std::to_string(kRecordingVersion) + "; update Shardscope");
  }
  // Checks a column as well, not the version alone: if only the version number was altered, the file is still
  // read.
  if (format_version_ < kWholeRecordingVersion && !has_column("ranks", "exit_message")) {
    refuse("has format version " + std::to_string(format_version_) +
           ", of before the first release; this program reads " + std::to_string(kWholeRecordingVersion) +
           " and " + std::to_string(kRecordingVersion) + ": record the run again");
  }
  keeps_a_part_ = has_column("sums", "bytes");
  if (const std::string foreign = foreign_object(*database_); !foreign.empty()) {
    refuse(foreign + ", which no recording has: reading it might never end; do not use this file");
  }
}

bool RecordingFile::has_column(const std::string& table, const std::string& column) const {
  return database_->integer("SELECT count(*) FROM pragma_table_info('" + table + "') WHERE name = '" +
                            column + "'") != 0;
}

}  // namespace shardscope::store
