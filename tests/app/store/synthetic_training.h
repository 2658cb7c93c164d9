// The steps of the synthetic run: forward, backward, gradient buckets and optimizer on every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/bucket.h"
#include "tests/app/store/synthetic_cluster.h"
#include "tests/app/store/synthetic_params.h"

namespace shardscope::store {

/// Both arguments must outlive it.
class SyntheticTraining {
 public:
  SyntheticTraining(const SyntheticOptions& options, const ev::RunTables& tables);
  SyntheticTraining(const SyntheticTraining&) = delete;
  SyntheticTraining& operator=(const SyntheticTraining&) = delete;
  /// All steps; what every rank emitted, not yet in order of time.
  std::vector<RankClock>& play();

 private:
  [[nodiscard]] bool has_children(std::uint32_t module) const;
  [[nodiscard]] bool partitioned() const { return t_.stage == 3; }
  void startup();
  void play_step(std::uint32_t step);
  void walk(ev::Pass pass);
  void compute(RankClock& rank, std::uint32_t module, double factor);
  /// Begin and end of the modules around a leaf, as the walk enters and leaves them.
  void open_path(std::uint32_t leaf, ev::Pass pass);
  void close_to(std::size_t depth, ev::Pass pass);
  void gradients(std::uint32_t module);
  void flush(plan::FlushReason reason, std::uint32_t trigger);
  void optimizer();
  void scalar(ev::EventKind kind, double value, std::uint32_t b = ev::kNoId);

  const SyntheticOptions& o_;
  const ev::RunTables& t_;
  SyntheticCluster cluster_;
  SyntheticParams params_;
  std::vector<RankClock>& ranks_;
  std::vector<std::uint32_t> leaves_, open_;
  std::vector<std::uint32_t> bucket_params_;
  std::int64_t bucket_elems_ = 0;
  std::uint32_t bucket_ = 0, step_ = 0, micro_ = 0, iteration_ = 0;
};

}  // namespace shardscope::store
