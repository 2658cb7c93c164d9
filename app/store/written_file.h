// The file that a recorder writes, with its connection, lock and write-ahead log: from after the tables are
// created until the log is folded into the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/store/checkpointer.h"
#include "app/store/database.h"
#include "app/store/recording_lock.h"

namespace shardscope::store {

/// Creates a recording without events. `fill` adds to its tables in the same transaction. `before`: path of a
/// recording that is attached as `before` meanwhile; empty: none. Throws DatabaseError.
void make_recording_file(const std::string& path, const std::string& before,
                         const std::function<void(Database&)>& fill);

class WrittenFile {
 public:
  /// Opens a file made by make_recording_file(), takes its lock and switches it to a write-ahead log. Throws
  /// DatabaseError, and std::runtime_error if another recorder writes the file.
  explicit WrittenFile(const std::string& path);
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] Database& database() noexcept { return *database_; }
  void begin_if_needed();
  /// Commits the open transaction.
  void commit() { database_->execute("COMMIT"); }
  /// Call after commit() if more events may follow: moves a long log into the file.
  void committed() { checkpointer_->committed(*database_); }
  [[nodiscard]] bool is_in_place() const { return identity_of(place_) == identity_; }
  /// Throws std::runtime_error if the path now names another file or none.
  void check_place() const;
  /// Folds the log into the file and closes it, so that it can be copied and opened anywhere. If a reader has
  /// the file open at this moment, the log stays beside it and is read with it. Statements of the database
  /// other than statements() must have been destroyed. Throws DatabaseError.
  void close();

  struct Statements {
    explicit Statements(Database& database);
    Statement add_chunk, get_chunk, drop_chunk, add_block, add_levels, get_levels, add_tile, drop_tail,
        add_message, add_name, put_rank, put_tables;
  };
  [[nodiscard]] Statements& statements() noexcept { return *statements_; }

 private:
  /// Device and inode of the file that a path names; zero if there is none.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  static Identity identity_of(const std::string& path);

  std::string path_;
  std::string place_;  ///< absolute, independent of the working folder
  Identity identity_;
  RecordingLock lock_;  ///< released after `database_` has been closed
  std::optional<Database> database_;
  std::optional<Checkpointer> checkpointer_;  ///< destroyed before `database_`
  std::optional<Statements> statements_;
};

}  // namespace shardscope::store
