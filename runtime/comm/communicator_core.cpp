// Shared by all transports: checks on the host thread, splitting into collectives of at most kMaxParts parts,
// numbering, events, and the emulated link. A wrong argument throws here, before any rank waits for another.
#include "runtime/comm/communicator_core.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "instrumentation/bus_factor.h"
#include "instrumentation/emitter.h"
#include "runtime/base/emulated_link.h"
#include "runtime/device/error.h"

namespace shardscope::comm {
namespace {

using instrumentation::CollectiveOp;
using instrumentation::Event;
using instrumentation::EventKind;

[[noreturn]] void refuse(CollectiveOp op, const std::string& text) {
  throw BackendError(name_of(op), 0, text, "comm");
}

/// The clock of events.
std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Absolute, so that an interrupted sleep does not restart.
void sleep_until(std::int64_t ns) {
  const timespec until{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

/// std::less orders pointers of different allocations; `<` need not.
bool overlaps(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto* x = static_cast<const std::byte*>(a);
  const auto* y = static_cast<const std::byte*>(b);
  return std::less<>{}(x, y + b_bytes) && std::less<>{}(y, x + a_bytes);
}

}  // namespace

/// A collective with the parameter of each part, before it is numbered.
struct CommunicatorCore::Draft {
  Collective collective;
  struct PartEvent {
    std::uint32_t param = instrumentation::kNoId;
    std::int64_t elems = 0;
  };
  std::vector<PartEvent> params;

  Draft(CollectiveOp op, kernels::DType type, float factor, CollectiveLabel label, std::size_t parts) {
    collective.op = op;
    collective.type = type;
    collective.factor = factor;
    collective.group = label.group_id;
    collective.packing = label.packing;
    collective.parts.reserve(parts);
    params.reserve(parts);
  }
  // `elems`: what the part adds to S of metrics.md 2.3, not always part.elems.
  void add(const Part& part, std::int64_t elems, std::uint32_t param) {
    collective.parts.push_back(part);
    collective.parts.back().param = param;
    collective.elems += elems;
    params.push_back({param, elems});
  }
};

/// A collective queued on a stream; destroyed when it has run or when the stream dropped it.
struct CommunicatorCore::Job {
  CommunicatorCore& core;
  Collective collective;

  Job(CommunicatorCore& owner, Collective what) : core(owner), collective(std::move(what)) {
    const std::lock_guard lock(core.jobs_mutex_);
    ++core.jobs_;
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    // Notified under the lock: the communicator may be gone as soon as it is released.
    const std::lock_guard lock(core.jobs_mutex_);
    if (--core.jobs_ == 0) core.jobs_done_.notify_all();
  }
};

CommunicatorCore::CommunicatorCore(const Group& group, std::uint32_t world_rank, std::string name,
                                   std::unique_ptr<Transport> transport, base::EmulatedLink link,
                                   std::atomic<std::uint32_t>& sequence, bool compare)
    : rank_(static_cast<std::uint32_t>(
          std::lower_bound(group.members.begin(), group.members.end(), world_rank) - group.members.begin())),
      world_(static_cast<std::uint32_t>(group.members.size())),
      scope_(group.scope),
      group_id_(group.id),
      name_(std::move(name)),
      transport_(std::move(transport)),
      link_(link),
      compare_(compare),
      sequence_(sequence),
      exceptions_at_start_(std::uncaught_exceptions()) {}

/// Waits for jobs on the streams, which refer to this object. If an exception destroys it, jobs could wait
/// for peers that never arrive, so these waits are ended first.
CommunicatorCore::~CommunicatorCore() {
  // More exceptions in flight than when this was made: the destructor runs in the unwinding of a stack.
  if (std::uncaught_exceptions() > exceptions_at_start_) transport_->abandon();
  std::unique_lock lock(jobs_mutex_);
  // Unbounded, but every job ends: the transport's waits are bounded, and abandon() has ended those of peers.
  jobs_done_.wait(lock, [this] { return jobs_ == 0; });
}

std::string CommunicatorCore::describe() const { return transport_->describe(); }

/// As collectives of at most kMaxParts parts. `add` checks a part and adds it to the draft.
template <typename Item, typename Add>
void CommunicatorCore::submit_all(CollectiveOp op, kernels::DType type, float factor, CollectiveLabel label,
                                  std::span<const Item> parts, device::Stream& stream, Add add) {
  // Ranks with lists of equal length split them equally. Different lengths give different signatures,
  // compared at entry.
  while (!parts.empty()) {
    const auto now = parts.first(std::min(parts.size(), Transport::kMaxParts));
    Draft draft(op, type, factor, label, now.size());
    for (const Item& part : now) add(draft, part);
    submit(std::move(draft), stream);
    parts = parts.subspan(now.size());
  }
}

/// Only the shard has to be in memory that peers can read; only this rank writes `full`.
void CommunicatorCore::all_gather(std::span<const GatherPart> parts, kernels::DType type,
                                  device::Stream& stream, CollectiveLabel label) {
  submit_all(
      CollectiveOp::all_gather, type, 1, label, parts, stream, [&](Draft& draft, const GatherPart& part) {
        if (part.shard_elems < 0) refuse(draft.collective.op, "shard_elems is negative");
        const std::size_t shard_bytes = static_cast<std::size_t>(part.shard_elems) * kernels::size_of(type);
        auto* own = static_cast<std::byte*>(part.full) + rank_ * shard_bytes;
        // The shard may overlap `full` only as its own row: peers read it there, and nothing is written to
        // it.
        if (part.shard != own && overlaps(part.shard, shard_bytes, part.full, world_ * shard_bytes)) {
          refuse(draft.collective.op, "the shard lies inside the result but not at this rank's place");
        }
        transport_->check_memory(part.shard, shard_bytes);
        // source shard (shard_elems), target full (world, shard_elems).
        draft.add({part.shard, part.full, part.shard_elems, part.shard_elems, 0}, part.shard_elems * world_,
                  part.param);
      });
}

void CommunicatorCore::reduce_scatter(std::span<const ReduceScatterPart> parts, kernels::DType type,
                                      float factor, device::Stream& stream, CollectiveLabel label) {
  submit_all(
      CollectiveOp::reduce_scatter, type, factor, label, parts, stream,
      [&](Draft& draft, const ReduceScatterPart& part) {
        // `full` need not hold the padding: it ends at full_elems, and what lies beyond counts as zeros.
        if (part.shard_elems < 0 || part.full_elems < 0 || part.full_elems > part.shard_elems * world_) {
          refuse(draft.collective.op, "full_elems is " + std::to_string(part.full_elems) + ", but " +
                                          std::to_string(world_) + " shards of " +
                                          std::to_string(part.shard_elems) + " elements hold at most " +
                                          std::to_string(part.shard_elems * world_));
        }
        const std::size_t size = kernels::size_of(type);
        const std::size_t full_bytes = static_cast<std::size_t>(part.full_elems) * size;
        const std::size_t shard_bytes = static_cast<std::size_t>(part.shard_elems) * size;
        const auto* own = static_cast<const std::byte*>(part.full) + rank_ * shard_bytes;
        // Its own row again: only this rank reads it, so it may be overwritten with the sum while peers read
        // the others.
        if (part.out != own && overlaps(part.out, shard_bytes, part.full, full_bytes)) {
          refuse(draft.collective.op, "the result lies inside the input but not at this rank's place");
        }
        // `full` only: no peer touches `out`.
        transport_->check_memory(part.full, full_bytes);
        // source full (full_elems), target out (shard_elems). S counts the padding too (metrics.md 2.3).
        draft.add({part.full, part.out, part.full_elems, part.shard_elems, 0}, part.shard_elems * world_,
                  part.param);
      });
}

/// One owner: `root` receives the sum, the other ranks only provide their input.
void CommunicatorCore::reduce(std::span<const ReducePart> parts, kernels::DType type, float factor,
                              device::Stream& stream, CollectiveLabel label) {
  submit_all(CollectiveOp::reduce, type, factor, label, parts, stream,
             [&](Draft& draft, const ReducePart& part) {
               if (part.elems < 0) refuse(draft.collective.op, "elems is negative");
               if (part.root >= world_) {
                 refuse(draft.collective.op, "root is " + std::to_string(part.root) + ", but the world has " +
                                                 std::to_string(world_) + " ranks");
               }
               const std::size_t bytes = static_cast<std::size_t>(part.elems) * kernels::size_of(type);
               // On other ranks `out` is not used and may be anything.
               if (part.root == rank_ && part.out != part.in && overlaps(part.out, bytes, part.in, bytes)) {
                 refuse(draft.collective.op, "the result overlaps the input without being the same place");
               }
               transport_->check_memory(part.in, bytes);
               draft.add({part.in, part.out, part.elems, part.elems, part.root}, part.elems, part.param);
             });
}

void CommunicatorCore::all_reduce(std::span<const AllReducePart> parts, kernels::DType type, float factor,
                                  device::Stream& stream, CollectiveLabel label) {
  // Ranges of whole cache lines, so that no two ranks write the same line.
  const auto line = static_cast<std::int64_t>(64 / kernels::size_of(type));
  submit_all(CollectiveOp::all_reduce, type, factor, label, parts, stream,
             [&](Draft& draft, const AllReducePart& part) {
               if (part.elems < 0) refuse(draft.collective.op, "elems is negative");
               transport_->check_memory(part.data,
                                        static_cast<std::size_t>(part.elems) * kernels::size_of(type));
               // A range of `extent` elements per rank, rounded up to lines; the last ranges may be short or
               // empty.
               const std::int64_t share = (part.elems + world_ - 1) / world_;
               draft.add({part.data, part.data, part.elems, (share + line - 1) / line * line, 0}, part.elems,
                         part.param);
             });
}

void CommunicatorCore::all_to_all(std::span<const AllToAllPart> parts, kernels::DType type,
                                  device::Stream& stream, CollectiveLabel label) {
  submit_all(CollectiveOp::all_to_all, type, 1, label, parts, stream,
             [&](Draft& draft, const AllToAllPart& part) {
               if (part.chunk_elems < 0) refuse(draft.collective.op, "chunk_elems is negative");
               // send and receive (world, chunk_elems).
               const std::int64_t elems = part.chunk_elems * world_;
               const std::size_t bytes = static_cast<std::size_t>(elems) * kernels::size_of(type);
               if (overlaps(part.send, bytes, part.receive, bytes)) {
                 refuse(draft.collective.op, "what is sent and what is received overlap");
               }
               transport_->check_memory(part.send, bytes);
               draft.add({part.send, part.receive, elems, part.chunk_elems, 0}, elems, part.param);
             });
}

void CommunicatorCore::refuse_other_stream(CollectiveOp op, const device::Stream& stream) {
  // Transports keep state of the collective in progress (notes, counters): one at a time, in the same order
  // on all ranks, which only a single stream ensures.
  if (stream_ == nullptr) stream_ = &stream;
  if (stream_ == &stream) return;
  refuse(op, "communicator '" + name_ +
                 "' has been used on another stream, and collectives of two streams meet in no fixed order; "
                 "make one communicator per stream");
}

void CommunicatorCore::submit(Draft draft, device::Stream& stream) {
  Collective& c = draft.collective;
  refuse_other_stream(c.op, stream);
  // One counter for all communicators of a rank. Ranks submit in the same order, so numbers agree on all
  // ranks.
  c.sequence = sequence_.fetch_add(1, std::memory_order_relaxed);
  // The number includes the group's id: collectives of the group and of the world would otherwise have equal
  // numbers on a rank.
  const bool described = scope_ == instrumentation::CollectiveScope::group;
  if (described) c.sequence = instrumentation::group_sequence(group_id_, c.sequence);
  c.lane = stream.id();
  const auto size = static_cast<std::int64_t>(kernels::size_of(c.type));
  // As S counts them: the whole tensor, not what this rank sends.
  c.bytes = c.elems * size;

  instrumentation::emit<EventKind::collective_submitted>({.op = c.op,
                                                          .sequence = c.sequence,
                                                          .group = c.group,
                                                          .parts = static_cast<std::uint32_t>(c.parts.size()),
                                                          .elems = c.elems * c.packing,
                                                          .bytes = c.bytes});
  for (const auto& [param, elems] : draft.params) {
    // Flat buffers and ranges of several parameters have no part events.
    if (param == instrumentation::kNoId) continue;
    instrumentation::emit<EventKind::collective_part>({.op = c.op,
                                                       .sequence = c.sequence,
                                                       .param = param,
                                                       .elems = elems * c.packing,
                                                       .bytes = elems * size});
  }
  const std::uint32_t code = instrumentation::collective_code(static_cast<std::uint8_t>(c.type), scope_,
                                                              described ? group_id_ : world_);
  // The stream takes the timestamps of begin and end around the work, the host thread that of `submitted`
  // above.
  Event event = instrumentation::make<EventKind::collective_begin>(c.lane, {.op = c.op,
                                                                            .sequence = c.sequence,
                                                                            .group = c.group,
                                                                            .code = {code},
                                                                            .elems = c.elems * c.packing,
                                                                            .bytes = c.bytes});
  stream.emit(event);
  event.kind = EventKind::collective_end;
  // shared_ptr because std::function requires a copyable callable.
  stream.run([job = std::make_shared<Job>(*this, std::move(c))](const kernels::Exec& exec) {
    job->core.run(job->collective, exec);
  });
  stream.emit(event);
}

void CommunicatorCore::run(const Collective& c, const kernels::Exec& exec) {
  // CUDA: run() is called on the host thread within submit(), which passes on its exceptions.
  if (transport_->asynchronous()) {
    transport_->check_failure();
    if (compare_) compare_signatures(c);
    transport_->move(c, exec);
    return;
  }
  transport_->enter(c);
  // All ranks have arrived: the link's time and collective_entered begin here, without the wait for late
  // ranks.
  const std::int64_t entered_ns = monotonic_ns();
  instrumentation::emit<EventKind::collective_entered>(
      c.lane, {.op = c.op, .sequence = c.sequence, .group = c.group});
  transport_->move(c, exec);
  transport_->leave(c);
  hold(c, entered_ns);
}

/// On the host thread, which queues the work of asynchronous transports.
void CommunicatorCore::compare_signatures(const Collective& c) {
  const Signature mine = signature_of(c, compared_++);
  std::vector<Signature> all(world_);
  transport_->host_all_gather("enable_sanity_checks", std::as_bytes(std::span(&mine, 1)),
                              std::as_writable_bytes(std::span(all)));
  for (std::uint32_t r = 1; r < world_; ++r) {
    // Every rank compares with rank 0, so all throw the same text or none does.
    if (!same(all[0], all[r])) refuse(c.op, mismatch_text(name_, 0, all[0], r, all[r]));
  }
}

/// Ends no earlier than a link of `gbps` would: latency + S * bus factor * 8 / gbps after all ranks entered
/// (metrics.md 2.3). The real transfer is part of that time, not added to it.
void CommunicatorCore::hold(const Collective& c, std::int64_t entered_ns) const {
  if (link_.gbps <= 0 && link_.latency_us <= 0) return;
  double ns = link_.latency_us * 1e3;
  // Bits / (10^9 bits per second) = nanoseconds.
  if (link_.gbps > 0)
    ns += static_cast<double>(c.bytes) * instrumentation::bus_factor(c.op, world_) * 8 / link_.gbps;
  // Counted from the entry, at which ranks meet: all are delayed until nearly the same time.
  const std::int64_t until = entered_ns + static_cast<std::int64_t>(ns);
  constexpr std::int64_t kSlice = 50'000'000;  // a failed rank is noticed while a slow link is emulated
  for (std::int64_t now = monotonic_ns(); now < until; now = monotonic_ns()) {
    sleep_until(std::min(until, now + kSlice));
    transport_->check_failure();
  }
}

// ---- host values -----------------------------------------------------------------------------------------

/// Gathers the values of all ranks and combines them here, in rank order on every rank: the result has the
/// same bits everywhere. (world, now.size()) values of 8 bytes at a time, row r from rank r; kAtOnce keeps a
/// row within the transport's limit.
template <typename T, typename Combine>
void CommunicatorCore::combine_host(const char* what, std::span<T> values, Combine combine) {
  constexpr std::size_t kAtOnce = Transport::kMaxHostBytes / sizeof(T);
  for (; !values.empty(); values = values.subspan(std::min(values.size(), kAtOnce))) {
    const std::span<T> now = values.first(std::min(values.size(), kAtOnce));
    host_scratch_.resize(now.size_bytes() * world_);
    transport_->host_all_gather(what, std::as_bytes(now), host_scratch_);
    for (std::size_t i = 0; i < now.size(); ++i) {
      for (std::uint32_t r = 0; r < world_; ++r) {
        T value;
        // The scratch is bytes, not aligned for T.
        std::memcpy(&value, host_scratch_.data() + r * now.size_bytes() + i * sizeof(T), sizeof(T));
        now[i] = r == 0 ? value : combine(now[i], value);
      }
    }
  }
}

void CommunicatorCore::all_reduce_host(std::span<double> values) {
  combine_host("all_reduce_host", values, [](double a, double b) { return a + b; });
}

void CommunicatorCore::max_host(std::span<std::uint64_t> values) {
  combine_host("max_host", values, [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
}

void CommunicatorCore::broadcast_host(std::span<std::byte> bytes, std::uint32_t root) {
  if (root >= world_) {
    refuse(CollectiveOp::broadcast,
           "root is " + std::to_string(root) + ", but the world has " + std::to_string(world_) + " ranks");
  }
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), Transport::kMaxHostBytes))) {
    transport_->host_broadcast(bytes.first(std::min(bytes.size(), Transport::kMaxHostBytes)), root);
  }
}

/// An exchange of one byte: the gather returns when all have entered.
void CommunicatorCore::barrier_host() {
  const std::byte mine{};
  host_scratch_.resize(world_);
  transport_->host_all_gather("barrier_host", {&mine, 1}, host_scratch_);
}

}  // namespace shardscope::comm
