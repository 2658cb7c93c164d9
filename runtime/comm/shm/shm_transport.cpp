// Collectives of ranks on one node, by direct reads of each other's regions.
//
// [Note: a collective in shared memory]
//   enter   publish the offsets of this rank's parts and the signature; barrier; compare all signatures
//   move    read the peers' parts, write this rank's results; no synchronization inside
//   leave   barrier: from here on no peer reads this rank's memory
// The barriers order everything else: values written before one are seen by all ranks after it. Sums are
// taken over ranks 0, 1, ... in that order at every element, whichever rank computes them, so results do not
// depend on timing.
#include "runtime/comm/shm/shm_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/ops.h"
#include "runtime/device/error.h"

namespace shardscope::comm {

using instrumentation::CollectiveOp;

namespace {

/// The constructor's `members` contain the rank (check_group).
std::uint32_t place_of(std::uint32_t rank, const std::vector<std::uint32_t>& members) {
  return static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
}

}  // namespace

ShmTransport::ShmTransport(Node& node, std::size_t index, std::string name,
                           std::vector<std::uint32_t> members, std::vector<std::span<std::byte>> regions)
    : node_(node),
      members_(std::move(members)),
      rank_(place_of(node.rank(), members_)),
      channel_(node.control().communicator(index, members_.front())),
      name_(std::move(name)),
      regions_(std::move(regions)),
      inputs_(members_.size()) {}

void ShmTransport::check_memory(const void* data, std::size_t bytes) const {
  if (world() == 1 || bytes == 0) return;  // no peer reads it
  const std::span<std::byte> region = regions_[rank_];
  const auto* start = static_cast<const std::byte*>(data);
  if (start < region.data() || start + bytes > region.data() + region.size()) {
    throw BackendError(
        "communicator '" + name_ + "'", 0,
        "the buffer is not in memory that the peers can read; allocate it from Device::memory() of a "
        "device made with World::region()",
        "rank " + std::to_string(node_.rank()));
  }
}

std::byte* ShmTransport::source(std::uint32_t rank, std::size_t part) const noexcept {
  // Offsets, not addresses: each rank maps a region at a different address.
  return regions_[rank].data() + channel_.stream[members_[rank]].sources[part];
}

/// `what` is only called when the wait fails: the text costs nothing otherwise.
void ShmTransport::meet(const Collective& collective) {
  node_.barrier(channel_, members_, Node::Side::stream, [&] {
    return comm::describe(signature_of(collective, calls_ - 1)) + " on communicator '" + name_ + "'";
  });
}

/// The note is plain memory. Peers read it between the barrier of enter() and that of leave(); this rank
/// writes it again in its next enter(), after its own leave(). So one note per rank suffices, without double
/// buffering.
void ShmTransport::enter(const Collective& collective) {
  StreamNote& mine = channel_.stream[members_[rank_]];
  if (world() > 1) {  // a single rank may use any memory: no peer reads it
    const std::byte* base = regions_[rank_].data();
    for (std::size_t i = 0; i < collective.parts.size(); ++i) {
      const auto* from = static_cast<const std::byte*>(collective.parts[i].source);
      // In the region, as check_memory() made sure; null only for parts without elements.
      mine.sources[i] = from == nullptr ? 0 : static_cast<std::uint64_t>(from - base);
    }
  }
  mine.signature = signature_of(collective, calls_++);
  meet(collective);  // publishes `mine`
  for (std::uint32_t r = 1; r < world(); ++r) {
    // All ranks compare the same notes in the same order, so all of them throw the same text, and none reads
    // memory of another shape.
    const Signature& first = channel_.stream[members_[0]].signature;
    const Signature& other = channel_.stream[members_[r]].signature;
    if (same(first, other)) continue;
    const std::string text = mismatch_text(name_, members_[0], first, members_[r], other);
    node_.fail(text);
    throw BackendError(name_of(collective.op), 0, text, "rank " + std::to_string(node_.rank()));
  }
}

/// Between the two barriers. Sources of peers are read only, except in an all-reduce; each target is written
/// by its own rank only. A target inside this rank's own source is safe because no peer reads that range:
/// CommunicatorCore lets it be the rank's own row (all-gather, reduce-scatter), or all of it on the root
/// (reduce), which only this rank reads.
void ShmTransport::move(const Collective& collective, const kernels::Exec& exec) {
  const std::uint32_t rank = rank_;
  const std::size_t size = kernels::size_of(collective.type);
  for (std::size_t i = 0; i < collective.parts.size(); ++i) {
    const Part& part = collective.parts[i];
    switch (collective.op) {
      case CollectiveOp::all_gather:
        gather(part, i, size);
        break;
      case CollectiveOp::reduce_scatter: {
        // Rank r owns [extent * r, extent * (r + 1)) of elems; the range beyond elems is padding and set to
        // 0. Both may be `elems`: a rank beyond the last element has nothing to sum and zeroes its whole
        // target.
        const std::int64_t begin = std::min(part.elems, part.extent * rank);
        const std::int64_t end = std::min(part.elems, part.extent * (rank + 1));
        reduce_range(collective, i, begin, end, part.target, exec);
        const auto filled = static_cast<std::size_t>(end - begin) * size;
        std::memset(static_cast<std::byte*>(part.target) + filled, 0,
                    static_cast<std::size_t>(part.extent) * size - filled);
        break;
      }
      case CollectiveOp::reduce:
        if (part.root == rank) reduce_range(collective, i, 0, part.elems, part.target, exec);
        break;
      case CollectiveOp::all_reduce:
        all_reduce(collective, i, exec);
        break;
      case CollectiveOp::all_to_all:
        exchange(part, i, size);
        break;
      case CollectiveOp::broadcast:
      case CollectiveOp::barrier:
      case CollectiveOp::send:
      case CollectiveOp::receive:
      case CollectiveOp::gather:
      case CollectiveOp::scatter:
        break;
    }
  }
}

/// Every rank sums its own range and stores it at all peers. No other rank reads or writes that range at any
/// rank before the next barrier. The lines stored at a peer were read from there just before, so they are in
/// this core's cache; a peer that fetched the sums would miss in its own.
void ShmTransport::all_reduce(const Collective& collective, std::size_t index, const kernels::Exec& exec) {
  // The copies below read the sum of a piece `world - 1` times right after it was computed.
  constexpr std::int64_t kPieceBytes = 32768;  // of each rank, summed and stored while in the cache
  const Part& part = collective.parts[index];
  const std::size_t size = kernels::size_of(collective.type);
  const std::int64_t piece = kPieceBytes / static_cast<std::int64_t>(size);
  const std::int64_t end = std::min(part.elems, part.extent * (rank_ + 1));
  // `extent` is a multiple of 64 bytes (CommunicatorCore): where `data` is so aligned, no two ranks write to
  // one cache line.
  auto* const data = static_cast<std::byte*>(part.target);
  for (std::int64_t i = std::min(part.elems, part.extent * rank_); i < end; i += piece) {
    const std::int64_t elems = std::min(piece, end - i);
    const std::size_t offset = static_cast<std::size_t>(i) * size;
    // In place: this rank's input of the piece is overwritten by its sum, element by element after it was
    // read.
    reduce_range(collective, index, i, i + elems, data + offset, exec);
    // Begins with the right neighbour, so that not all ranks write to the same region at once.
    for (std::uint32_t step = 1; step < world(); ++step) {
      std::memcpy(source((rank_ + step) % world(), index) + offset, data + offset,
                  static_cast<std::size_t>(elems) * size);
    }
  }
}

/// target [world, extent]: row r is rank r's shard. In place if this rank's shard is already in its own row.
void ShmTransport::gather(const Part& part, std::size_t index, std::size_t size) {
  const std::size_t bytes = static_cast<std::size_t>(part.extent) * size;
  if (bytes == 0) return;
  auto* full = static_cast<std::byte*>(part.target);
  // Each rank begins with its right neighbour, so that not all read the same memory at once.
  for (std::uint32_t step = 0; step < world(); ++step) {
    const std::uint32_t peer = (rank_ + step) % world();
    std::byte* place = full + peer * bytes;
    const void* from = peer == rank_ ? part.source : source(peer, index);
    // Row `peer` of this rank's `full` is read by no peer: a peer reads `source`, which is row `rank_` or
    // elsewhere.
    if (from != place) std::memcpy(place, from, bytes);
  }
}

/// source [world, extent]: row r is for rank r; target [world, extent]: row r is from rank r. They do not
/// overlap.
void ShmTransport::exchange(const Part& part, std::size_t index, std::size_t size) {
  const std::size_t bytes = static_cast<std::size_t>(part.extent) * size;
  if (bytes == 0) return;
  auto* target = static_cast<std::byte*>(part.target);
  for (std::uint32_t step = 0; step < world(); ++step) {
    const std::uint32_t peer = (rank_ + step) % world();
    const auto* from = peer == rank_ ? static_cast<const std::byte*>(part.source) : source(peer, index);
    std::memcpy(target + peer * bytes, from + rank_ * bytes, bytes);
  }
}

/// out[i] = factor * sum over ranks of source[begin + i], for i < end - begin, in the order of ranks.
void ShmTransport::reduce_range(const Collective& collective, std::size_t index, std::int64_t begin,
                                std::int64_t end, void* out, const kernels::Exec& exec) {
  if (begin >= end) return;
  const std::size_t offset = static_cast<std::size_t>(begin) * kernels::size_of(collective.type);
  for (std::uint32_t r = 0; r < world(); ++r) {
    // The own input by its own address: `out` may be the same memory.
    inputs_[r] =
        (r == rank_ ? static_cast<const std::byte*>(collective.parts[index].source) : source(r, index)) +
        offset;
  }
  // In fp32, scaled once after the sum and rounded once: the bits depend on the ranks' order alone, not on
  // how the range was split among ranks, into pieces or over threads.
  kernels::reduce_sum(exec, {out, collective.type}, inputs_.data(), world(), collective.type, end - begin,
                      collective.factor);
}

void ShmTransport::leave(const Collective& collective) { meet(collective); }

// ---- host side -------------------------------------------------------------------------------------------

/// One barrier is enough: a rank that is a call ahead writes the other round, and cannot be two ahead, since
/// its next barrier needs every rank.
/// The host channel has a barrier of its own, so the host thread and the stream's worker may both be in a
/// collective of this communicator.
std::size_t ShmTransport::host_round(const char* what, std::span<const std::byte> mine, std::size_t bytes) {
  // The same on every member: each makes the same host calls in the same order.
  const std::size_t turn = host_calls_ % 2;
  HostNote::Round& own = channel_.host[members_[rank_]].rounds[turn];
  // Fills up with zeros, so the arrays compare whole; the last byte is never written and stays 0.
  std::strncpy(own.what.data(), what, own.what.size() - 1);
  own.calls = host_calls_++;
  own.bytes = bytes;
  if (!mine.empty()) std::memcpy(own.data.data(), mine.data(), mine.size());
  node_.barrier(channel_, members_, Node::Side::host, [&] {
    return std::string(what) + " on communicator '" + name_ + "' (call " + std::to_string(own.calls) + ")";
  });
  const HostNote::Round& first = channel_.host[members_[0]].rounds[turn];
  for (std::uint32_t r = 1; r < world(); ++r) {
    const HostNote::Round& other = channel_.host[members_[r]].rounds[turn];
    // Name and size of the call. A longer name is compared by its first 23 characters.
    if (other.what == first.what && other.bytes == first.bytes) continue;
    const std::string text = host_mismatch_text(name_, members_[0], first.what.data(), first.bytes,
                                                members_[r], other.what.data(), other.bytes);
    node_.fail(text);
    throw BackendError(what, 0, text, "rank " + std::to_string(node_.rank()));
  }
  return turn;
}

/// all (world, mine.size()) bytes, row r from member r. At most kMaxHostBytes of each, ensured by the caller.
void ShmTransport::host_all_gather(const char* what, std::span<const std::byte> mine,
                                   std::span<std::byte> all) {
  const std::size_t turn = host_round(what, mine, mine.size());
  for (std::uint32_t r = 0; r < world(); ++r) {
    std::memcpy(all.data() + r * mine.size(), channel_.host[members_[r]].rounds[turn].data.data(),
                mine.size());
  }
}

void ShmTransport::host_broadcast(std::span<std::byte> bytes, std::uint32_t root) {
  const bool is_root = root == rank_;
  // The root is part of the name, so that different roots are detected.
  const std::string what = "broadcast from " + std::to_string(root);
  const std::size_t turn = host_round(what.c_str(), is_root ? bytes : std::span<std::byte>(), bytes.size());
  if (!is_root)
    std::memcpy(bytes.data(), channel_.host[members_[root]].rounds[turn].data.data(), bytes.size());
}

}  // namespace shardscope::comm
