// Which collectives ranks issued, by their place in the order of their group, and where two ranks differ.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// One collective of one rank, issued or begun.
struct Issue {
  NamedCollective named;
  std::uint64_t key = 0;  ///< alike on every rank whatever the operation: place in its group's order
  std::uint32_t id = instrumentation::kNoId;  ///< of the gather or bucket
  std::int64_t at_ns = 0;                     ///< of its begin, else when it was issued
  std::int64_t issued_ns = 0;                 ///< on the host, where that is recorded; else as at_ns
  bool begun = false;
  bool open = false;                   ///< has not ended, or by an error after which the rank completed none
  std::int64_t failed_ns = 0;          ///< when it ended by an error (0: it did not)
  std::vector<std::uint32_t> members;  ///< ranks known to be in it, ascending; empty: not known
};

/// What one rank issued in the run's last steps.
struct IssuedCollectives {
  std::uint32_t rank = 0;
  std::map<std::uint64_t, Issue> issues;  ///< by key
  /// Whether it came to the collective at `key` before what is read here, or its events of it were lost: it
  /// has issued a later one of the same order.
  [[nodiscard]] bool is_past(std::uint64_t key) const;
};

/// Whether its ranks may give and take different sizes, or take different sides of it: to or from one rank,
/// and all-to-all.
[[nodiscard]] bool may_differ(instrumentation::CollectiveOp op) noexcept;
/// Ranks 0 to the world's last.
[[nodiscard]] std::vector<std::uint32_t> all_ranks(const store::Store& store);
/// Begin of the last two steps: what ranks compare is there, and reading it costs the same however long the
/// run is.
[[nodiscard]] std::int64_t last_steps_from(const store::Store& store);
[[nodiscard]] IssuedCollectives issued_collectives(const store::Store& store, std::uint32_t rank,
                                                   std::int64_t from_ns,
                                                   const std::vector<std::uint32_t>& world);

/// The earliest place at which ranks of one group issued different collectives. Those whose members are not
/// known are compared with none.
[[nodiscard]] std::optional<IssueDifference> first_difference(const std::vector<IssuedCollectives>& ranks);
/// The ranks of its group that have not come to the collective `issue`, which others are in. Nothing where
/// all have, or its members are not known.
[[nodiscard]] std::optional<IssueDifference> never_issued(const std::vector<IssuedCollectives>& ranks,
                                                          const Issue& issue);

}  // namespace shardscope::analysis
