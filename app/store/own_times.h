// Each rank's own time over a whole run in little room: a rank that became slow is named when its events are
// gone. docs/recording.md, "What was not kept".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/store/own_time.h"

namespace shardscope::store {

/// [Note: stretches of steps]
/// All ranks are cut at the same steps, since they make them together: so each stretch compares like with
/// like, whatever their clocks. Stretches have 2^n steps, n as small as kMost of them allow; where the run
/// goes on beyond, each two become one. So a run of N steps has kMost / 2 to kMost stretches from kMost / 2
/// steps on, and memory and file are bounded by ranks x kMost rows.
class OwnTimes {
 public:
  static constexpr std::size_t kMost = 512;

  void add(std::uint32_t rank, const OwnTime& time);
  struct Changes {
    bool all = false;  ///< the stretches are others now: these are all rows, and earlier ones void
    std::vector<OwnTimeRow> rows;
  };
  /// Since the last call.
  [[nodiscard]] Changes changes();

 private:
  struct Sum {
    std::uint32_t steps = 0;
    bool changed = false;
    std::int64_t own_ns = 0, waited_ns = 0;
  };
  void fold();

  std::map<std::uint32_t, std::vector<Sum>> ranks_;
  std::optional<std::uint32_t> first_step_;  ///< of the first stretch
  std::uint32_t shift_ = 0;                  ///< stretches have 2^shift_ steps
  bool all_changed_ = false;
};

}  // namespace shardscope::store
