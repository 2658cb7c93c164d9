// The file that a recorder writes: its connection, lock and log, from when its tables are there until it is
// one file again.
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

/// Creates a recording without events; `fill` adds to its tables in the same transaction. `before`: a
/// recording that is attached under this name meanwhile; empty: none. Throws DatabaseError.
void make_recording_file(const std::string& path, const std::string& before,
                         const std::function<void(Database&)>& fill);

class WrittenFile {
 public:
  /// Opens what make_recording_file() made, takes its lock and begins its log. Throws DatabaseError, and
  /// std::runtime_error where another process writes it.
  explicit WrittenFile(const std::string& path);
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] Database& database() noexcept { return *database_; }
  void begin_if_needed();
  /// Ends the open transaction.
  void commit() { database_->execute("COMMIT"); }
  /// After commit(), where more events may come: moves a long log into the file.
  void committed() { checkpointer_->committed(*database_); }
  [[nodiscard]] bool is_in_place() const { return identity_of(place_) == identity_; }
  /// Throws when the path names another file by now, or none: what is written is in no folder any more.
  void check_place() const;
  /// Folds the log into the file and closes it, so that it can be copied and opened anywhere, unless a reader
  /// has it open at this moment: then the log stays beside it, and the next one to open the file folds it in.
  /// No statement of the database may be left. Throws DatabaseError.
  void close();

  struct Statements {
    explicit Statements(Database& database);
    Statement add_chunk, get_chunk, drop_chunk, add_block, add_levels, get_levels, add_tile, drop_tail,
        add_message, add_name, put_rank, put_tables;
  };
  [[nodiscard]] Statements& statements() noexcept { return *statements_; }

 private:
  /// Which file a path names; nothing if none.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  static Identity identity_of(const std::string& path);

  std::string path_;
  std::string place_;  ///< the same wherever the program goes
  Identity identity_;
  RecordingLock lock_;  ///< until `database_` has closed
  std::optional<Database> database_;
  std::optional<Checkpointer> checkpointer_;  ///< gone before `database_` closes
  std::optional<Statements> statements_;
};

}  // namespace shardscope::store
