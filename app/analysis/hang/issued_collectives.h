// The collectives that ranks issued, by position in the order of their group, and where two ranks differ.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// Ascending. Shared: a collective of a thousand ranks is issued by each of them.
using SharedRanks = std::shared_ptr<const std::vector<std::uint32_t>>;

/// One collective of one rank, issued or begun.
struct Issue {
  NamedCollective named;
  std::uint64_t key = 0;  ///< position in its group's order: equal on every rank, whatever the operation
  std::uint32_t id = instrumentation::kNoId;  ///< gather or bucket
  std::int64_t at_ns = 0;                     ///< of its begin; else time of issue
  std::int64_t issued_ns = 0;                 ///< time of issue on the host, if recorded; else at_ns
  bool begun = false;
  bool open = false;           ///< not ended, or failed and none completed afterwards
  std::int64_t failed_ns = 0;  ///< when it ended with an error (0: it did not)
  SharedRanks known_members;   ///< ranks known to be in it; null: unknown
  /// Empty: unknown.
  [[nodiscard]] const std::vector<std::uint32_t>& members() const;
};

/// The collectives that one rank issued in the last steps of the run.
struct IssuedCollectives {
  std::uint32_t rank = 0;
  std::map<std::uint64_t, Issue> issues;  ///< by key
  /// Whether the rank passed the collective at `key` before the events read here, or these were lost: it has
  /// issued a later one of the same order.
  [[nodiscard]] bool is_past(std::uint64_t key) const;
};

/// Whether ranks may pass different sizes, or have different roles: to or from one rank, and all-to-all.
[[nodiscard]] bool may_differ(instrumentation::CollectiveOp op) noexcept;
/// All ranks of the run, ascending.
[[nodiscard]] SharedRanks all_ranks(const store::Store& store);
/// Begin of the last two steps: enough to compare ranks, at a cost that does not depend on the length of the
/// run.
[[nodiscard]] std::int64_t last_steps_from(const store::Store& store);
[[nodiscard]] IssuedCollectives issued_collectives(const store::Store& store, std::uint32_t rank,
                                                   std::int64_t from_ns, const SharedRanks& world);

/// The earliest position at which ranks of one group issued different collectives. Collectives with unknown
/// members are not compared.
[[nodiscard]] std::optional<IssueDifference> first_difference(const std::vector<IssuedCollectives>& ranks);
/// The members that did not reach the collective `issue`, which others are in. nullopt if all did, or its
/// members are unknown.
[[nodiscard]] std::optional<IssueDifference> never_issued(const std::vector<IssuedCollectives>& ranks,
                                                          const Issue& issue);

}  // namespace shardscope::analysis
