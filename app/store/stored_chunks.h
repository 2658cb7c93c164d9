// Reads the chunks of a recording from table `chunks`. Continues after damage; each damaged chunk becomes a
// gap.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/store/database.h"
#include "app/store/events_read.h"
#include "app/store/recording_problems.h"
#include "app/store/store.h"

namespace shardscope::store {

class StoredChunks {
 public:
  /// The columns that read() expects.
  static const std::string kColumns;

  /// The arguments must outlive this object. `file_bytes` bounds the number of rows that are tried.
  StoredChunks(Database& database, std::uint64_t file_bytes, EventsRead& read, Problems& problems)
      : database_(database), file_bytes_(file_bytes), read_(read), problems_(problems) {}

  /// Reads one chunk, whose row has kColumns. A damaged chunk is added to the problems and, if its position
  /// in its rank is known, becomes a gap.
  void read(Store& store, const Statement& row);
  /// Reads all chunks by id, which is the order of arrival; calls `before(id)` before each. Rows that SQLite
  /// cannot read are skipped: the next ids are tried one by one until a row can be read. Rows for which
  /// `elsewhere(id)` is true are also in another file; they are skipped here and read from there.
  void read_all(Store& store, const std::function<void(std::int64_t id)>& before,
                const std::function<bool(std::int64_t id)>& elsewhere);

 private:
  [[nodiscard]] std::int64_t last_id_known();

  Database& database_;
  std::uint64_t file_bytes_;
  EventsRead& read_;
  Problems& problems_;
  std::int64_t last_id_ = -1;
};

}  // namespace shardscope::store
