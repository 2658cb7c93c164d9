// Summary, findings and times of every step of a run, computed by a background thread: a long run is analysed
// as fast as by `summary` while the window keeps drawing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/gui/model/run_index.h"
#include "app/gui/model/turns.h"
#include "app/store/store.h"

namespace shardscope::gui {

using TimePartition = analysis::TimePartition;

/// Each rank's time partition in one step, computed as for the summary.
struct StepTimes {
  struct Rank {
    std::uint32_t rank = 0;
    TimePartition time;
  };
  std::uint32_t step = 0;
  std::vector<Rank> ranks;                   ///< in order of rank
  analysis::MicroBatchSums micro_batches{};  ///< sums over all ranks
};

/// Immutable once published to other threads.
struct Analysis {
  analysis::Summary summary;
  std::vector<analysis::Finding> findings;
  std::vector<analysis::Digest::Wait> longest_waits;
  std::vector<analysis::Digest::LongPiece> longest_pieces;
  std::vector<std::shared_ptr<const StepTimes>> step_times;  ///< in order of step
  std::shared_ptr<const analysis::Digest> digest;            ///< complete recordings only; for comparisons
  std::size_t steps = 0;                                     ///< number of steps analysed
  std::size_t evicted_steps = 0;                             ///< earlier steps, evicted (long live runs)
  std::size_t of_steps = 0;                                  ///< number of completed steps
  bool whole = false;                       ///< every step that all ranks have completed is included
  Completeness of = Completeness::growing;  ///< completeness of the run when it was analysed
  bool failed = false;                      ///< stopped early; reason: the last problem
  std::vector<std::string> problems;        ///< damage found, or why there is no analysis
  std::chrono::nanoseconds took{0};         ///< recordings: time since the analyst was started
};

class Analyst {
 public:
  /// Analyses a recording through a reader of its own; the window's store is not accessed.
  explicit Analyst(std::string path);
  /// Analyses a growing store, alternating with the drawing thread through `turns`; idle before the first
  /// look(). Both must outlive the analyst.
  Analyst(const store::Store& store, Turns& turns);
  ~Analyst();  ///< waits for one step of one rank at most
  Analyst(const Analyst&) = delete;
  Analyst& operator=(const Analyst&) = delete;

  /// Call after the store has changed or become complete.
  void look(Completeness completeness);
  /// Never null.
  [[nodiscard]] std::shared_ptr<const Analysis> latest() const;
  /// Waits until the data present at the last look() is analysed; false after `most`. No thread may hold a
  /// turn meanwhile.
  bool wait(std::chrono::milliseconds most) const;

 private:
  struct Work;
  void start();
  void run();
  void publish(std::shared_ptr<const Analysis> analysis, std::uint64_t answered);

  const std::string path_;
  const store::Store* const shared_ = nullptr;
  Turns* const turns_ = nullptr;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool stop_ = false;
  mutable bool run_now_ = false;            ///< wait() was called: results are published at once
  std::uint64_t asked_ = 0, answered_ = 0;  ///< number of look() calls: made, and covered by latest_
  Completeness completeness_ = Completeness::growing;
  std::shared_ptr<const Analysis> latest_ = std::make_shared<const Analysis>();
  std::thread thread_;
};

}  // namespace shardscope::gui
