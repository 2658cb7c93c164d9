#include "runtime/comm/cuda/nccl_transport.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "instrumentation/nccl_host.h"
#include "kernels/cuda/context.h"
#include "runtime/device/cuda/check.h"
#include "runtime/device/cuda/event.h"
#include "runtime/device/error.h"

namespace shardscope::comm {

using instrumentation::CollectiveOp;

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A non-blocking communicator usually returns ncclInProgress; settle() waits for the final result.
void check(ncclResult_t result, const char* call, const std::string& where) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw BackendError(call, static_cast<int>(result),
                     std::string(ncclGetErrorString(result)) + "; " + ncclGetLastError(nullptr) +
                         " (NCCL_DEBUG=INFO says more)",
                     where);
}

/// A group of calls, ended in any case: while one is open on a thread, aborting a communicator from there
/// only becomes part of it, and every later call waits in it.
class NcclGroup {
 public:
  explicit NcclGroup(const std::string& where) : where_(where) {
    check(ncclGroupStart(), "ncclGroupStart", where_);
  }
  ~NcclGroup() {
    if (open_) ncclGroupEnd();  // the failure has been reported
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end() {
    open_ = false;
    check(ncclGroupEnd(), "ncclGroupEnd", where_);
  }

 private:
  const std::string& where_;
  bool open_ = true;
};

ncclDataType_t type_of(kernels::DType type) {
  switch (type) {
    case kernels::DType::f32:
      return ncclFloat32;
    case kernels::DType::bf16:
      return ncclBfloat16;
    case kernels::DType::f16:
      return ncclFloat16;
    case kernels::DType::i8:
      return ncclInt8;
  }
  return ncclInt8;
}

/// `factor` in the element type, for ncclRedOpCreatePreMulSum. The bits are in the low bytes, where NCCL
/// reads size_of(type) of them (little endian).
std::uint32_t scalar_of(float factor, kernels::DType type) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &factor, sizeof bits);
  // Round to nearest, ties to even: bf16 is the upper half of an fp32.
  if (type == kernels::DType::bf16) return (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  if (type != kernels::DType::f16) return bits;
  // A mean's factor 1/n of up to 2^14 ranks is a normal number in fp16.
  const auto half = static_cast<_Float16>(factor);
  std::uint16_t narrow = 0;
  std::memcpy(&narrow, &half, sizeof narrow);
  return narrow;
}

}  // namespace

/// Watches the collectives of one communicator until the device has finished them.
///
/// NCCL's kernels spin on the device until their peers arrive; no host call waits for them, so none can time
/// out. This thread does: it checks the oldest unfinished collective every 100 ms, and aborts the
/// communicator when its time-out has passed, NCCL reports an error, or another rank has failed. Two locks.
/// mutex_ guards the list and the text. comm_mutex_ keeps ncclCommAbort away from a move() that is queueing
/// calls on the same communicator; it is not taken while mutex_ is held, and move() takes mutex_ (watch())
/// inside it.
class NcclTransport::Watchdog {
 public:
  Watchdog(ncclComm_t& comm, std::mutex& comm_mutex, Transport& host, std::string where, int ordinal)
      : comm_(comm), comm_mutex_(comm_mutex), host_(host), where_(std::move(where)), ordinal_(ordinal) {
    thread_ = std::thread([this] { run(); });
  }
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // `until` is relative to the time of queueing, so earlier work of the stream is part of the bound.
  void watch(device::cuda::EventPool::Handle reached, Clock::time_point until, std::string what) {
    const std::lock_guard lock(mutex_);
    watched_.push_back({std::move(reached), until, std::move(what)});
  }
  /// Throws BackendError if the watchdog has aborted the communicator.
  void check_failure() const {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw BackendError("NCCL", 0, failure_, where_);
  }

 private:
  struct Watched {
    device::cuda::EventPool::Handle reached;
    Clock::time_point until;  ///< when the watchdog gives up on it
    std::string what;
  };

  /// The device has finished it, or has failed (its next call then reports that).
  [[nodiscard]] bool ended(const Watched& one) const {
    try {
      return device::cuda::reached(one.reached.get(), where_);
    } catch (const BackendError&) {
      return true;
    }
  }

  /// Describes the failure of the oldest collective; empty: none.
  std::string problem(const Watched& oldest) {
    ncclResult_t state = ncclSuccess;
    // Without comm_mutex_: only this thread sets comm_ to null, and does not use it afterwards (failure_ is
    // set).
    if (ncclCommGetAsyncError(comm_, &state) == ncclSuccess && state != ncclSuccess &&
        state != ncclInProgress) {
      // NCCL names the communicator's error, not the call's: the oldest one that has not ended is the likely
      // place.
      return std::string(ncclGetErrorString(state)) + " in " + oldest.what;
    }
    try {
      host_.check_failure();
    } catch (const BackendError& error) {
      return error.what();
    }
    if (Clock::now() > oldest.until) return oldest.what + " did not come to its end in time";
    return {};
  }

  void run() {
    // A thread starts with device 0; the events belong to this one.
    cudaSetDevice(ordinal_);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, 100ms, [this] { return ends_; })) {
      // In order: collectives of a communicator run on one stream, so they end in the order in which they
      // were queued.
      while (!watched_.empty() && ended(watched_.front())) watched_.pop_front();
      if (watched_.empty() || !failure_.empty()) continue;
      failure_ = problem(watched_.front());
      if (failure_.empty()) continue;
      // Not watched any more: the abort ends them all.
      watched_.clear();
      // move() may hold comm_mutex_ and wait for mutex_ in watch() or check_failure().
      lock.unlock();
      {
        // Kernels that wait for a peer end without a result, and the next call reports the failure.
        const std::lock_guard comm_lock(comm_mutex_);
        ncclCommAbort(comm_);
        comm_ = nullptr;
      }
      lock.lock();
    }
  }

  ncclComm_t& comm_;  ///< State::comm
  std::mutex& comm_mutex_;
  Transport& host_;
  const std::string where_;
  const int ordinal_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Watched> watched_;  ///< oldest first
  std::string failure_;          ///< set when the communicator is aborted, then for good
  bool ends_ = false;
  std::thread thread_;
};

struct NcclTransport::State {
  std::string where;
  ncclComm_t comm = nullptr;  ///< null once aborted
  std::mutex comm_mutex;      ///< held while calls are queued on comm, or it is aborted
  std::shared_ptr<device::cuda::EventPool> events;
  std::unique_ptr<Watchdog> watchdog;
};

NcclTransport::NcclTransport(std::unique_ptr<Transport> host, std::string name, std::uint32_t rank,
                             std::uint32_t world, int ordinal, std::chrono::milliseconds timeout)
    : host_(std::move(host)),
      name_(std::move(name)),
      rank_(rank),
      world_(world),
      timeout_(timeout),
      state_(std::make_unique<State>()) {
  state_->where = "communicator '" + name_ + "', rank " + std::to_string(rank);
  // Created by the group's first rank, 128 bytes, sent over the host's transport: NCCL connects through it.
  ncclUniqueId id{};
  if (rank == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId", state_->where);
  host_->host_broadcast(std::as_writable_bytes(std::span(id.internal)), 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  // Every call returns at once, so each wait is a loop here, with a bound and a check of the peers
  // (settle()).
  config.blocking = 0;
  config.commName = name_.c_str();
  try {
    check(ncclCommInitRankConfig(&state_->comm, static_cast<int>(world), id, static_cast<int>(rank), &config),
          "ncclCommInitRankConfig", state_->where);
    settle("ncclCommInitRankConfig");
  } catch (...) {  // threads of NCCL may still be waiting for the peers
    if (state_->comm != nullptr) ncclCommAbort(state_->comm);
    throw;
  }
  // Without timing: the events are only queried for completion.
  state_->events = std::make_shared<device::cuda::EventPool>(cudaEventDisableTiming, state_->where);
  state_->watchdog =
      std::make_unique<Watchdog>(state_->comm, state_->comm_mutex, *host_, state_->where, ordinal);
}

NcclTransport::~NcclTransport() {
  const bool failed = has_failed();
  // First: no thread aborts the communicator below at the same time.
  state_->watchdog.reset();
  if (state_->comm == nullptr) return;
  if (failed) {  // failed peers would not take part in the finalization
    ncclCommAbort(state_->comm);
    return;
  }
  // Non-blocking: destroying may still wait for peers, so it is finalized first, for a bounded time.
  ncclCommFinalize(state_->comm);
  const auto until = Clock::now() + timeout_;
  ncclResult_t progress = ncclInProgress;
  // Ends too when a rank fails meanwhile: that one does not finalize.
  while (ncclCommGetAsyncError(state_->comm, &progress) == ncclSuccess && progress == ncclInProgress &&
         Clock::now() < until && !has_failed()) {
    std::this_thread::sleep_for(1ms);
  }
  // Finalized: the communicator is quiescent, so destroying it waits for no peer.
  if (progress == ncclSuccess) {
    ncclCommDestroy(state_->comm);
  } else {
    ncclCommAbort(state_->comm);
  }
}

/// Whether this communicator or any rank failed; for the destructor, which must not throw.
bool NcclTransport::has_failed() const noexcept {
  try {
    if (state_->watchdog) state_->watchdog->check_failure();
    host_->check_failure();
    return false;
  } catch (...) {
    return true;
  }
}

std::string NcclTransport::describe() const {
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion", state_->where);
  return "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// Waits until a call of the non-blocking communicator has completed. Bounds the call itself; the watchdog
/// bounds the collective on the device.
void NcclTransport::settle(const char* call) {
  const auto until = Clock::now() + timeout_;
  ncclResult_t progress = ncclInProgress;
  for (;;) {
    check(ncclCommGetAsyncError(state_->comm, &progress), "ncclCommGetAsyncError", state_->where);
    check(progress, call, state_->where);
    if (progress == ncclSuccess) return;
    host_->check_failure();
    if (Clock::now() > until) {
      throw BackendError(call, 0, "did not come to its end in " + std::to_string(timeout_.count()) + " ms",
                         state_->where);
    }
    std::this_thread::sleep_for(50us);
  }
}

/// Queues one part within the open group; element counts, not bytes, where NCCL takes a type. Called with
/// comm_mutex.
void NcclTransport::queue_part(const Collective& c, const Part& part, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const std::size_t size = kernels::size_of(c.type);
  const ncclDataType_t type = type_of(c.type);
  const auto* source = static_cast<const std::byte*>(part.source);
  auto* target = static_cast<std::byte*>(part.target);
  const auto extent = static_cast<std::size_t>(part.extent);
  const auto elems = static_cast<std::size_t>(part.elems);
  ncclComm_t comm = state_->comm;
  ncclRedOp_t sum = ncclSum;
  const bool reduces = c.op == CollectiveOp::reduce_scatter || c.op == CollectiveOp::reduce ||
                       c.op == CollectiveOp::all_reduce;
  // Each rank's input is multiplied before the sum, not the sum after it: with 1/n a sum of f16 gradients
  // stays in range. The order of additions is NCCL's (ring, tree), so bits differ from the host's transports.
  const bool scaled = reduces && c.factor != 1.0F;
  if (scaled) {
    // ncclScalarHostImmediate: read before the call returns, so a local suffices.
    std::uint32_t scalar = scalar_of(c.factor, c.type);
    check(ncclRedOpCreatePreMulSum(&sum, &scalar, type, ncclScalarHostImmediate, comm),
          "ncclRedOpCreatePreMulSum", state_->where);
  }
  switch (c.op) {
    case CollectiveOp::all_gather:
      // In place where source is target + rank * extent, which NCCL recognises.
      check(ncclAllGather(source, target, extent, type, comm, on), "ncclAllGather", state_->where);
      break;
    case CollectiveOp::reduce_scatter: {
      if (elems == extent * world_) {
        check(ncclReduceScatter(source, target, extent, type, sum, comm, on), "ncclReduceScatter",
              state_->where);
        break;
      }
      // The last shards are short, and ncclReduceScatter would read beyond the input: one reduce per rank's
      // range.
      for (std::uint32_t r = 0; r < world_; ++r) {
        const std::size_t begin = std::min(elems, extent * r);
        const std::size_t end = std::min(elems, extent * (r + 1));
        // Skipped on every rank alike, since elems and extent agree.
        if (begin == end) continue;
        check(
            ncclReduce(source + begin * size, target, end - begin, type, sum, static_cast<int>(r), comm, on),
            "ncclReduce", state_->where);
      }
      break;
    }
    case CollectiveOp::reduce:
      check(ncclReduce(source, target, elems, type, sum, static_cast<int>(part.root), comm, on), "ncclReduce",
            state_->where);
      break;
    case CollectiveOp::all_reduce:
      check(ncclAllReduce(source, target, elems, type, sum, comm, on), "ncclAllReduce", state_->where);
      break;
    case CollectiveOp::all_to_all:
      for (std::uint32_t r = 0; r < world_; ++r) {
        // source and target (world, extent): row r goes to and comes from rank r. Within a group call, so
        // sends and receives do not wait for one another.
        check(ncclSend(source + r * extent * size, extent, type, static_cast<int>(r), comm, on), "ncclSend",
              state_->where);
        check(ncclRecv(target + r * extent * size, extent, type, static_cast<int>(r), comm, on), "ncclRecv",
              state_->where);
      }
      break;
    case CollectiveOp::broadcast:
    case CollectiveOp::barrier:
    case CollectiveOp::send:
    case CollectiveOp::receive:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      break;
  }
  // NCCL allows this as soon as the last call that was given the operator has returned.
  if (scaled) check(ncclRedOpDestroy(sum, comm), "ncclRedOpDestroy", state_->where);
}

void NcclTransport::move(const Collective& collective, const kernels::Exec& exec) {
  const auto stream = static_cast<cudaStream_t>(exec.cuda->stream());
  // Held over all calls: the watchdog must not abort the communicator between them.
  const std::lock_guard lock(state_->comm_mutex);
  // Null means that the watchdog aborted it: this throws its reason.
  if (state_->comm == nullptr) check_failure();
  const instrumentation::NcclCalls calls(collective.sequence);  // for NCCL's profiler plugin, if it is loaded
  // One launch for all parts of the collective.
  NcclGroup group(state_->where);
  for (const Part& part : collective.parts) queue_part(collective, part, stream);
  group.end();
  settle(name_of(collective.op));
  if (collective.op == CollectiveOp::reduce_scatter) {
    const std::size_t size = kernels::size_of(collective.type);
    for (const Part& part : collective.parts) {  // elements beyond the last one are set to zero
      const std::int64_t begin = std::min(part.elems, part.extent * rank_);
      const std::int64_t end = std::min(part.elems, part.extent * (rank_ + 1));
      const auto filled = static_cast<std::size_t>(end - begin);
      const std::size_t rest = static_cast<std::size_t>(part.extent) - filled;
      if (rest == 0) continue;
      device::cuda::check(
          cudaMemsetAsync(static_cast<std::byte*>(part.target) + filled * size, 0, rest * size, stream),
          "cudaMemsetAsync", state_->where);
    }
  }
  // Recorded after the collective on its stream: reached when the device has finished it.
  device::cuda::EventPool::Handle reached = state_->events->take();
  device::cuda::check(cudaEventRecord(reached.get(), stream), "cudaEventRecord", state_->where);
  state_->watchdog->watch(
      std::move(reached), Clock::now() + timeout_,
      std::string(name_of(collective.op)) + " number " + std::to_string(collective.sequence));
}

void NcclTransport::check_failure() const {
  state_->watchdog->check_failure();
  host_->check_failure();
}

void NcclTransport::abandon() noexcept { host_->abandon(); }

}  // namespace shardscope::comm
