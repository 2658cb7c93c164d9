// The part of NCCL that runtime/comm/cuda uses, among threads of one process: what it takes from its manual
// is order within a communicator, groups that are one operation, results in place, non-blocking communicators
// that must be asked until they are done, and aborting, after which what waits leaves. What the manual calls
// wrong ends the program with a message.
#include "tests/gpu/host_cuda/nccl.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/host_cuda/numbers.h"
#include "tests/gpu/host_cuda/runtime.h"

using namespace shardscope;

namespace {

enum class Kind { all_gather, reduce_scatter, reduce, all_reduce, send, receive };

struct Operation {
  Kind kind{};
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type{};
  float factor = 1;  ///< of each rank's values before the sum
  int peer = 0;      ///< or root
};

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "host NCCL: %s\n", what);
  std::abort();
}

kernels::DType of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return kernels::DType::f32;
    case ncclBfloat16:
      return kernels::DType::bf16;
    case ncclFloat16:
      return kernels::DType::f16;
    case ncclInt8:
      return kernels::DType::i8;
    default:
      wrong("a type that the project does not have");
  }
}
std::size_t size_of(ncclDataType_t type) { return kernels::size_of(of(type)); }
float load(const void* at, ncclDataType_t type, std::size_t i) {
  if (type == ncclInt8) wrong("sums of bytes are not supported");
  return host_cuda::load(at, of(type), static_cast<std::int64_t>(i));
}
void store(void* at, ncclDataType_t type, std::size_t i, float x) {
  host_cuda::store(at, of(type), static_cast<std::int64_t>(i), x);
}
const std::byte* at(const void* p, std::size_t bytes) { return static_cast<const std::byte*>(p) + bytes; }

/// The ranks of a communicator.
struct Clique {
  explicit Clique(int n) : groups(static_cast<std::size_t>(n)) {}
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0, arrived = 0, finalized = 0;
  std::uint64_t done = 0;
  bool broken = false;  ///< somebody has aborted: the others' operations end when they abort themselves
  std::vector<const std::vector<Operation>*> groups;  ///< of each rank, of the operation under way

  [[nodiscard]] int world() const { return static_cast<int>(groups.size()); }

  /// One group of every rank; the last to come does all of it. Without result once the rank has aborted.
  void run(int rank, const std::vector<Operation>& mine, const bool& aborted) {
    std::unique_lock lock(mutex);
    if (aborted) return;
    groups[static_cast<std::size_t>(rank)] = &mine;
    const std::uint64_t before = done;
    if (++arrived == world() && !broken) {
      execute();
      arrived = 0;
      ++done;
      changed.notify_all();
      return;
    }
    changed.wait(lock, [&] { return done > before || aborted; });
  }

 private:
  struct Result {
    void* to;
    std::vector<std::byte> bytes;
  };
  std::vector<Result> results_;  ///< written once everything has been read, as results may be in place

  void execute() {
    results_.clear();
    for (std::size_t i = 0; i < groups[0]->size(); ++i) {
      const Operation& first = (*groups[0])[i];
      if (first.kind == Kind::send || first.kind == Kind::receive) continue;
      for (const auto* group : groups) {
        if (group->size() != groups[0]->size()) wrong("ranks have groups of different lengths");
        const Operation& one = (*group)[i];
        if (one.kind != first.kind || one.count != first.count || one.type != first.type ||
            one.peer != first.peer)
          wrong("ranks do different things");
      }
      collective(i);
    }
    exchange();
    for (const Result& result : results_) std::memcpy(result.to, result.bytes.data(), result.bytes.size());
  }

  void collective(std::size_t i) {
    const Operation& first = (*groups[0])[i];
    const std::size_t part = first.count * size_of(first.type);
    for (int r = 0; r < world(); ++r) {
      const Operation& mine = (*groups[static_cast<std::size_t>(r)])[i];
      const auto whole = part * static_cast<std::size_t>(world());
      const auto offset = part * static_cast<std::size_t>(r);
      switch (first.kind) {
        case Kind::all_gather: {
          in_place_or_apart(mine.send, part, mine.receive, whole, at(mine.receive, offset) == mine.send);
          Result result{mine.receive, std::vector<std::byte>(whole)};
          for (int k = 0; k < world(); ++k)
            std::memcpy(result.bytes.data() + part * static_cast<std::size_t>(k),
                        (*groups[static_cast<std::size_t>(k)])[i].send, part);
          results_.push_back(std::move(result));
          break;
        }
        case Kind::reduce_scatter:
          in_place_or_apart(mine.send, whole, mine.receive, part, at(mine.send, offset) == mine.receive);
          results_.push_back(summed(i, mine, first.count * static_cast<std::size_t>(r)));
          break;
        case Kind::reduce:
          if (mine.peer != r) break;
          [[fallthrough]];
        case Kind::all_reduce:
          in_place_or_apart(mine.send, part, mine.receive, part, mine.send == mine.receive);
          results_.push_back(summed(i, mine, 0));
          break;
        default:
          break;
      }
    }
  }

  Result summed(std::size_t i, const Operation& mine, std::size_t offset) {
    Result result{mine.receive, std::vector<std::byte>(mine.count * size_of(mine.type))};
    for (std::size_t e = 0; e < mine.count; ++e) {
      float sum = 0;
      for (const auto* group : groups)
        sum += load((*group)[i].send, mine.type, offset + e) * (*group)[i].factor;
      store(result.bytes.data(), mine.type, e, sum);
    }
    return result;
  }

  /// The n-th send of a to b goes to the n-th receive of b from a.
  void exchange() {
    for (int a = 0; a < world(); ++a) {
      for (int b = 0; b < world(); ++b) {
        const auto of = [&](int rank, Kind kind, int peer) {
          std::vector<const Operation*> found;
          for (const Operation& one : *groups[static_cast<std::size_t>(rank)]) {
            if (one.kind == kind && one.peer == peer) found.push_back(&one);
          }
          return found;
        };
        const auto sends = of(a, Kind::send, b);
        const auto receives = of(b, Kind::receive, a);
        if (sends.size() != receives.size()) wrong("a send without its receive in a group");
        for (std::size_t i = 0; i < sends.size(); ++i) {
          if (sends[i]->count != receives[i]->count) wrong("a send and its receive of different sizes");
          const auto* from = static_cast<const std::byte*>(sends[i]->send);
          results_.push_back(
              {receives[i]->receive, {from, from + sends[i]->count * size_of(sends[i]->type)}});
        }
      }
    }
  }

  static void in_place_or_apart(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes,
                                bool in_place) {
    if (!in_place && a < at(b, b_bytes) && b < at(a, a_bytes))
      wrong("send and receive overlap, not in place");
  }
};

std::mutex g_mutex;
std::map<std::uint64_t, std::shared_ptr<Clique>> g_cliques;
std::uint64_t g_ids = 0;

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  /// How often it will yet answer "in progress".
  std::atomic<int> busy{0};
  std::shared_ptr<bool> aborted = std::make_shared<bool>(false);  ///< under the clique's mutex
  bool finalizes = false;                                         ///< done once all ranks do
  std::map<int, float> factors;                                   ///< of its own operations
  int next_operation = ncclNumOps;
};

namespace {

thread_local int t_depth = 0;
thread_local ncclResult_t t_refused = ncclSuccess;  ///< what a call of the open group was answered
struct Queued {
  ncclComm* comm;
  cudaStream_t stream;
  Operation operation;
};
thread_local std::vector<Queued> t_group;

ncclResult_t launch_group() {
  if (t_group.empty()) return ncclSuccess;
  ncclComm* const comm = t_group.front().comm;
  const cudaStream_t stream = t_group.front().stream;
  std::vector<Operation> operations;
  for (Queued& one : t_group) {
    if (one.comm != comm || one.stream != stream) wrong("a group of several communicators or streams");
    operations.push_back(one.operation);
  }
  t_group.clear();
  comm->busy = 2;
  shardscope::host_cuda::launch(
      stream, "ncclDevKernel",
      [clique = comm->clique, rank = comm->rank, aborted = comm->aborted,
       operations = std::move(operations)] { clique->run(rank, operations, *aborted); });
  return ncclInProgress;
}

/// What an open group would only put off.
void outside_of_groups(const char* what) {
  if (t_depth > 0) wrong(what);
}

ncclResult_t queue(ncclComm* comm, cudaStream_t stream, Operation operation) {
  if (std::exchange(shardscope::host_cuda::refuse_next_operation, false)) {
    if (t_depth > 0) t_refused = ncclInvalidArgument;
    return ncclInvalidArgument;
  }
  if (comm->busy > 0) wrong("a communicator is used before its last operation has reported success");
  operation.send = shardscope::host_cuda::seen_by_device(operation.send, "NCCL");
  operation.receive = shardscope::host_cuda::seen_by_device(operation.receive, "NCCL");
  t_group.push_back({comm, stream, operation});
  return t_depth > 0 ? ncclSuccess : launch_group();
}

float factor_of(ncclComm* comm, ncclRedOp_t op) {
  if (op == ncclSum) return 1;
  const auto known = comm->factors.find(op);
  if (known == comm->factors.end()) wrong("an operation that was destroyed or never made");
  return known->second;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "result of host NCCL"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(g_mutex);
  std::memset(id, 0, sizeof *id);
  ++g_ids;
  std::memcpy(id->internal, &g_ids, sizeof g_ids);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) wrong("a communicator that blocks");
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  auto* made = new ncclComm;
  {
    const std::lock_guard lock(g_mutex);
    auto& clique = g_cliques[number];
    if (clique == nullptr) clique = std::make_shared<Clique>(ranks);
    made->clique = clique;
  }
  made->rank = rank;
  const std::lock_guard lock(made->clique->mutex);
  ++made->clique->joined;
  *comm = made;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  const std::lock_guard lock(comm->clique->mutex);
  const Clique& clique = *comm->clique;
  const bool waits = clique.joined < clique.world() || (comm->finalizes && clique.finalized < clique.world());
  *result = waits || comm->busy > 0 ? ncclInProgress : ncclSuccess;
  if (!waits && comm->busy > 0) --comm->busy;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  outside_of_groups("a communicator is finalized while a group is open");
  const std::lock_guard lock(comm->clique->mutex);
  ++comm->clique->finalized;
  comm->finalizes = true;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  outside_of_groups("a communicator is aborted while a group is open");
  {
    const std::lock_guard lock(comm->clique->mutex);
    comm->clique->broken = true;
    *comm->aborted = true;
    comm->clique->changed.notify_all();
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++t_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (t_depth == 0) wrong("a group ends that did not start");
  if (--t_depth > 0) return ncclSuccess;
  if (t_refused == ncclSuccess) return launch_group();
  t_group.clear();  // nothing of it is done
  return std::exchange(t_refused, ncclSuccess);
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  if (residence != ncclScalarHostImmediate) wrong("a scalar on the device");
  *op = static_cast<ncclRedOp_t>(comm->next_operation++);
  comm->factors[*op] = load(scalar, type, 0);
  return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return comm->factors.erase(op) == 1 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return queue(comm, stream, {Kind::all_gather, send, receive, count, type, 1, 0});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return queue(comm, stream, {Kind::reduce_scatter, send, receive, count, type, factor_of(comm, op), 0});
}
ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return queue(comm, stream, {Kind::reduce, send, receive, count, type, factor_of(comm, op), root});
}
ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return queue(comm, stream, {Kind::all_reduce, send, receive, count, type, factor_of(comm, op), 0});
}
ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return queue(comm, stream, {Kind::send, send, nullptr, count, type, 1, peer});
}
ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return queue(comm, stream, {Kind::receive, nullptr, receive, count, type, 1, peer});
}
}
