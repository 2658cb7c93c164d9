// The event record: 40 bytes, no pointers, no strings. What the fields a, b, c, code, v0 and v1 hold for
// each kind is the table below; docs/events.md is written from it. Emission stores raw clock ticks; the
// publisher converts them to nanoseconds of the rank's monotonic clock before they leave the process.
#pragma once

#include <cstdint>
#include <limits>

namespace shardscope::instrumentation {

inline constexpr std::uint32_t kNoId = std::numeric_limits<std::uint32_t>::max();

/// Lanes of a rank. Begin/end pairs nest within a lane. `worker` is arithmetic on host memory: the CPU
/// optimizer of offloaded states. The gpu lanes hold what the driver's profiler (CUPTI) recorded, each on one
/// CUDA stream: those of the runtime, then others in the order in which they were first seen.
enum class StreamId : std::uint8_t {
  host = 0,
  compute = 1,
  gather = 2,
  reduce = 3,
  copy = 4,
  nvme = 5,
  worker = 6,
  gpu_compute = 7,
  gpu_gather = 8,
  gpu_reduce = 9,
  gpu_copy = 10,
  gpu_other_1 = 11,
  gpu_other_2 = 12,
  gpu_other_3 = 13,
  gpu_host = 14,    ///< calls in which the host waited for the GPU
  gpu_records = 15  ///< stretches of which every record of the GPU is known
};
inline constexpr std::uint8_t kStreamCount = 16;

/// Detail levels, each includes those before it.
enum class Detail : std::uint8_t { steps = 0, phases = 1, modules = 2, params = 3, kernels = 4 };

// clang-format off
enum class EventKind : std::uint16_t {
  // kind                    lane      a               b              c            code                 v0                v1
  step_begin = 1,         // host      step            -              -            -                    -                 -
  step_end,               // host      step            -              -            1 if skipped         tokens (all ranks) -
  micro_step_begin,       // host      micro-step      step           -            -                    -                 -
  micro_step_end,         // host      micro-step      step           -            -                    -                 -
  phase_begin,            // compute*  step            micro-step     -            Phase                -                 -
  phase_end,              // compute*  step            micro-step     -            Phase                -                 -
  module_begin,           // compute   module          micro-step     -            Pass                 -                 -
  module_end,             // compute   module          micro-step     -            Pass                 -                 -
  param_status,           // compute** param           module         gather id    StatusCode           elems (full)      available elems after
  fetch_wait_begin,       // compute   module          gather id      -            -                    bytes             -
  fetch_wait_end,         // compute   module          gather id      -            -                    bytes             -
  collective_submitted,   // host      sequence        group id       parts        CollectiveOp         elems             bytes (metrics 2.3 S)
  collective_begin,       // its lane  sequence        group id       CollectiveCode CollectiveOp       elems             bytes
  collective_end,         // its lane  sequence        group id       CollectiveCode CollectiveOp       elems             bytes
  collective_part,        // host      sequence        param          -            CollectiveOp         elems             bytes
  collective_entered,     // its lane  sequence        group id       -            CollectiveOp         -                 - all ranks have arrived: waiting ends, transfer begins
  bucket_open,            // host      bucket          -              buffer index -                    -                 -
  bucket_add,             // host      bucket          param          -            -                    elems             elems in bucket after
  bucket_flush,           // host      bucket          trigger param  params       FlushReason (plan)   elems             -
  trace_mode,             // host      micro-step      step           -            TraceMode (plan)     -                 -
  trace_invalidated,      // host      expected module got module     trace step   InvalidationCause (plan) modules in the trace -
  fetch_decision,         // host      module          gather id      trace step   PrefetchStop (plan)  prefetched elems  available elems after
  prefetch_issued,        // host      gather id       module         params       -                    elems             -
  release_kept,           // host      module          param          -            KeepReason (plan)    elems             -
  memory_alloc,           // host      owner (param/module) -         -            MemoryCode           bytes             pool bytes after
  memory_free,            // host      owner           -              -            MemoryCode           bytes             pool bytes after
  transfer_begin,         // copy,nvme param           sub-group      queue depth  TransferKind         bytes             swap buffers in use
  transfer_end,           // copy,nvme param           sub-group      queue depth  TransferKind         bytes             swap buffers in use
  optimizer_begin,        // comp.***  sub-group       step           -            -                    elems             -
  optimizer_end,          // comp.***  sub-group       step           -            -                    elems             -
  reduce_wait_begin,      // compute   bucket          -              -            -                    bytes             -
  reduce_wait_end,        // compute   bucket          -              -            -                    bytes             -
  overflow,               // host      step            -              -            1 if any rank        -                 -
  loss,                   // host      step            micro-step     -            -                    double bits       -
  grad_norm,              // host      step            -              -            -                    double bits       -
  loss_scale,             // host      step            hysteresis     -            -                    double bits       -
  learning_rate,          // host      step            -              -            -                    double bits       -
  tokens,                 // host      step            -              -            -                    tokens this rank  -
  kernel_begin,           // compute   name id         module         -            -                    -                 -
  kernel_end,             // compute   name id         module         -            -                    -                 -
  gate,                   // host      gate number     id             -            GateKind             -                 -
  paused_begin,           // host      gate number     -              -            PauseCause           -                 -
  paused_end,             // host      gate number     -              -            ResumeCause          -                 -
  message,                // host      text id         -              -            Severity             -                 -
  columns_selected,       // host      param           step           columns      SelectionCause (plan) elems chosen     elems of this rank
  deferred_update,        // host      UpdateCause (plan) step        steps summed DeferredState        elems             -
  deferred_wait_begin,    // compute   -               step           -            -                    elems             -
  deferred_wait_end,      // compute   -               step           -            -                    elems             -
  nccl_collective,        // host      sequence        communicator   NcclCode     CollectiveOp         bytes             NCCL's number of it
  nccl_kernel,            // host      sequence        communicator   NcclChannels CollectiveOp         ns before: begin  ns before: first channel's end
  nccl_proxy,             // host      sequence        communicator   operations   CollectiveOp         ns before: begin  -
  outside_memory,         // host      -               -              -            MemoryPool           bytes             bytes in use on the device
  prefetch_outcome,       // compute   gather id       module         params       PrefetchOutcome (plan) slack ns        gather ns
  in_flight_limit,        // host      gather id or bucket -          -            InFlight (plan)      in flight         most in flight
  gpu_begin,              // gpu*      name id         owner          CUDA stream  GpuCode              launch delay ns   bytes; threads of a kernel
  gpu_end,                // gpu*      name id         owner          CUDA stream  GpuCode              launch delay ns   bytes; threads of a kernel
  gpu_sync_begin,         // gpu_host  CUDA stream     -              -            GpuSync              -                 -
  gpu_sync_end,           // gpu_host  CUDA stream     -              -            GpuSync              -                 -
  gpu_records_begin,      // gpu_records flush         not placed     no launch    -                    records           dropped by CUPTI
  gpu_records_end,        // gpu_records flush         not placed     no launch    -                    records           dropped by CUPTI
  gpu_memory,             // host      -               -              -            GpuMemoryCode        bytes             address
  gpu_clock,              // host      pairs           -              -            -                    residual ns       drift, parts per billion
  fetch_counter,          // host      micro-step      step           count        FetchCounter (plan)  elems (shards or whole) -
  data_wait_begin,        // compute   micro-step      step           -            -                    -                 -
  data_wait_end,          // compute   micro-step      step           -            -                    -                 -
  clip_factor,            // host      step            -              -            -                    double bits       -
  update_votes,           // host      step            votes          votes needed -                    double bits: mass chosen / all  matrices
  feedback_reset,         // host      step            params         -            -                    elems             -
  detail_changed,         // host      Detail before   -              -            Detail               -                 - from here on
};
inline constexpr EventKind kLastEventKind = EventKind::detail_changed;
// clang-format on
// *  reduce and gather phases at the end of a step are on their own lanes.
// ** not_available -> in_flight on the gather lane when the gather starts; available on the compute lane
//    once it has waited; release on the compute lane when the last user has run.
// *** on the worker lane for sub-groups whose states are offloaded: the CPU updates them.

enum class Phase : std::uint8_t {
  forward,
  backward,
  reduce,
  optimizer,
  gather,
  checkpoint_save,  ///< between two steps; the step is the number of steps made
  checkpoint_load
};
enum class Pass : std::uint8_t { forward, backward, recompute };
enum class CollectiveOp : std::uint8_t {
  all_gather,
  reduce_scatter,
  reduce,
  all_reduce,
  broadcast,
  barrier,
  all_to_all
};
/// Which ranks a collective is among.
enum class CollectiveScope : std::uint8_t {
  world,
  secondary,   ///< hpZ: the ranks that share one secondary copy of the parameters
  shard,       ///< MiCS: the ranks that share one copy of the model
  replica,     ///< MiCS: the ranks that hold the same shard
  intra_node,  ///< first hop inside a node (qgZ, hierarchical gathers)
  inter_node   ///< one rank of each node
};
inline constexpr std::uint8_t kCollectiveScopeCount = 6;
enum class MemoryPool : std::uint8_t { device, host, pinned, nvme };
inline constexpr std::uint8_t kMemoryPoolCount = 4;
/// metrics.md section 1, in its order.
enum class MemoryCategory : std::uint8_t {
  param_shard,
  param_gathered,
  param_secondary,
  grad_full,
  grad_shard,
  master_weight,
  momentum,
  variance,
  reduce_bucket,
  gather_buffer,
  swap_buffer,
  quantization,
  activation,
  input,
  temporary,
  other
};
inline constexpr std::uint8_t kMemoryCategoryCount = 16;
enum class TransferKind : std::uint8_t {
  host_to_device,  ///< of offloaded states and parameters, as are the three below
  device_to_host,
  nvme_read,
  nvme_write,
  input_to_device,  ///< a micro-batch: no offloading, every run has it
};
/// Of ZenFlow's deferred update: its sum is complete and the worker may begin; the device has its parameters.
enum class DeferredState : std::uint8_t { begun, published };
/// What the GPU did.
enum class GpuWork : std::uint8_t {
  kernel,
  host_to_device,
  device_to_host,
  device_to_device,
  peer_to_peer,
  other_copy,  ///< between host and host, arrays
  memset
};
inline constexpr std::uint8_t kGpuWorkCount = 7;
/// For whom: what `owner` is the id of. The innermost span that was open where the host launched it.
enum class GpuOwner : std::uint8_t {
  none,
  forward,  ///< a module, and its pass
  backward,
  recompute,
  collective,  ///< its sequence number
  transfer,    ///< a parameter
  optimizer,   ///< a sub-group
  phase        ///< a Phase; no id narrower is known
};
inline constexpr std::uint8_t kGpuOwnerCount = 8;
enum class GpuSync : std::uint8_t { event, stream_wait_event, stream, context };
/// v0 of gpu_begin where the launch was not recorded.
inline constexpr std::int64_t kNoDelay = std::numeric_limits<std::int64_t>::min();
enum class Severity : std::uint8_t { info, warning, error };
enum class PauseCause : std::uint8_t { user, breakpoint, step };
enum class ResumeCause : std::uint8_t { user, lease_expired, shutdown };
enum class StatusCause : std::uint8_t {
  fetch,
  prefetch,
  persistent,
  external,
  release,
  partition,
  invalidation,
  context,  ///< a gathered-parameters context: whole for the program to read or change, between two steps
};

/// code of param_status: status (plan::ParamStatus) in the low 4 bits, StatusCause in the high 4.
[[nodiscard]] constexpr std::uint8_t status_code(std::uint8_t status, StatusCause cause) noexcept {
  return static_cast<std::uint8_t>((status & 0xF) | (static_cast<std::uint8_t>(cause) << 4));
}
/// c of collective_begin and _end: kernels::DType in bits 0-7, CollectiveScope in bits 8-15, ranks of the
/// communicator in bits 16-31.
[[nodiscard]] constexpr std::uint32_t collective_code(std::uint8_t type, CollectiveScope scope,
                                                      std::uint32_t ranks) noexcept {
  return type | static_cast<std::uint32_t>(scope) << 8U | (ranks & 0xFFFFU) << 16U;
}
[[nodiscard]] constexpr CollectiveScope scope_of(std::uint32_t collective_code) noexcept {
  return static_cast<CollectiveScope>(collective_code >> 8U & 0xFFU);
}
[[nodiscard]] constexpr std::uint32_t ranks_of(std::uint32_t collective_code) noexcept {
  return collective_code >> 16U;
}
/// How NCCL moves the bytes of a collective; what its profiler interface calls them. `unknown`: a name that
/// this version does not know.
enum class NcclAlgorithm : std::uint8_t {
  unknown,
  tree,
  ring,
  collnet_direct,
  collnet_chain,
  nvls,
  nvls_tree,
  pat
};
enum class NcclProtocol : std::uint8_t { unknown, ll, ll128, simple };
/// c of nccl_collective: algorithm in bits 0-7, protocol in bits 8-15, channels in bits 16-23, warps of a
/// channel in bits 24-31.
[[nodiscard]] constexpr std::uint32_t nccl_code(NcclAlgorithm algorithm, NcclProtocol protocol,
                                                std::uint32_t channels, std::uint32_t warps) noexcept {
  return static_cast<std::uint32_t>(algorithm) | static_cast<std::uint32_t>(protocol) << 8U |
         (channels & 0xFFU) << 16U | (warps & 0xFFU) << 24U;
}
/// c of nccl_kernel: channels that were timed in bits 0-15, channels that ran in bits 16-31.
[[nodiscard]] constexpr std::uint32_t nccl_channels(std::uint32_t timed, std::uint32_t used) noexcept {
  return (timed & 0xFFFFU) | used << 16U;
}
/// code of gpu_begin and _end: GpuWork in the low 4 bits, GpuOwner in the high 4.
[[nodiscard]] constexpr std::uint8_t gpu_code(GpuWork work, GpuOwner owner) noexcept {
  return static_cast<std::uint8_t>((static_cast<std::uint8_t>(work) & 0xF) |
                                   (static_cast<std::uint8_t>(owner) << 4));
}
[[nodiscard]] constexpr GpuWork work_of(std::uint8_t gpu_code) noexcept {
  return static_cast<GpuWork>(gpu_code & 0xF);
}
[[nodiscard]] constexpr GpuOwner owner_of(std::uint8_t gpu_code) noexcept {
  return static_cast<GpuOwner>(gpu_code >> 4U);
}
/// Whether the lane is one of the GPU's streams.
[[nodiscard]] constexpr bool is_gpu_stream(StreamId lane) noexcept {
  return lane >= StreamId::gpu_compute && lane <= StreamId::gpu_other_3;
}
/// code of gpu_memory: MemoryPool in the low 4 bits (managed memory counts as device), 1 in bit 4 if it was
/// freed.
[[nodiscard]] constexpr std::uint8_t gpu_memory_code(MemoryPool pool, bool freed) noexcept {
  return static_cast<std::uint8_t>((static_cast<std::uint8_t>(pool) & 0xF) | (freed ? 0x10 : 0));
}
/// code of memory events: category in the low 4 bits, pool in the high 4.
[[nodiscard]] constexpr std::uint8_t memory_code(MemoryPool pool, MemoryCategory category) noexcept {
  return static_cast<std::uint8_t>((static_cast<std::uint8_t>(category) & 0xF) |
                                   (static_cast<std::uint8_t>(pool) << 4));
}

struct Event {
  std::uint64_t ticks = 0;  ///< raw clock while in the process; nanoseconds, signed, afterwards
  EventKind kind{};
  StreamId stream{};
  std::uint8_t code = 0;
  std::uint32_t a = kNoId;
  std::uint32_t b = kNoId;
  std::uint32_t c = kNoId;
  std::int64_t v0 = 0;
  std::int64_t v1 = 0;
};
static_assert(sizeof(Event) == 40);

/// The detail level at which a kind is emitted.
[[nodiscard]] Detail detail_of(EventKind kind) noexcept;
/// "module_begin", ... for exports and messages; "unknown" for a value outside the enum.
[[nodiscard]] const char* name_of(EventKind kind) noexcept;
/// The end kind of a begin kind; the kind itself for an instant.
[[nodiscard]] EventKind end_of(EventKind begin) noexcept;
[[nodiscard]] bool is_begin(EventKind kind) noexcept;
[[nodiscard]] bool is_end(EventKind kind) noexcept;

}  // namespace shardscope::instrumentation
