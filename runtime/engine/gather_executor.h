// Executes the gathers of stage 3: allocates parameters, queues collectives and the streams' waits, frees.
// The scheduler decides what to gather and when; partitioned_parameters.cpp connects the two.
//
// [Note: gathered parameters and streams]
// A gathered parameter is allocated on the stream that first writes to it (ShardStore::destination: the
// gather stream, or the copy stream where shards are loaded from elsewhere). The compute stream waits for the
// gather's event before the first use. To free it, that stream first waits for an event recorded on the
// compute stream after the last use; from then on the memory serves later gathers, which run after that wait.
// So at any time memory holds the parameters that the scheduler calls in flight or available, computed from
// the plan alone, and the host never waits to free.
//
// [Note: gathers in flight]
// DeepSpeed lets its host run at most two unfinished handles ahead (C6), because memory used by two streams
// returns to its allocator only when the host sees both finished. Here memory is freed in stream order and
// HostThrottle bounds how far the host is ahead, so another wait would only delay launches: by default there
// is none. compat.max_ongoing_fetch_events (2 in deepspeed and notes) makes the host wait as DeepSpeed's
// does.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/engine/gather_path.h"
#include "runtime/engine/prefetch_watch.h"
#include "runtime/execution/context.h"
#include "runtime/execution/event_pool.h"
#include "runtime/execution/events.h"
#include "runtime/offload/shard_store.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::engine {

/// Host thread only; nothing here waits on the host except limit_ongoing(). `available_elems` and `module`
/// are event fields: the scheduler's counter after the decision, and the module at which it was made.
class GatherExecutor {
 public:
  /// All arguments must outlive it. `scheduler` only answers whether a parameter is persistent.
  GatherExecutor(const execution::Context& context, execution::EventPool& events,
                 const plan::Ownership& ownership, const plan::FetchScheduler& scheduler, GatherPath& path,
                 offload::ShardStore& shards);

  /// The whole parameter in the storage type, followed by padding; null while it is partitioned. In flight,
  /// it may be read by work queued on the compute stream after wait_for().
  [[nodiscard]] const void* data(plan::ParamId param) const { return params_[plan::raw(param)].data; }

  /// Queues one coalesced, in-place all-gather on the gather stream; a gather without parameters does
  /// nothing.
  void issue(const plan::Gather& gather, plan::ModuleId module, ev::StatusCause cause,
             std::int64_t available_elems);
  /// Counts the waits of one fetch, parameter by parameter, if compat limits handles in flight; the host may
  /// wait. See [Note: gathers in flight].
  void limit_ongoing(const std::vector<plan::ParamId>& waited, plan::ModuleId module);
  /// The compute stream waits for these gathers, each once; freed ones are ignored.
  void wait_for(const std::vector<plan::GatherId>& gathers, plan::ModuleId module);
  /// Emits that parameters are available, on the compute stream after its wait for them.
  void announce(const std::vector<plan::ParamId>& params, plan::ModuleId module,
                std::int64_t available_elems);
  /// Frees parameters after their last use queued on the compute stream. See [Note: gathered parameters and
  /// streams].
  void free(const std::vector<plan::ParamId>& params, plan::ModuleId module, ev::StatusCause cause,
            std::int64_t available_elems);
  /// Emits param_status with the time at which `stream` reaches it.
  void emit_status(device::Stream& stream, plan::ParamId param, plan::ModuleId module,
                   plan::ParamStatus status, ev::StatusCause cause, std::int64_t available_elems);

 private:
  struct Param {
    /// [padded elems] storage type, from ShardStore::destination(); empty if the stored shard is whole.
    device::Buffer buffer;
    device::Buffer packed;  ///< [packed bytes] of a loaded quantized shard, allocated likewise
    void* data = nullptr;   ///< set while in flight or available
    plan::GatherId gather = plan::kNone<plan::GatherId>;
    ev::StatusCause cause{};
  };
  /// A gather of which some parameters are not freed yet.
  struct Issued {
    std::unique_ptr<device::Event> done;  ///< recorded on the gather stream after the collective
    std::size_t held = 0;                 ///< parameters not yet freed
    std::size_t ongoing = 0;              ///< times that `ongoing_` may still return it
    std::int64_t bytes = 0;
    bool waited = false;  ///< the compute stream has waited for it
  };
  using IssuedById = std::unordered_map<std::uint32_t, Issued>;
  void forget_if_done(IssuedById::iterator issued);

  const execution::Context& context_;
  execution::EventPool& events_;
  const plan::Ownership& ownership_;
  const plan::FetchScheduler& scheduler_;
  GatherPath& path_;
  offload::ShardStore& shards_;
  PrefetchWatch watch_;
  plan::InFlightLimit<plan::GatherId> ongoing_;
  std::vector<Param> params_;  ///< by ParamId
  IssuedById issued_;          ///< by GatherId
};

}  // namespace shardscope::engine
