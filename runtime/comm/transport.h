// How the bytes of one communicator move. The part that differs between shared memory and MPI; checking,
// events and the emulated link are CommunicatorCore's.
//
// enter, move and leave run on the stream's worker thread, the host_* on the host thread, possibly at the
// same time: an implementation keeps the two apart. Every wait is bounded and throws BackendError when a
// rank failed, ended, or did not come within the time-out.
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
  /// Longest list of parts that one enter() takes.
  static constexpr std::size_t kMaxParts = 4096;
  /// Most bytes one host_all_gather or host_broadcast takes from one rank.
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
  /// move() queues what it does on the device and returns before that is done: nothing of it can be timed or
  /// held back on the calling thread, and enter() and leave() wait for no rank.
  [[nodiscard]] virtual bool asynchronous() const noexcept { return false; }
  /// The ranks compare each collective before one of them touches another's memory, in enter() or where the
  /// bytes are moved.
  [[nodiscard]] virtual bool compares() const noexcept { return true; }
  /// Throws when a rank has failed.
  virtual void check_failure() const = 0;
  /// This rank is being left by an exception whose message World::fail may send later.
  virtual void abandon() noexcept = 0;

  /// all[k*mine.size() ...) = mine of rank k. `what` names the call, alike on every rank.
  virtual void host_all_gather(const char* what, std::span<const std::byte> mine,
                               std::span<std::byte> all) = 0;
  virtual void host_broadcast(std::span<std::byte> bytes, std::uint32_t root) = 0;
};

}  // namespace shardscope::comm
