#include "app/store/last_words.h"

#include <exception>

namespace shardscope::store {

void LastWords::write(Database& database, Last last) {
  try {
    database.execute("BEGIN IMMEDIATE");
    database
        .prepare(
            "INSERT OR REPLACE INTO meta VALUES('stopped', ?1), ('stopped_ns', ?2), ('lacking', ?3), "
            "('recorder_ended', ?4)")
        .bind(1, why_)
        .bind(2, stopped_ns_)
        .bind(3, static_cast<std::int64_t>(taken_ - committed_))
        .bind(4, std::int64_t{last == Last::yes})
        .run();
    database.execute("COMMIT");
    said_ = taken_ - committed_;
  } catch (const DatabaseError&) {
    if (database.in_transaction()) database.execute("ROLLBACK");
    throw;
  }
}

void LastWords::say_why(Database& database, const std::string& why) noexcept {
  try {
    why_ = why;
    stopped_ns_ = last_ns_;
    reserve_.release();
    try {
      write(database, Last::no);
    } catch (const DatabaseError&) {
      database.execute_unless_busy("PRAGMA wal_checkpoint(TRUNCATE)");
      write(database, Last::no);
    }
  } catch (const std::exception&) {  // as the header says
  }
}

void LastWords::say_more(Database& database) noexcept {
  if (why_.empty() || taken_ - committed_ < 2 * said_) return;
  try {
    write(database, Last::no);
  } catch (const std::exception&) {
    said_ = taken_ - committed_;  // is not tried for every chunk
  }
}

void LastWords::say_all(Database& database) noexcept {
  if (why_.empty()) return;
  try {
    write(database, Last::yes);
  } catch (const std::exception&) {
  }
}

}  // namespace shardscope::store
