// Which rank ended a run before its time, from what the launcher prints and what the collector knows.
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
/// The rank that mpirun names as the one that a signal ended; nothing where it names none.
[[nodiscard]] std::optional<RankExit> exit_in_notice(const std::string& notice);

/// Why a run failed: the rank that was gone first, then what the ranks said themselves.
[[nodiscard]] std::string failure_text(const store::Store& store, const std::string& said);

}  // namespace shardscope::cli
