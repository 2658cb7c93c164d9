#include "app/store/written_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <stdexcept>

#include "app/store/recording_schema.h"
#include "app/store/recording_summary.h"

namespace shardscope::store {

void make_recording_file(const std::string& path, const std::string& before,
                         const std::function<void(Database&)>& fill) {
  Database db(path, Database::Access::create);
  // Before the first events there is nothing to lose if the machine fails. The recorded programs start only
  // when the file exists, so waiting for the disk would delay them. make_next_part(), whose file holds
  // chunks, waits itself.
  db.execute("PRAGMA synchronous = OFF");
  // Small pages: each block leaves half a page empty on average in each of three tables.
  db.execute("PRAGMA page_size = 2048");
  db.execute("PRAGMA auto_vacuum = INCREMENTAL");
  if (!before.empty()) {
    Statement attach = db.prepare("ATTACH DATABASE ?1 AS before");
    attach.bind(1, before).run();
  }
  db.execute("BEGIN IMMEDIATE");
  db.execute("PRAGMA application_id = " + std::to_string(kRecordingApplicationId));
  db.execute("PRAGMA user_version = " + std::to_string(kWholeRecordingVersion));
  db.execute(kRecordingSchema);
  create_steps(db);
  db.execute("INSERT INTO meta VALUES('complete', 0)");
  fill(db);
  db.execute("COMMIT");
  if (!before.empty()) db.execute("DETACH DATABASE before");
  db.close();
}

WrittenFile::Statements::Statements(Database& db)
    : add_chunk(db.prepare("INSERT INTO chunks VALUES(?12, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")),
      get_chunk(db.prepare("SELECT bytes FROM chunks WHERE id = ?1")),
      drop_chunk(db.prepare("DELETE FROM chunks WHERE id = ?1")),
      add_block(db.prepare("INSERT INTO blocks VALUES(?1, ?2)")),
      add_levels(db.prepare("INSERT INTO levels VALUES(?1, ?2, ?3)")),
      get_levels(db.prepare("SELECT bytes FROM levels WHERE id = ?1")),
      add_tile(db.prepare("INSERT INTO tiles VALUES(?1, ?2)")),
      drop_tail(db.prepare("DELETE FROM tails WHERE rank = ?1")),
      add_message(db.prepare("INSERT INTO messages VALUES(NULL, ?1, ?2, ?3, ?4, ?5)")),
      add_name(db.prepare("INSERT OR REPLACE INTO names VALUES(?1, ?2, ?3, ?4)")),
      put_rank(db.prepare("INSERT OR REPLACE INTO ranks VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
                          "?12, ?13, ?14, ?15, ?16, ?17)")),
      put_tables(db.prepare("INSERT OR REPLACE INTO tables VALUES(?1, ?2, ?3)")) {}

WrittenFile::WrittenFile(const std::string& path)
    : path_(path),
      place_(std::filesystem::absolute(path)),
      identity_(identity_of(place_)),
      database_(std::in_place, path, Database::Access::create) {
  database_->execute("PRAGMA cache_size = -4096");
  lock_.take(path);
  // A write-ahead log makes commits cheap and does not block readers. The tables are already in the file
  // itself, so that a copy without the log can be opened. close() folds the log into the file.
  database_->execute("PRAGMA journal_mode = WAL");
  database_->execute("PRAGMA synchronous = NORMAL");
  database_->leave_log();
  checkpointer_.emplace(path);
  statements_.emplace(*database_);
}

WrittenFile::Identity WrittenFile::identity_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino};
}

void WrittenFile::begin_if_needed() {
  if (!database_->in_transaction()) database_->execute("BEGIN IMMEDIATE");
}

void WrittenFile::check_place() const {
  if (!is_in_place()) {
    throw std::runtime_error(
        "the file was removed or replaced while it was written, by another recording perhaps");
  }
}

void WrittenFile::close() {
  statements_.reset();
  checkpointer_.reset();
  // Returns pages that are free, mostly from joining chunks, to the file system.
  database_->execute("PRAGMA incremental_vacuum");
  database_->execute_unless_busy("PRAGMA wal_checkpoint(TRUNCATE)");
  database_->execute_unless_busy("PRAGMA journal_mode = DELETE");
  database_->close();
  database_.reset();
  lock_.release();
}

}  // namespace shardscope::store
