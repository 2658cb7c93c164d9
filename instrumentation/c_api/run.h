// The run behind the C interface's opaque pointer.
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

/// Name and namespace as declared in the C header.
struct shardscope_run {
  enum class Phase : std::uint8_t { described, started, finished };

  std::mutex mutex;  ///< guards the members below
  Phase phase = Phase::described;
  shardscope::instrumentation::RunTables tables;  ///< as described so far
  bool elems_given = false;
  std::vector<std::string> names;  ///< requested before the start, by id
  std::unique_ptr<shardscope::instrumentation::Publisher> publisher;
};

namespace shardscope::instrumentation::c_api {

inline constexpr std::uint64_t kMaxRingEvents = std::uint64_t{1} << 26;

/// The events kept since shardscope_keep(); nullopt if there are none.
[[nodiscard]] std::optional<shardscope::instrumentation::PreattachBuffer> kept_beginning() noexcept;
/// Called when a run has taken them.
void end_keeping() noexcept;
/// Memory levels restart at 0.
void forget_memory_levels() noexcept;

/// Events rejected because of their fields, since the process started.
[[nodiscard]] std::uint64_t invalid_events() noexcept;
void count_invalid_event() noexcept;

}  // namespace shardscope::instrumentation::c_api
