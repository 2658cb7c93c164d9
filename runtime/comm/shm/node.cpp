// Bounded barriers: they end by the last arrival, a reported failure, the end of a peer's process, or the
// time-out.
#include "runtime/comm/shm/node.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/comm/shm/futex.h"
#include "runtime/device/error.h"

namespace shardscope::comm {
namespace {

using Clock = std::chrono::steady_clock;
// How often a sleeping rank checks that its peers are alive. A reported failure wakes it at once.
constexpr std::chrono::milliseconds kSlice{100};

}  // namespace

Node::Node(ControlPages control, std::uint32_t rank, std::uint32_t size, std::chrono::milliseconds timeout)
    : control_(control), rank_(rank), size_(size), timeout_(timeout) {
  // Peers read it in watch_peers(), which runs after an exchange over the bootstrap that follows this store.
  control_.rank(rank_).pid.store(static_cast<std::int32_t>(getpid()));
}

Node::~Node() { depart(); }

void Node::watch_peers() {
  pidfds_.resize(size_);
  for (std::uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    // A descriptor and not the number: it detects a zombie too, and never refers to a later process. Invalid
    // if the kernel has no pidfd_open or denies it; ended() then uses the pid.
    pidfds_[r] = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, control_.rank(r).pid.load(), 0)));
  }
}

/// Two signs of an end: the peer's own note (`departed`, in any world) and the end of its process (only with
/// one process per rank; threads of one process have no pidfds, so only the note counts).
bool Node::ended(std::uint32_t rank) const noexcept {
  if (rank == rank_) return false;
  if (control_.rank(rank).departed.load() != 0) return true;
  if (pidfds_.empty()) return false;
  if (pidfds_[rank].valid()) {
    pollfd entry{pidfds_[rank].get(), POLLIN, 0};
    // A pidfd is readable once its process has ended.
    return poll(&entry, 1, 0) == 1;
  }
  // Signal 0 tests for existence. Only ESRCH means gone: EPERM is a live process of another user.
  return kill(control_.rank(rank).pid.load(), 0) != 0 && errno == ESRCH;
}

/// A central barrier with a generation counter. All operations are sequentially consistent; two edges are
/// needed. Into the barrier: every rank's fetch_add of `arrived` releases what it wrote before, and the
/// fetch_add of the last arrival, which ends that chain of read-modify-writes, acquires all of it. Out of it:
/// the last arrival's fetch_add of `generation` releases, and each waiting rank's load of the new value
/// acquires. So what any member wrote before the barrier is visible to every member after it.
/// `arrived` counts within one generation; a rank's `arrivals` only grow. All members pass the barriers of a
/// channel in the same order, so a member whose count is below this rank's has not come to this one yet.
void Node::barrier(const ControlPages::Channel& channel, std::span<const std::uint32_t> members, Side side,
                   const std::function<std::string()>& what) {
  check_failure();
  Barrier& barrier = side == Side::stream ? *channel.stream_barrier : *channel.host_barrier;
  const auto arrivals = [&](std::uint32_t r) -> std::atomic<std::uint64_t>& {
    return side == Side::stream ? channel.arrivals[r].stream : channel.arrivals[r].host;
  };
  // Read before arriving: the last arrival may open the next generation at once.
  const std::uint32_t seen = barrier.generation.load();
  const std::uint64_t mine = arrivals(rank_).fetch_add(1) + 1;
  // The last arrival never sleeps: it opens the next generation and returns.
  if (barrier.arrived.fetch_add(1) + 1 == members.size()) {
    // Reset before the generation opens, so that a rank that is already at the next barrier counts from 0.
    barrier.arrived.store(0);
    // No wake is lost: a rank that loaded the old value before this and sleeps after the wake below is not
    // put to sleep at all, since the kernel compares the word with `seen` under the lock of the futex queue.
    barrier.generation.fetch_add(1);
    futex_wake_all(barrier.generation);
    return;
  }
  const Clock::time_point deadline = Clock::now() + timeout_;
  // Sleeps of at most kSlice: a peer that was killed wakes no one.
  while (barrier.generation.load() == seen) {
    check_failure();
    // 1 ms at least: with less the last fraction of the time-out would be spent spinning.
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    futex_wait(barrier.generation, seen, std::clamp(left, std::chrono::milliseconds(1), kSlice));
    if (barrier.generation.load() != seen) return;
    // The clock is read before the arrivals: a rank that arrives in between is not reported as missing.
    const bool late = Clock::now() >= deadline;
    std::string gone;
    std::string missing;
    for (const std::uint32_t r : members) {
      // Arrived, though perhaps ended since: it cannot hold up this barrier any more.
      if (arrivals(r).load() >= mine) continue;
      if (ended(r)) gone += (gone.empty() ? "" : ", ") + std::to_string(r);
      if (late) missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    }
    // A rank may have arrived and then departed while this one slept.
    if (barrier.generation.load() != seen) return;
    if (!gone.empty()) {
      check_failure();  // it may have published the reason
      // fail() first: the other members of the group, and all other groups, must not wait for this rank now.
      fail_and_throw("rank " + gone + " ended (killed, crashed or left early) while rank " +
                         std::to_string(rank_) + " waited for it in " + what(),
                     what());
    }
    if (late) {
      fail_and_throw("rank " + missing + " did not come to " + what() + " within " +
                         std::to_string(timeout_.count()) + " ms of rank " + std::to_string(rank_) +
                         "; every rank must run the same modules in the same order",
                     what());
    }
  }
}

void Node::check_failure() const {
  const FailureNote& note = control_.failure();
  if (note.state.load() == FailureNote::none) return;
  throw BackendError("collective", 0, first_failure(), "rank " + std::to_string(rank_));
}

/// none -> claimed -> published, by one rank only; its own provisional note may still get a text. Every
/// waiting rank is woken, also by a rank that lost the race.
void Node::fail(const std::string& message) noexcept {
  FailureNote& note = control_.failure();
  std::uint32_t expected = FailureNote::none;
  // The compare-and-swap picks one writer among all ranks, so rank and text are plain memory: written under
  // `claimed`, read only after a load that saw the store which ends it.
  bool mine = note.state.compare_exchange_strong(expected, FailureNote::claimed);
  if (mine) note.rank = rank_;
  // `expected` holds the state that the failed exchange found. `rank` may be read: `provisional` was stored
  // after it.
  if (!mine && expected == FailureNote::provisional && note.rank == rank_) {
    mine = note.state.compare_exchange_strong(expected, FailureNote::claimed);
  }
  if (mine) {
    const std::size_t length = std::min(message.size(), note.text.size() - 1);
    std::memcpy(note.text.data(), message.data(), length);
    note.text[length] = '\0';
    // Stored last: a reader that sees it sees the complete rank and text.
    note.state.store(FailureNote::published);
  }
  wake_all();
}

/// none -> provisional. Peers stop waiting at once, knowing only the number of this rank.
void Node::abandon() noexcept {
  FailureNote& note = control_.failure();
  std::uint32_t expected = FailureNote::none;
  // Through `claimed`, so that no reader sees `provisional` before `rank` is written.
  if (!note.state.compare_exchange_strong(expected, FailureNote::claimed)) return;
  note.rank = rank_;
  note.state.store(FailureNote::provisional);
  wake_all();
}

void Node::fail_and_throw(const std::string& message, const std::string& what) {
  fail(message);
  throw BackendError(what, 0, first_failure(), "rank " + std::to_string(rank_));
}

/// Waits at most about 300 ms for an incomplete note; then returns what is known.
std::string Node::first_failure() const {
  const FailureNote& note = control_.failure();
  std::uint32_t state = note.state.load();
  // Claimed: a memcpy away from its text. Provisional: the rank's stack is being unwound, and its main
  // publishes the reason next; the rank must not wait for itself.
  for (int i = 0; i < 300 && (state == FailureNote::claimed ||
                              (state == FailureNote::provisional && note.rank != rank_));
       ++i) {
    usleep(1000);
    state = note.state.load();
  }
  switch (state) {
    case FailureNote::none:
      return {};
    case FailureNote::provisional:
      return "rank " + std::to_string(note.rank) + " failed: it was left by an exception";
    case FailureNote::published:
      return "rank " + std::to_string(note.rank) + " failed: " + note.text.data();
    default:
      return "a rank failed and ended before it could say why";
  }
}

/// Every barrier of every channel and group: a sleeping rank may be in any of them. Woken, it finds its
/// generation unchanged, checks for a failure and throws. A rank about to sleep misses this wake and notices
/// after kSlice.
void Node::wake_all() const noexcept {
  for (std::size_t i = 0; i < kMaxCommunicators; ++i) {
    for (std::uint32_t leader = 0; leader < size_; ++leader) {
      const ControlPages::Channel channel = control_.communicator(i, leader);
      futex_wake_all(channel.stream_barrier->generation);
      futex_wake_all(channel.host_barrier->generation);
    }
  }
}

/// Not a failure by itself, only for a rank that still waits for this one (barrier()).
void Node::depart() noexcept { control_.rank(rank_).departed.store(1); }

bool Node::wait_for_departures(std::chrono::milliseconds longest) const noexcept {
  const Clock::time_point deadline = Clock::now() + longest;
  for (;;) {
    bool all = true;
    for (std::uint32_t r = 0; r < size_; ++r) {
      if (r == rank_ || control_.rank(r).departed.load() != 0) continue;
      // Loaded again after ended(): a rank that left in order stores `departed` before its process ends.
      if (ended(r) && control_.rank(r).departed.load() == 0) return false;
      all = false;
    }
    if (all) return true;
    if (Clock::now() >= deadline) return false;
    usleep(2000);
  }
}

}  // namespace shardscope::comm
