// libnccl-profiler-shardscope.so: the functions that NCCL calls. They do not throw, wait for a peer or
// allocate per event; every argument is checked, and unknown values are ignored.
#include <time.h>
#include <unistd.h>

#include "instrumentation/nccl_profiler/abi.h"
#include "instrumentation/nccl_profiler/collector.h"
#include "instrumentation/nccl_profiler/words.h"

namespace shardscope::nccl_profiler {
namespace {

using instrumentation::CollectiveOp;
using instrumentation::kNoId;

std::int64_t now_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// Runs `body` and always returns success to NCCL, because an error of the profiler must not end the job.
template <typename Body>
abi::Result quietly(const Body& body) noexcept {
  try {
    body();
  } catch (...) {
    // Out of memory or threads at init: this communicator is not recorded.
  }
  return abi::kSuccess;
}

abi::Result init(void** context, std::uint64_t id, int* mask, const char* name, int nodes, int ranks,
                 int rank) noexcept {
  return quietly([&] {
    if (context == nullptr) return;
    *context = nullptr;
    const std::uint32_t index = Collector::instance().add(id, name, nodes, ranks, rank, mask);
    if (index < Collector::kCommunicators) *context = Handle{HandleKind::context, 0, 0, index}.pack();
  });
}

Communicator* communicator_of(void* context, std::uint32_t& index) noexcept {
  const Handle handle = Handle::unpack(context);
  if (handle.kind != HandleKind::context) return nullptr;
  index = handle.index;
  return Collector::instance().live(index);
}

/// Whether NCCL should report the times of kernels.
bool times_kernels(const Communicator& of) noexcept {
  const int* mask = of.mask.load(std::memory_order_relaxed);
  return mask != nullptr &&
         (static_cast<unsigned>(__atomic_load_n(mask, __ATOMIC_RELAXED)) & abi::kKernelChannel) != 0;
}

/// A call of the API: its handle is the sequence itself and never becomes invalid. Graph replays refer to the
/// call at capture.
void* start_call(const abi::CallV5& call) noexcept {
  std::uint32_t sequence = current_collective();
  if (sequence == kNoId && !reports_collectives()) sequence = Collector::instance().next_sequence();
  return Handle{HandleKind::call, type_of(call.datatype).code, 0, sequence}.pack();
}

/// Sequence of an operation whose call is `parent`; without a parent, as before version 5, of the calling
/// thread's current collective.
std::uint32_t sequence_of(const Handle& parent) noexcept {
  if (parent.kind == HandleKind::call) return parent.index;
  const std::uint32_t current = current_collective();
  return current == kNoId && !reports_collectives() ? Collector::instance().next_sequence() : current;
}

void* start_collective(std::uint32_t communicator, const Communicator& of, void* parent_object,
                       const abi::CollectiveV4& description) noexcept {
  const auto op = operation_of(description.function);
  if (!op) return nullptr;
  const Handle parent = Handle::unpack(parent_object);
  const ElementType type = type_of(description.datatype);
  OperationFacts facts;
  facts.sequence = sequence_of(parent);
  facts.communicator = communicator;
  facts.algorithm = algorithm_of(description.algorithm);
  facts.protocol = protocol_of(description.protocol);
  facts.planned_channels = static_cast<std::uint8_t>(description.channels);
  facts.warps = static_cast<std::uint8_t>(description.warps);
  facts.op = *op;
  // NCCL implements gathers and broadcasts on bytes; the call has the element type of the program.
  facts.type = parent.kind == HandleKind::call ? parent.channel : type.code;
  facts.channels = times_kernels(of) ? description.channels : std::uint8_t{0};
  const auto full = static_cast<std::int64_t>(description.count) * parts_of(*op, of.ranks);
  facts.bytes = full * type.bytes;
  constexpr std::int64_t kSizes[] = {4, 2, 2, 1};
  facts.elems = facts.type < 4 ? facts.bytes / kSizes[facts.type] : full;
  facts.nccl_sequence = description.sequence;
  facts.started_ns = now_ns();
  return Collector::instance().operations().start(facts);
}

/// Sends and receives belong to an all-to-all of the program; others are not shown: there is no collective
/// kind for them.
void* start_point_to_point(std::uint32_t communicator, const Communicator& of, void* parent_object,
                           const abi::PointToPoint& description) noexcept {
  const Handle parent = Handle::unpack(parent_object);
  if (!has_host() || parent.kind != HandleKind::call || parent.index == kNoId) return nullptr;
  OperationFacts facts;
  facts.sequence = parent.index;
  facts.communicator = communicator;
  facts.planned_channels = static_cast<std::uint8_t>(description.channels);
  facts.op = CollectiveOp::all_to_all;
  facts.channels = times_kernels(of) ? description.channels : std::uint8_t{0};
  facts.elems = static_cast<std::int64_t>(description.count);
  facts.bytes = facts.elems * type_of(description.datatype).bytes;
  facts.started_ns = now_ns();
  return Collector::instance().operations().start(facts);
}

void* start_kernel_channel(void* parent_object, const abi::KernelChannel& description) noexcept {
  const Handle parent = Handle::unpack(parent_object);
  Operations& operations = Collector::instance().operations();
  std::uint32_t communicator = 0;
  if (parent.kind != HandleKind::operation || !operations.communicator_of(parent, communicator))
    return nullptr;
  const std::int64_t now = now_ns();
  Collector::instance().any(communicator).clock.observe(description.gpu_ns, now);
  return operations.begin_channel(parent, description.channel, description.gpu_ns, now);
}

void* start_proxy(void* parent_object, const abi::ProxyOperation& description) noexcept {
  // With PXN a proxy works for another process, and the parent handle is of that process.
  if (description.pid != getpid()) return nullptr;
  const Handle parent = Handle::unpack(parent_object);
  if (parent.kind != HandleKind::operation) return nullptr;
  return Collector::instance().operations().begin_proxy(parent, now_ns());
}

/// The fields that the descriptions of both versions share.
template <typename Description>
void* start_common(std::uint32_t index, const Communicator& of, const Description& description) noexcept {
  switch (static_cast<std::uint64_t>(description.type)) {
    case abi::kPointToPoint:
      return start_point_to_point(index, of, description.parent, description.point_to_point);
    case abi::kKernelChannel:
      return start_kernel_channel(description.parent, description.kernel);
    case abi::kProxyOperation:
      return start_proxy(description.parent, description.proxy);
    default:
      return nullptr;
  }
}

void* start(std::uint32_t index, const Communicator& of, const abi::DescriptionV5& description) noexcept {
  switch (description.type) {
    case abi::kCollectiveCall:
    case abi::kPointToPointCall:
      return start_call(description.call);
    case abi::kCollective:
      return start_collective(index, of, description.parent, description.collective.v4);
    default:
      return start_common(index, of, description);
  }
}
void* start(std::uint32_t index, const Communicator& of, const abi::DescriptionV4& description) noexcept {
  if (description.type == abi::kCollective)
    return start_collective(index, of, description.parent, description.collective);
  return start_common(index, of, description);
}

template <typename Description>
abi::Result start_event(void* context, void** handle, Description* description) noexcept {
  if (handle == nullptr) return abi::kSuccess;
  *handle = nullptr;
  if (description == nullptr) return abi::kSuccess;
  return quietly([&] {
    std::uint32_t index = 0;
    const Communicator* of = communicator_of(context, index);
    if (of != nullptr && !Collector::instance().forked()) *handle = start(index, *of, *description);
  });
}

abi::Result stop_event(void* handle) noexcept {
  return quietly([&] {
    const Handle known = Handle::unpack(handle);
    Operations& operations = Collector::instance().operations();
    if (known.kind == HandleKind::operation) operations.stop(known);
    if (known.kind == HandleKind::proxy) operations.end_proxy(known, now_ns());
  });
}

abi::Result record_event_state(void* handle, int state, abi::StateArguments* arguments) noexcept {
  if (state != abi::kKernelChannelStop || arguments == nullptr) return abi::kSuccess;
  return quietly([&] {
    const Handle known = Handle::unpack(handle);
    if (known.kind != HandleKind::channel) return;
    Operations& operations = Collector::instance().operations();
    std::uint32_t communicator = 0;
    if (!operations.communicator_of(known, communicator)) return;
    const std::int64_t now = now_ns();
    Collector::instance().any(communicator).clock.observe(arguments->kernel_gpu_ns, now);
    operations.end_channel(known, arguments->kernel_gpu_ns, now);
  });
}

abi::Result finalize(void* context) noexcept {
  return quietly([&] {
    const Handle handle = Handle::unpack(context);
    if (handle.kind == HandleKind::context && !Collector::instance().forked())
      Collector::instance().remove(handle.index);
  });
}

abi::Result init_v5(void** context, std::uint64_t id, int* mask, const char* name, int nodes, int ranks,
                    int rank, abi::Logger) noexcept {
  return init(context, id, mask, name, nodes, ranks, rank);
}
abi::Result init_v4(void** context, int* mask, const char* name, std::uint64_t id, int nodes, int ranks,
                    int rank, abi::Logger) noexcept {
  return init(context, id, mask, name, nodes, ranks, rank);
}

}  // namespace
}  // namespace shardscope::nccl_profiler

extern "C" {

__attribute__((
    visibility("default"))) extern const shardscope::nccl_profiler::abi::ProfilerV5 ncclProfiler_v5;
__attribute__((
    visibility("default"))) extern const shardscope::nccl_profiler::abi::ProfilerV4 ncclProfiler_v4;

const shardscope::nccl_profiler::abi::ProfilerV5 ncclProfiler_v5{
    "Shardscope",
    shardscope::nccl_profiler::init_v5,
    shardscope::nccl_profiler::start_event<shardscope::nccl_profiler::abi::DescriptionV5>,
    shardscope::nccl_profiler::stop_event,
    shardscope::nccl_profiler::record_event_state,
    shardscope::nccl_profiler::finalize};

const shardscope::nccl_profiler::abi::ProfilerV4 ncclProfiler_v4{
    "Shardscope",
    shardscope::nccl_profiler::init_v4,
    shardscope::nccl_profiler::start_event<shardscope::nccl_profiler::abi::DescriptionV4>,
    shardscope::nccl_profiler::stop_event,
    shardscope::nccl_profiler::record_event_state,
    shardscope::nccl_profiler::finalize};
}
