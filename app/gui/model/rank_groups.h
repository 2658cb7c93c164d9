// Groupings of a run's ranks: nodes, the process groups that the ranks reported, and the groups of ZeRO++ and
// MiCS derived from the configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

struct RankGroup {
  std::string title;  ///< short: "shard group 2", a host
  std::vector<std::uint32_t> ranks;
  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};
/// One partition of the ranks: each rank is in exactly one group.
struct RankGrouping {
  std::string name;  ///< "node", "shard group"
  std::vector<RankGroup> groups;
};
inline constexpr const char* kByNode = "node";

/// Groupings with more than one group, nodes first.
[[nodiscard]] std::vector<RankGrouping> rank_groupings(const store::Store& store);

/// rank_groupings(), cached until a rank is added or reports its groups.
class RankGroupings {
 public:
  /// `run`: Session::number().
  [[nodiscard]] const std::vector<RankGrouping>& of(std::uint64_t run, const store::Store& store);

 private:
  std::uint64_t run_ = 0, revision_ = 0;
  std::size_t ranks_ = 0, described_ = 0;
  std::vector<RankGrouping> all_;
};

/// "0 to 7", "0 to 6, 9"
[[nodiscard]] std::string numbers_text(const std::vector<std::uint32_t>& ranks);

}  // namespace shardscope::gui
