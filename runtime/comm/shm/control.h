// Layout of the control pages, one mapping per node, zeroed at the start, shared by all its ranks: who failed
// first, and for each communicator two channels (stream and host) with their barriers and tables. Disjoint
// groups of ranks share a channel: the tables are by rank, and each group uses the barriers of its first
// member.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/comm/collective.h"
#include "runtime/comm/transport.h"

namespace shardscope::comm {

inline constexpr std::size_t kMaxCommunicators = 64;
inline constexpr std::size_t kFailureText = 2000;

/// The last to arrive opens the next generation and wakes the others.
/// Both words in one cache line of their own: barriers of different groups do not share lines.
struct alignas(64) Barrier {
  std::atomic<std::uint32_t> arrived;     ///< members that have arrived in the current generation
  std::atomic<std::uint32_t> generation;  ///< futex word; grows by one for each barrier
};

/// Set by the first rank that fails: claimed by a compare-and-swap, then filled, then published. A rank ended
/// by an exception sets `provisional` (rank, no text) at once and publishes the text later.
struct FailureNote {
  enum State : std::uint32_t { none = 0, claimed = 1, provisional = 2, published = 3 };
  std::atomic<std::uint32_t> state;
  std::uint32_t rank;
  std::array<char, kFailureText> text;  ///< zero-terminated; valid in state `published`
};

struct alignas(64) RankNote {
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> departed;  ///< has destroyed its world, after an error or not
};

/// The data that a rank publishes about its current collective.
struct alignas(64) StreamNote {
  Signature signature;  ///< plain memory: written before the barrier of enter(), read after it
  std::array<std::uint64_t, Transport::kMaxParts> sources;  ///< offsets into the rank's region
};

struct alignas(64) HostNote {
  struct Round {
    std::array<char, 24> what;  ///< name of the call, zero-terminated
    std::uint64_t calls;        ///< host calls of this communicator before it; for messages
    std::uint64_t bytes;        ///< per rank; in `data` on contributing ranks
    std::array<std::byte, Transport::kMaxHostBytes> data;
  };
  std::array<Round, 2> rounds;  ///< used alternately, so that one barrier per call is enough
};

/// Arrivals at each barrier so far, by rank: names the missing ranks when a wait fails.
struct alignas(64) ArrivalNote {
  std::atomic<std::uint64_t> stream;
  std::atomic<std::uint64_t> host;
};

/// Typed view of the control mapping for `ranks` ranks.
class ControlPages {
 public:
  ControlPages(std::byte* base, std::uint32_t ranks) noexcept : base_(base), ranks_(ranks) {}
  [[nodiscard]] static std::size_t bytes(std::uint32_t ranks) noexcept {
    return header_bytes(ranks) + kMaxCommunicators * communicator_bytes(ranks);
  }
  [[nodiscard]] FailureNote& failure() const noexcept { return *reinterpret_cast<FailureNote*>(base_); }
  [[nodiscard]] RankNote& rank(std::uint32_t r) const noexcept {
    return *reinterpret_cast<RankNote*>(base_ + kFailureBytes + r * sizeof(RankNote));
  }
  struct Channel {
    Barrier* stream_barrier = nullptr;
    Barrier* host_barrier = nullptr;
    ArrivalNote* arrivals = nullptr;  ///< [ranks]
    StreamNote* stream = nullptr;     ///< [ranks]
    HostNote* host = nullptr;         ///< [ranks]
  };
  /// Channel `index`, with the barriers of the group whose first member is `leader`.
  [[nodiscard]] Channel communicator(std::size_t index, std::uint32_t leader) const noexcept {
    std::byte* at = base_ + header_bytes(ranks_) + index * communicator_bytes(ranks_);
    Channel channel;
    auto* barriers = reinterpret_cast<Barrier*>(at);
    channel.stream_barrier = barriers + 2 * leader;
    channel.host_barrier = barriers + 2 * leader + 1;
    channel.arrivals = reinterpret_cast<ArrivalNote*>(barriers + 2 * ranks_);
    channel.stream = reinterpret_cast<StreamNote*>(channel.arrivals + ranks_);
    channel.host = reinterpret_cast<HostNote*>(channel.stream + ranks_);
    return channel;
  }

 private:
  static constexpr std::size_t kFailureBytes = 4096;
  static_assert(sizeof(FailureNote) <= kFailureBytes);
  [[nodiscard]] static constexpr std::size_t header_bytes(std::uint32_t ranks) noexcept {
    return (kFailureBytes + ranks * sizeof(RankNote) + 4095) / 4096 * 4096;
  }
  [[nodiscard]] static constexpr std::size_t communicator_bytes(std::uint32_t ranks) noexcept {
    return ranks * (2 * sizeof(Barrier) + sizeof(ArrivalNote) + sizeof(StreamNote) + sizeof(HostNote));
  }
  std::byte* base_;
  std::uint32_t ranks_;
};

}  // namespace shardscope::comm
