// Which rank made a run fail, from the launcher's output and the collector's status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/store/store.h"

namespace shardscope::cli {

struct RankExit {
  std::uint32_t rank = 0;
  std::int32_t exit_code = 0;  ///< 128 + signal
};
/// The rank that mpirun reports as killed by a signal; nullopt where it reports none.
[[nodiscard]] std::optional<RankExit> exit_in_notice(const std::string& notice);

/// Why a run failed: the rank that was lost first, then the ranks' own messages.
[[nodiscard]] std::string failure_text(const store::Store& store, const std::string& reported);

}  // namespace shardscope::cli
