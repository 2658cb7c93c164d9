// The data that viewers fetch, appended by the recorder's thread and read by the collector's thread: tables
// and names, which a late viewer needs first, and the log of everything else.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "app/collector/item_log.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

/// Thread-safe.
class ViewLog {
 public:
  /// `folder`: for the log's temporary file; `limits`: of the log.
  explicit ViewLog(std::string folder, ViewLogLimits limits = {}) : log_(std::move(folder), limits) {}

  void append(instrumentation::wire::ViewItem item);
  /// Adds tables, which replace those of their rank for later viewers; equal ones are ignored. Returns
  /// whether they were new. `bare`: the tables without modules, parameters and slices, stored instead of
  /// them once others replace them.
  bool add_tables(instrumentation::wire::ViewItem item, std::vector<std::uint8_t> bare);
  void add_name(instrumentation::wire::ViewItem item);

  struct Ends {
    std::uint64_t statics = 0, log = 0;
  };
  [[nodiscard]] Ends ends() const;
  /// Adds to `reply` the next items for a viewer at these cursors, about `bytes` of them, and sets the
  /// reply's cursors behind the last one.
  void read(std::uint64_t static_cursor, std::uint64_t cursor, std::size_t bytes, std::size_t items,
            instrumentation::wire::ViewReply& reply) const;
  /// Bytes of payload held in memory.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  mutable std::mutex mutex_;
  ItemLog log_;
  std::vector<instrumentation::wire::ViewItem> statics_;
  std::size_t statics_bytes_ = 0;
  struct Tables {
    std::size_t at = 0;  ///< index in `statics_`
    std::vector<std::uint8_t> bare;
  };
  std::map<std::uint32_t, Tables> tables_at_;  ///< by rank
};

}  // namespace shardscope::collector
