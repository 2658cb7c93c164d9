// Transfers of the groups of ranks in a step, and the links by group: which group moves its bytes at what
// rate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/communication.h"
#include "app/analysis/digest.h"

namespace shardscope::analysis {

using GroupRanks = std::vector<std::uint32_t>;  ///< ascending

/// One collective of a group, over the ranks that recorded it.
struct GroupTransfer {
  GroupRanks ranks;
  bool everyone = false;  ///< the group has all ranks of the run
  instrumentation::GroupPurpose purpose{};
  instrumentation::CollectiveScope scope{};
  instrumentation::CollectiveOp op{};
  std::int64_t bytes = 0;
  /// From when all had entered to the end: the shortest over ranks, since waiting for a late rank is not
  /// transfer.
  std::int64_t transfer_ns = 0;
  double bus_bytes = 0;
};
/// Those with a known transfer. Ranks with missing events are left out: a wrong end may have been assigned.
[[nodiscard]] std::vector<GroupTransfer> group_transfers(const store::Store& store, const StepDigest& step);

/// The group of a collective, if it is one of several disjoint ones; nullopt if it has all ranks, or unknown
/// members.
[[nodiscard]] std::optional<CollectiveRanks> parted_group(const store::Store& store, std::uint32_t rank,
                                                          const store::Span& collective);
/// Whether the run has groups besides that of all ranks. Reads no event.
[[nodiscard]] bool has_groups(const store::Store& store);

/// Links by group and operation, slowest first, over the latest measured steps (64 at most, fewer beyond 64
/// ranks); empty if the run has no groups besides that of all ranks.
[[nodiscard]] std::vector<GroupLink> group_links(const store::Store& store, const Digest& digest);

}  // namespace shardscope::analysis
