// Emits the outcome of each prefetch (event prefetch_outcome). Events on the streams record the times of the
// gather and its first use, so the host neither polls nor waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "runtime/execution/event_pool.h"
#include "runtime/plan/ids.h"

namespace shardscope::engine {

/// Calls follow the order in which work is queued. Calls for gathers without began() are ignored.
class PrefetchWatch {
 public:
  explicit PrefetchWatch(device::Device& device)
      : device_(device), events_(device, execution::EventPool::Kind::timed) {}

  /// A prefetch is about to be queued on the gather stream; ignored while the event is disabled.
  void began(plan::GatherId gather, std::size_t params);
  /// Its last collective is queued.
  void ended(plan::GatherId gather);
  /// Around the compute stream's wait for it.
  void needed(plan::GatherId gather);
  void resumed(plan::GatherId gather);
  /// A module uses its parameters; the first use reports the outcome.
  void used(plan::GatherId gather, plan::ModuleId module);
  /// A parameter of the gather is freed; `invalidated`: together with its trace; `last`: none is left.
  enum class Freed : std::uint8_t { released, invalidated };
  void freed(plan::GatherId gather, Freed how, bool last);

 private:
  using Point = std::unique_ptr<device::Event>;
  struct Watched {
    std::uint32_t params = 0;
    bool reported = false;
    bool invalidated = false;
    Point begin, end, need, resume;
  };
  [[nodiscard]] Watched* find(plan::GatherId gather);
  void record(Point& point, device::Stream& stream);
  void return_points(Watched& watched);

  device::Device& device_;
  execution::EventPool events_;
  std::unordered_map<std::uint32_t, Watched> watched_;  ///< by GatherId
};

}  // namespace shardscope::engine
