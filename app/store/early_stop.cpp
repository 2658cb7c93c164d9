#include "app/store/early_stop.h"

#include <exception>

namespace shardscope::store {

void EarlyStop::write(Database& database, Final final) {
  try {
    database.execute("BEGIN IMMEDIATE");
    database
        .prepare(
            "INSERT OR REPLACE INTO meta VALUES('stopped', ?1), ('stopped_ns', ?2), ('lacking', ?3), "
            "('recorder_ended', ?4)")
        .bind(1, why_)
        .bind(2, stopped_ns_)
        .bind(3, static_cast<std::int64_t>(received_ - committed_))
        .bind(4, std::int64_t{final == Final::yes})
        .run();
    database.execute("COMMIT");
    written_missing_ = received_ - committed_;
  } catch (const DatabaseError&) {
    if (database.in_transaction()) database.execute("ROLLBACK");
    throw;
  }
}

void EarlyStop::stopped(Database& database, const std::string& why) noexcept {
  try {
    why_ = why;
    stopped_ns_ = last_ns_;
    reserve_.release();
    try {
      write(database, Final::no);
    } catch (const DatabaseError&) {
      database.execute_unless_busy("PRAGMA wal_checkpoint(TRUNCATE)");
      write(database, Final::no);
    }
  } catch (const std::exception&) {  // see early_stop.h
  }
}

void EarlyStop::update(Database& database) noexcept {
  if (why_.empty() || received_ - committed_ < 2 * written_missing_) return;
  try {
    write(database, Final::no);
  } catch (const std::exception&) {
    written_missing_ = received_ - committed_;  // not tried again for every chunk
  }
}

void EarlyStop::recorder_ended(Database& database) noexcept {
  if (why_.empty()) return;
  try {
    write(database, Final::yes);
  } catch (const std::exception&) {
  }
}

}  // namespace shardscope::store
