// Destination of a run's data: the collector's own store, the recording and the viewers' log. Each item is
// added once and reaches all three, in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "app/collector/held_chunks.h"
#include "app/collector/item_log.h"
#include "app/collector/view_log.h"
#include "app/store/chunk.h"
#include "app/store/recording.h"
#include "app/store/store.h"
#include "instrumentation/host_clock.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

namespace wire = instrumentation::wire;

/// Used by one thread, the recorder's, but for read(), log() and take_warning().
class RunSink {
 public:
  /// `record_path`: the log's temporary file is created in its folder; empty: there will be no recording.
  explicit RunSink(const std::string& record_path, ViewLogLimits limits = {});
  /// Throws what store::RecordingWriter throws.
  void open_recording(const std::string& path, const store::Retention& retention = {},
                      const instrumentation::HostClock& clock = {}, const store::Rotation& rotation = {});

  void tables(const wire::Header& from, const wire::Tables& tables);
  void name(std::uint32_t rank, const wire::Name& name);
  /// Viewers can fetch it at once; it is recorded by the second commit() from here on. May move from `chunk`.
  void chunk(store::Chunk& chunk);
  void rank(const store::RankRow& row);  ///< viewers get rows in each reply, not from the log
  /// `at_ns`: collector clock.
  void message(std::uint32_t rank, std::int64_t at_ns, instrumentation::Severity severity,
               const std::string& text);

  /// Makes the recording keep the interval around it: store::RecordingWriter::keep().
  void keep(store::Moment moment);
  [[nodiscard]] bool recording() const noexcept { return recording_ != nullptr; }
  /// Makes everything recorded so far durable. Returns the error that stopped the recording; empty: none.
  std::string commit();
  /// A warning about the recording that is to be shown once; empty: none. It is among the messages already.
  /// From any thread.
  [[nodiscard]] std::string take_warning();
  /// Completes and closes the recording, if there is one. Returns its error; empty: none.
  std::string finish();

  [[nodiscard]] const ViewLog& log() const noexcept { return log_; }  ///< for any thread
  /// Runs `reader` with the store (of totals) while nothing changes it. From any thread.
  void read(const std::function<void(const store::Store&)>& reader) const;

 private:
  ViewLog log_;
  /// Tables of the first rank received: viewers get the lists of modules, parameters and slices only once.
  std::optional<instrumentation::RunTables> whole_;
  std::map<std::uint32_t, std::uint32_t> tables_crc_;  ///< by rank, of the tables received last
  std::unique_ptr<store::RecordingWriter> recording_;
  instrumentation::HostClock clock_;  ///< the collector's
  HeldChunks held_;
  std::mutex warning_mutex_;
  std::string warning_;
  mutable std::mutex store_mutex_;  ///< `store_`; written by the recorder's thread only
  /// A run may last for days: the recording and the log contain the events, this store only totals.
  store::Store store_{store::Keep::totals};
};

}  // namespace shardscope::collector
