// A run behind the C interface's opaque pointer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/gate.h"

/// Named and placed as the C header declares it.
struct shardscope_run {
  enum class Phase : std::uint8_t { described, started, finished };

  std::mutex mutex;  ///< everything below
  Phase phase = Phase::described;
  shardscope::instrumentation::RunTables tables;  ///< as described so far
  bool elems_given = false;
  std::vector<std::string> names;  ///< asked for before the start, by id
  std::unique_ptr<shardscope::instrumentation::Publisher> publisher;
};

namespace shardscope::instrumentation::c_api {

inline constexpr std::uint64_t kMaxRingEvents = std::uint64_t{1} << 26;

/// If a beginning is kept: since when.
[[nodiscard]] std::optional<shardscope::instrumentation::PreattachBuffer> kept_beginning() noexcept;
/// A run has taken it over.
void end_keeping() noexcept;
/// Memory levels start at 0 again.
void forget_memory_levels() noexcept;

/// Events refused because of their fields, since the process began.
[[nodiscard]] std::uint64_t invalid_events() noexcept;
void count_invalid_event() noexcept;

}  // namespace shardscope::instrumentation::c_api
