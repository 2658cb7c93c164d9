// The path of a run's events from its ranks to the recording and the viewers' log: collected by rank, cut
// into chunks, queued for the recorder. Counts bytes received and not recorded, and sheds events beyond the
// limit. Called by the collector's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/collector/collector.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"
#include "app/collector/recorder.h"
#include "app/collector/run_sink.h"
#include "app/collector/status_board.h"

namespace shardscope::collector {

class RunRecord {
 public:
  /// `intake_bytes` of the options bounds events received and not recorded. `board` must outlive this.
  RunRecord(const CollectorOptions& options, StatusBoard& board)
      : sink_(options.record_path, options.view_log), intake_limit_(options.intake_bytes), board_(board) {}

  /// Its read() and log() are for every thread, the rest is for the recorder only.
  [[nodiscard]] RunSink& sink() noexcept { return sink_; }
  /// Starts the recorder's thread. `notify`: as Recorder's.
  void begin(std::function<void()> notify) { recorder_.emplace(sink_, std::move(notify)); }
  /// Only after begin().
  [[nodiscard]] Recorder& recorder() noexcept { return *recorder_; }

  /// Turns the rank's pending events into chunks, one or all.
  void flush(RankSession& rank);
  void flush_all(RankSession& rank) {
    while (rank.pending()) flush(rank);
  }
  /// Runs `change`, which may change the rank's pending events, and updates their total.
  template <typename Change>
  void pending(RankSession& rank, Change change) {
    const std::size_t before = rank.pending_bytes();
    change();
    pending_bytes_ += rank.pending_bytes() - before;
  }
  /// Adds the events of a rank's batch. Keeps their storage for decoding the next batch.
  void add(RankSession& rank, wire::Batch& batch, double now_s);
  [[nodiscard]] std::vector<instrumentation::Event> take_batch_storage() noexcept {
    return std::move(batch_storage_);
  }
  /// Queues pending events for the recorder, whatever their age, as far as it has room: with many ranks
  /// chunks may grow old, and their memory is bounded.
  void hand_over(RankTable& ranks, double now_s);
  /// Sheds pending events, lowest detail first, until an eighth of the limit is free. Steps and memory
  /// watermarks stay, so it may not get there. Returns the number shed, and adds it to the status.
  std::uint64_t shed(RankTable& ranks, double now_s);

  /// Bytes received and not recorded.
  [[nodiscard]] std::size_t bytes() const noexcept { return pending_bytes_ + recorder_->queued_bytes(); }
  /// Pending events exceed half the limit: hand_over() them, whatever their age, before they are shed.
  [[nodiscard]] bool crowded() const noexcept { return pending_bytes_ > intake_limit_ / 2; }
  /// Pending and queued events exceed the limit.
  [[nodiscard]] bool full() const noexcept { return bytes() > intake_limit_; }
  /// The recorder's queue has room. Else chunks wait here, where they can still be shed.
  [[nodiscard]] bool has_room() const noexcept { return recorder_->queued_bytes() < intake_limit_ / 4; }
  /// The recorder is behind by half the limit: rows of counters wait.
  [[nodiscard]] bool far_behind() const noexcept { return recorder_->queued_bytes() > intake_limit_ / 2; }

 private:
  RunSink sink_;
  std::optional<Recorder> recorder_;
  std::size_t intake_limit_;
  StatusBoard& board_;
  std::size_t pending_bytes_ = 0;  ///< of all ranks' events not queued for the recorder yet
  std::vector<instrumentation::Event> batch_storage_;
};

}  // namespace shardscope::collector
