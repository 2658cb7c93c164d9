// What the synthetic run does with partitioned parameters: gathers, waits, prefetches and releases, with the
// events of each.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/scheduler.h"
#include "tests/app/store/synthetic_cluster.h"

namespace shardscope::store {

class SyntheticParams {
 public:
  SyntheticParams(const SyntheticOptions& options, const ev::RunTables& tables, SyntheticCluster& cluster);

  /// `iteration`: forward and backward passes over all modules done before; the first has no trace.
  void begin_iteration(std::uint32_t iteration);
  void gather_persistent(std::uint32_t step);
  /// Pre-module: gather what is missing, wait, prefetch what comes next in `order` after place `at`.
  void fetch(const std::vector<std::uint32_t>& order, std::size_t at);
  /// Post-module: what is neither persistent nor needed soon is given up.
  void release_unused(const std::vector<std::uint32_t>& order, std::size_t at);
  void release_all();

 private:
  /// A gather under way or done: when each rank has it.
  struct GatherTimes {
    std::uint32_t id = ev::kNoId;
    bool prefetched = false;
    std::vector<std::int64_t> end;
  };
  struct Prefetched {
    plan::PrefetchStop stop;  ///< why prefetching stopped
    std::int64_t elems = 0;
  };
  Prefetched prefetch(const std::vector<std::uint32_t>& order, std::size_t at);
  std::uint32_t gather(const std::vector<std::uint32_t>& params, std::uint32_t module, ev::StatusCause cause);
  void make_available(const std::vector<std::uint32_t>& params, std::uint32_t module, ev::StatusCause cause);
  void release(std::uint32_t param, std::uint32_t module, ev::StatusCause cause);

  const SyntheticOptions& o_;
  const ev::RunTables& t_;
  SyntheticCluster& cluster_;
  std::vector<RankClock>& ranks_;
  std::vector<plan::ParamStatus> status_;
  std::vector<GatherTimes> gather_of_;
  std::int64_t available_ = 0;
  std::uint32_t gathers_ = 0, trace_step_ = 0, iteration_ = 0;
};

}  // namespace shardscope::store
