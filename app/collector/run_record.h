// The way of a run's events from its ranks to the recording and the viewers' log: gathered by rank, cut into
// chunks, handed to the recorder. Knows how much has arrived and is not recorded, and sheds what is too much.
// Called by the collector's thread.
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
  /// `intake_bytes` of the options bounds what has arrived and is not recorded. `board` must outlive it.
  RunRecord(const CollectorOptions& options, StatusBoard& board)
      : sink_(options.record_path, options.view_log), intake_limit_(options.intake_bytes), board_(board) {}

  /// Its read() and log() are for every thread; the rest belongs to the recorder.
  [[nodiscard]] RunSink& sink() noexcept { return sink_; }
  /// The recorder's thread begins. `notify`: as Recorder's.
  void begin(std::function<void()> notify) { recorder_.emplace(sink_, std::move(notify)); }
  /// From begin() on.
  [[nodiscard]] Recorder& recorder() noexcept { return *recorder_; }

  /// What is pending of it becomes chunks, one or all.
  void flush(RankSession& rank);
  void flush_all(RankSession& rank) {
    while (rank.pending()) flush(rank);
  }
  /// Carries out `change`, which may change how much of a rank is pending.
  template <typename Change>
  void pending(RankSession& rank, Change change) {
    const std::size_t before = rank.pending_bytes();
    change();
    pending_bytes_ += rank.pending_bytes() - before;
  }
  /// Events of a batch that a rank has published. Their storage is kept for the next to be decoded into.
  void add(RankSession& rank, wire::Batch& batch, double now_s);
  [[nodiscard]] std::vector<instrumentation::Event> take_batch_storage() noexcept {
    return std::move(batch_storage_);
  }
  /// Hands over what is pending, however young it is, as far as the recorder has room: with many ranks chunks
  /// grow old, and the memory that they wait in is bounded.
  void hand_over(RankTable& ranks, double now_s);
  /// Sheds what is pending, lowest detail first, until the rest is within the limit. Steps and watermarks of
  /// memory stay, so it may not get there. Returns how many events are gone, and counts them in the status.
  std::uint64_t shed(RankTable& ranks, double now_s);

  /// Arrived and not recorded.
  [[nodiscard]] std::size_t bytes() const noexcept { return pending_bytes_ + recorder_->queued_bytes(); }
  /// What is pending takes half the limit, however young it is: it is to be handed over before it is shed.
  [[nodiscard]] bool crowded() const noexcept { return pending_bytes_ > intake_limit_ / 2; }
  /// The recorder is behind by the limit.
  [[nodiscard]] bool full() const noexcept { return bytes() > intake_limit_; }
  /// The recorder takes chunks at once. Else they wait here, where they can still be shed.
  [[nodiscard]] bool has_room() const noexcept { return recorder_->queued_bytes() < intake_limit_ / 4; }
  /// Beyond it counters of ranks wait.
  [[nodiscard]] bool far_behind() const noexcept { return recorder_->queued_bytes() > intake_limit_ / 2; }

 private:
  RunSink sink_;
  std::optional<Recorder> recorder_;
  std::size_t intake_limit_;
  StatusBoard& board_;
  std::size_t pending_bytes_ = 0;  ///< of all ranks' events that the recorder has not got yet
  std::vector<instrumentation::Event> batch_storage_;
};

}  // namespace shardscope::collector
