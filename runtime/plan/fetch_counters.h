// The eight counters of DeepSpeed's stage-3 coordinator (PartitionedParameterProfiler, docs/zero.md C16):
// what the fetches of one micro-step submitted, waited for, prefetched and gathered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::plan {

/// DeepSpeed's names. As there, the element counts have different units: `fetch_submit` and `fetch_wait` hold
/// elements of one rank's shards (padding included), `prefetch_submit` and `all_gather` elements of whole
/// parameters (without padding).
enum class FetchCounter : std::uint8_t {
  forward_fetch_submit,  ///< fetches that had to gather
  forward_fetch_wait,    ///< fetches; elements of the parameters whose gather they waited for
  forward_prefetch_submit,
  forward_all_gather,  ///< gathers, of fetches and of prefetches
  backward_fetch_submit,
  backward_fetch_wait,
  backward_prefetch_submit,
  backward_all_gather,
};
inline constexpr std::size_t kFetchCounters = 8;
/// "forward_fetch_submit", ...; "unknown" outside the enum.
[[nodiscard]] const char* name_of(FetchCounter counter) noexcept;

struct FetchCount {
  std::int64_t count = 0;
  std::int64_t elems = 0;
  bool operator==(const FetchCount&) const = default;
};
using FetchCounts = std::array<FetchCount, kFetchCounters>;

/// Counts one rank's fetches. Gathers outside DeepSpeed's coordinator are not counted: parameters read by
/// attribute, and persistent ones after a step.
class FetchCounters {
 public:
  /// By ParamId: elements of the whole parameter, and of one rank's shard with its padding.
  FetchCounters(std::vector<std::int64_t> elems, std::vector<std::int64_t> shard_elems)
      : elems_(std::move(elems)), shard_elems_(std::move(shard_elems)) {}

  /// A fetch, in the direction of the work it is for (a recomputed forward counts as forward, as in
  /// DeepSpeed). `source_of` returns a number below kGatherSources: parameters of different sources
  /// (secondary copies of hpZ, shards stored as int8, C11a) are separate gathers. So they are in DeepSpeed,
  /// but it counts the elements of both for the gather from copies and again for that from shards.
  static constexpr std::size_t kGatherSources = 4;
  void fetched(const FetchPlan& plan, Direction direction,
               const std::function<std::size_t(ParamId)>& source_of);
  [[nodiscard]] const FetchCounts& counts() const noexcept { return counts_; }
  /// End of the micro-step: returns the counts and resets them to 0.
  [[nodiscard]] FetchCounts take() noexcept;

 private:
  [[nodiscard]] std::int64_t shards_of(const std::vector<ParamId>& params) const;

  std::vector<std::int64_t> elems_, shard_elems_;
  FetchCounts counts_{};
};

}  // namespace shardscope::plan
