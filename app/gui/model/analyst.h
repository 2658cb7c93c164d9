// What is derived from every step of a run - summary, findings, time of each step - made by a thread of its
// own, so that a long run is analysed as fast as `summary` does it while the window draws what is there.
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

/// The partition of time of each rank in one step, as the summary takes it.
struct StepTimes {
  struct Rank {
    std::uint32_t rank = 0;
    TimePartition time;
  };
  std::uint32_t step = 0;
  std::vector<Rank> ranks;                   ///< by rank
  analysis::MicroBatchSums micro_batches{};  ///< of all ranks
};

/// Never changed once another thread can see it.
struct Analysis {
  analysis::Summary summary;
  std::vector<analysis::Finding> findings;
  std::vector<analysis::Digest::Wait> longest_waits;
  std::vector<analysis::Digest::LongPiece> longest_pieces;
  std::vector<std::shared_ptr<const StepTimes>> step_times;  ///< by step
  std::shared_ptr<const analysis::Digest> digest;  ///< of a recording, once it is whole; for comparisons
  std::size_t steps = 0;                           ///< that the figures are of
  std::size_t evicted_steps = 0;                   ///< steps before these, of a long live run
  std::size_t of_steps = 0;                        ///< that had ended
  bool whole = false;                              ///< every step is in it that every rank has completed
  Completeness of = Completeness::growing;         ///< the run as it was analysed
  bool failed = false;                             ///< it has ended before: the last problem says why
  std::vector<std::string> problems;               ///< damage found on the way, or why there is no analysis
  std::chrono::nanoseconds took{0};                ///< of a recording: from its opening to this analysis
};

class Analyst {
 public:
  /// Analyses a recording, through a reader of its own: the window's store is never touched.
  explicit Analyst(std::string path);
  /// Analyses a store that grows, in turns with the thread that draws it; nothing happens before the first
  /// look(). Both must live longer.
  Analyst(const store::Store& store, Turns& turns);
  ~Analyst();  ///< waits for a step of a rank at most
  Analyst(const Analyst&) = delete;
  Analyst& operator=(const Analyst&) = delete;

  /// The store has changed, or is complete now.
  void look(Completeness completeness);
  /// Never null.
  [[nodiscard]] std::shared_ptr<const Analysis> latest() const;
  /// Waits until all that was there at the last look() is analysed. False when it takes longer than `most`.
  /// No thread may hold a turn meanwhile.
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
  std::uint64_t asked_ = 0, answered_ = 0;  ///< looks
  Completeness completeness_ = Completeness::growing;
  std::shared_ptr<const Analysis> latest_ = std::make_shared<const Analysis>();
  std::thread thread_;
};

}  // namespace shardscope::gui
