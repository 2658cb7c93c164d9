// Moves the bytes of one communicator: the part that differs between shared memory, MPI and NCCL.
// CommunicatorCore does the checks, events and the emulated link.
//
// enter, move and leave run on the stream's worker thread, the host_* on the host thread, possibly at the
// same time: an implementation keeps their state separate. Every wait is bounded and throws BackendError if a
// rank failed, ended, or did not arrive within the time-out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/types.h"
#include "runtime/comm/collective.h"

namespace shardscope::comm {

class Transport {
 public:
  /// Maximum number of parts of one enter().
  static constexpr std::size_t kMaxParts = 4096;
  /// Maximum bytes per rank of one host_all_gather or host_broadcast.
  static constexpr std::size_t kMaxHostBytes = std::size_t{32} << 10;

  virtual ~Transport() = default;
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Host thread, at the call: can the peers read this memory? Throws BackendError when not.
  virtual void check_memory(const void* data, std::size_t bytes) const = 0;
  /// Returns when all ranks have arrived with the same signature.
  virtual void enter(const Collective& collective) = 0;
  virtual void move(const Collective& collective, const kernels::Exec& exec) = 0;
  /// Returns when no rank reads this rank's memory any more.
  virtual void leave(const Collective& collective) = 0;
  /// move() queues its work on the device and returns before it has finished: the calling thread can neither
  /// time nor delay it, and enter() and leave() wait for no rank.
  [[nodiscard]] virtual bool asynchronous() const noexcept { return false; }
  /// The ranks compare each collective before one of them touches another's memory, in enter() or where the
  /// bytes are moved.
  [[nodiscard]] virtual bool compares() const noexcept { return true; }
  /// Throws when a rank has failed.
  virtual void check_failure() const = 0;
  /// An exception is ending this rank; World::fail may send its message later.
  virtual void abandon() noexcept = 0;

  /// all[k*mine.size() ...) = mine of rank k. `what` names the call, the same on every rank.
  virtual void host_all_gather(const char* what, std::span<const std::byte> mine,
                               std::span<std::byte> all) = 0;
  virtual void host_broadcast(std::span<std::byte> bytes, std::uint32_t root) = 0;
};

}  // namespace shardscope::comm
