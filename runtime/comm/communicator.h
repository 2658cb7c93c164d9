// Collectives over one group of ranks: asynchronous, ordered on the given stream, one communicator per stream
// that uses it (all-gather and reduce never share one). Every wait is bounded; a rank that failed makes the
// others fail within the time-out instead of hanging.
//
// [Note: in place]
// A coalesced gather or reduce is a list of parts, one per parameter, each read and written in place (NCCL
// group calls, direct reads of the peers' shared memory, successive MPI calls). Nothing is packed. Memory
// must come from Device::memory().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/types.h"
#include "runtime/device/device.h"

namespace shardscope::comm {

/// rank r contributes shard[0, shard_elems); afterwards full[r*shard_elems, ...) holds it on every rank.
/// `shard` may be full + rank*shard_elems.
struct GatherPart {
  const void* shard = nullptr;
  void* full = nullptr;
  std::int64_t shard_elems = 0;
  std::uint32_t param = instrumentation::kNoId;  ///< for the event; kNoId for flat buffers
};
/// out[0, shard_elems) = factor * sum over ranks, in rank order, of full[rank*shard_elems, ...). The last
/// shard of `full` may be short: only full_elems are read, the rest of `out` is zero.
struct ReduceScatterPart {
  const void* full = nullptr;
  std::int64_t full_elems = 0;
  void* out = nullptr;
  std::int64_t shard_elems = 0;
  std::uint32_t param = instrumentation::kNoId;
};
/// On `root`: out[0, elems) = factor * sum over ranks, in rank order, of in[0, elems). out may be in.
struct ReducePart {
  const void* in = nullptr;
  void* out = nullptr;  ///< used on root only
  std::int64_t elems = 0;
  std::uint32_t root = 0;
  std::uint32_t param = instrumentation::kNoId;
};

/// receive[k*chunk_elems, ...) = send[own rank * chunk_elems, ...) of rank k; both hold one chunk for every
/// rank of the communicator and do not overlap.
struct AllToAllPart {
  const void* send = nullptr;
  void* receive = nullptr;
  std::int64_t chunk_elems = 0;
  std::uint32_t param = instrumentation::kNoId;
};

/// On every rank: data[0, elems) = factor * sum over ranks, in rank order, of data[0, elems).
struct AllReducePart {
  void* data = nullptr;
  std::int64_t elems = 0;
  std::uint32_t param = instrumentation::kNoId;  ///< for the event; kNoId for ranges of several parameters
};

/// Fields of the collective's events.
struct CollectiveLabel {
  std::uint32_t group_id = instrumentation::kNoId;  ///< GatherId or BucketId that caused it
  std::int64_t packing = 1;  ///< elements in one unit of the type: 2 for int4 values in bytes
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t world() const noexcept = 0;
  [[nodiscard]] virtual std::string describe() const = 0;  ///< "shared memory", "MPI", "NCCL"

  // Each emits collective_submitted at the call and collective_begin / _end when the stream reaches it, with
  // the elements and bytes of metrics.md 2.3. `factor` scales the sum (1/world for a mean).
  virtual void all_gather(std::span<const GatherPart> parts, kernels::DType type, device::Stream& stream,
                          CollectiveLabel label) = 0;
  virtual void reduce_scatter(std::span<const ReduceScatterPart> parts, kernels::DType type, float factor,
                              device::Stream& stream, CollectiveLabel label) = 0;
  virtual void reduce(std::span<const ReducePart> parts, kernels::DType type, float factor,
                      device::Stream& stream, CollectiveLabel label) = 0;
  /// In place; every rank gets bitwise the same sum in rank order.
  virtual void all_reduce(std::span<const AllReducePart> parts, kernels::DType type, float factor,
                          device::Stream& stream, CollectiveLabel label) = 0;
  virtual void all_to_all(std::span<const AllToAllPart> parts, kernels::DType type, device::Stream& stream,
                          CollectiveLabel label) = 0;
  /// Small host-side values (norms, overflow flags, losses), fixed rank order; blocks the host.
  virtual void all_reduce_host(std::span<double> values) = 0;
  virtual void max_host(std::span<std::uint64_t> values) = 0;
  virtual void broadcast_host(std::span<std::byte> bytes, std::uint32_t root) = 0;
  virtual void barrier_host() = 0;
};

/// The ranks of a communicator. The groups that the ranks of a world pass in one call are equal or disjoint.
struct Group {
  std::vector<std::uint32_t> members;  ///< world ranks, ascending; rank i of the communicator is members[i]
  instrumentation::CollectiveScope scope = instrumentation::CollectiveScope::world;
  std::uint32_t id = 0;  ///< for scope `group`: its id in the run's tables
};

}  // namespace shardscope::comm
