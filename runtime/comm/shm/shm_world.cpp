#include "runtime/comm/shm/shm_world.h"

#include <unistd.h>

#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "runtime/comm/shm/shm_transport.h"
#include "runtime/device/error.h"

namespace shardscope::comm {

ShmWorld::ShmWorld(std::uint32_t rank, std::uint32_t size, Memory memory, const WorldOptions& options)
    : World(options.link),
      memory_(std::move(memory)),
      // Writes this rank's pid into the control pages.
      node_(ControlPages(memory_.control->bytes().data(), size), rank, size, options.timeout),
      region_(*memory_.regions[rank]),
      exceptions_at_start_(std::uncaught_exceptions()) {}

ShmWorld::~ShmWorld() {
  // More exceptions in flight than when it was made: the stack is being unwound. The note comes before
  // `departed`, or a peer would report that this rank left early.
  if (std::uncaught_exceptions() > exceptions_at_start_) node_.abandon();
  node_.depart();
  // Three seconds for the others to leave as well; see set_after_failure().
  if (after_failure_ && !node_.first_failure().empty()) {
    after_failure_(node_.wait_for_departures(std::chrono::seconds(3)));
  }
}

std::unique_ptr<Transport> ShmWorld::make_transport(const std::string& name, const Group& group) {
  // Channels are laid out for kMaxCommunicators and are not given back: they are counted over the life of the
  // world.
  if (communicators_ == kMaxCommunicators) {
    throw BackendError("make_communicator", 0,
                       "'" + name + "' would be communicator " + std::to_string(communicators_ + 1) +
                           "; at most " + std::to_string(kMaxCommunicators) +
                           " are possible, make them once and keep them",
                       "rank " + std::to_string(rank()));
  }
  std::vector<std::span<std::byte>> regions;
  // Channels are numbered in the order of creation. All ranks make their communicators in the same order, so
  // a number means the same channel on every rank; groups made in one call share it (ControlPages).
  for (const std::uint32_t member : group.members) regions.push_back(memory_.regions[member]->bytes());
  return std::make_unique<ShmTransport>(node_, communicators_++, name, group.members, std::move(regions));
}

std::vector<std::unique_ptr<World>> make_thread_worlds(std::uint32_t size, const WorldOptions& options) {
  if (size == 0) throw BackendError("make_thread_worlds", 0, "a world has at least one rank", "comm");
  constexpr std::size_t kRegionBytes = std::size_t{8}
                                       << 30;  // address space; pages are allocated on first use
  ShmWorld::Memory memory;
  memory.control =
      std::make_shared<const Mapping>(Mapping::create("shardscope-control", ControlPages::bytes(size)));
  for (std::uint32_t r = 0; r < size; ++r) {
    memory.regions.push_back(
        std::make_shared<const Mapping>(Mapping::create("shardscope-region", kRegionBytes)));
  }
  std::vector<std::unique_ptr<World>> worlds;
  for (std::uint32_t r = 0; r < size; ++r)
    worlds.push_back(std::make_unique<ShmWorld>(r, size, memory, options));
  return worlds;
}

namespace {

/// Sent by a rank to its peers, so that they can map its memory.
struct Offer {
  std::int32_t pid = 0;
  std::int32_t region_fd = -1;
  std::int32_t control_fd = -1;  ///< rank 0's
  std::int32_t ok = 0;
  std::uint64_t region_bytes = 0;
};

/// Blocks until every rank has entered; returns the offers of all ranks, by rank.
std::vector<Offer> exchange(Bootstrap& bootstrap, const Offer& mine) {
  std::vector<Offer> all(bootstrap.size());
  bootstrap.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

/// Three exchanges. First: pid and descriptors of each rank, whose memory exists by then. Second: whether
/// each rank could map all of it; on one failure all throw, so that all choose the same fallback. Third: all
/// have written their pid into the control pages, which watch_peers() reads.
std::unique_ptr<ShmWorld> make_process_world(Bootstrap& bootstrap, const WorldOptions& options) {
  const std::uint32_t rank = bootstrap.rank();
  const std::uint32_t size = bootstrap.size();
  ShmWorld::Memory memory;
  memory.regions.resize(size);
  Offer mine;
  mine.pid = static_cast<std::int32_t>(getpid());
  std::string problem;
  // Every rank takes part in every exchange even after an error, so that one failure ends all ranks.
  try {
    // Sent with the offer: peers map as many bytes as this rank created.
    mine.region_bytes = region_bytes(size);
    memory.regions[rank] =
        std::make_shared<const Mapping>(Mapping::create("shardscope-region", mine.region_bytes));
    // Descriptor numbers of this process. A peer opens them as /proc/PID/fd/NUMBER, so no socket has to pass
    // descriptors; they stay open as long as the mapping.
    mine.region_fd = memory.regions[rank]->fd();
    if (rank == 0) {
      memory.control =
          std::make_shared<const Mapping>(Mapping::create("shardscope-control", ControlPages::bytes(size)));
      mine.control_fd = memory.control->fd();
    }
    mine.ok = 1;
  } catch (const BackendError& error) {
    problem = error.what();
  }
  const std::vector<Offer> offers = exchange(bootstrap, mine);
  try {
    for (std::uint32_t r = 0; r < size && problem.empty(); ++r) {
      if (offers[r].ok == 0) {
        problem = "rank " + std::to_string(r) + " could not make its shared memory";
        break;
      }
      if (r == rank) continue;
      const auto take = [&](int fd, std::size_t bytes) {
        FileDescriptor peer = open_peer_fd(offers[r].pid, fd);
        if (!peer.valid()) {
          throw BackendError("open", errno,
                             "cannot open the memory of rank " + std::to_string(r) + " (process " +
                                 std::to_string(offers[r].pid) + "): " + std::strerror(errno),
                             "rank " + std::to_string(rank));
        }
        return std::make_shared<const Mapping>(Mapping::open(std::move(peer), bytes));
      };
      // Every rank maps every region: size^2 mappings on the node, of address space only.
      memory.regions[r] = take(offers[r].region_fd, offers[r].region_bytes);
      if (r == 0) memory.control = take(offers[r].control_fd, ControlPages::bytes(size));
    }
  } catch (const BackendError& error) {
    problem = error.what();
  }
  mine.ok = problem.empty() ? 1 : 0;
  const std::vector<Offer> outcome = exchange(bootstrap, mine);
  for (std::uint32_t r = 0; r < size; ++r) {
    if (outcome[r].ok != 0) continue;
    throw BackendError(
        "shared memory", 0,
        r == rank ? problem : "rank " + std::to_string(r) + " cannot share memory with its peers",
        "rank " + std::to_string(rank));
  }
  // Zeroed control pages are a valid start: no failure, no arrival, generation 0.
  auto world = std::make_unique<ShmWorld>(rank, size, std::move(memory), options);
  exchange(bootstrap, mine);  // all have written their process number into the control pages
  world->node().watch_peers();
  return world;
}

}  // namespace shardscope::comm
