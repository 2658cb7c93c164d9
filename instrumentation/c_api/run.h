// A run behind the C interface's opaque pointer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "instrumentation/emitter.h"
#include "instrumentation/gate.h"

/// Named and placed as the C header declares it.
struct shardscope_run {
  enum class Phase : std::uint8_t { described, started, finished };

  std::mutex mutex;  ///< everything below
  Phase phase = Phase::described;
  shardscope::instrumentation::RunTables tables;  ///< moved to the publisher at the start
  bool elems_given = false;
  std::unique_ptr<shardscope::instrumentation::Publisher> publisher;
};

namespace shardscope::instrumentation::c_api {

/// Events refused because of their fields, since the process began.
[[nodiscard]] std::uint64_t invalid_events() noexcept;

}  // namespace shardscope::instrumentation::c_api
