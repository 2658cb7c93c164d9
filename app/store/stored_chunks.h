// The chunks of a recording, read from their rows: past damage, and with a gap for each that is damaged.
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
  /// As read() takes them.
  static const std::string kColumns;

  /// All of these outlive it. `file_bytes`: more rows than these could hold are not looked for.
  StoredChunks(Database& database, std::uint64_t file_bytes, EventsRead& read, Problems& problems)
      : database_(database), file_bytes_(file_bytes), read_(read), problems_(problems) {}

  /// One chunk, whose row has kColumns. What is wrong with it becomes a problem and, where its place is
  /// known, a gap.
  void read(Store& store, const Statement& row);
  /// In order of id, which is the order of arrival; `before(id)` is called before each. A row that SQLite
  /// cannot read is stepped over: the rows after it are tried one by one until one can be read again.
  void read_all(Store& store, const std::function<void(std::int64_t id)>& before);

 private:
  [[nodiscard]] std::int64_t last_id_known();

  Database& database_;
  std::uint64_t file_bytes_;
  EventsRead& read_;
  Problems& problems_;
  std::int64_t last_id_ = -1;
};

}  // namespace shardscope::store
