// Gives the tapes of all ranks their times: every queue of every rank is a time line of its own, joined by
// the marks that it waits for and by the collectives in which ranks meet.
//
// [Note: times without a clock]
// Nothing that a rank does depends on when it does it, so there is no event queue in order of time: each rank
// goes on until it waits for something that is not known yet, and the rank that makes it known wakes it.
// Every time is a maximum of others plus a duration, so the order in which ranks are looked at changes
// nothing. What depends on other times is how long a transfer takes that shares its links, and what kernels
// beside it lose (overlap_loss.h): so when no rank can go on, the transfer that ends first is looked for
// (shared_links.h). Whatever begins later, it begins because of that end or of a later one: the end stands,
// and all kernels that began before it have been played.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/simulate/groups.h"
#include "runtime/simulate/host_lateness.h"
#include "runtime/simulate/overlap_loss.h"
#include "runtime/simulate/shared_links.h"
#include "runtime/simulate/tape.h"

namespace shardscope::simulate {

/// What makes ranks differ.
struct Variation {
  std::uint64_t seed = 0;
  double jitter = 0;  ///< own work takes 1 +- jitter times as long, uniformly
  std::vector<double>
      slowness;  ///< by rank: factor on the time of its own work on the compute stream; empty: 1
  /// By rank: how many times as long its links take to move bytes, latency not included; empty: 1. A
  /// collective goes at the pace of the slowest link of its ranks.
  std::vector<double> link_slowness{};
};

class Playback {
 public:
  /// Events of one rank, in order of time, complete up to the end of `events`; later ones are later.
  using Take = std::function<void(std::uint32_t rank, std::vector<Event> events)>;

  /// `groups` outlives it. Times begin at `origin_ns`. `overlap_slowdown`: part of the time of a kernel
  /// beside a collective that the kernel loses, see overlap_loss.h.
  Playback(const RunGroups& groups, Variation variation, double overlap_slowdown, std::int64_t origin_ns,
           Take take);
  /// Times begin at `origin_ns` instead; before the first play().
  void begin_at(std::int64_t origin_ns);

  /// Plays one tape of every rank to its end; `tapes` by rank, the same piece of the run on each. Events
  /// whose place is certain are handed over meanwhile. Throws std::logic_error when ranks wait for one
  /// another for ever, std::invalid_argument when the run takes longer than a plausible one.
  void play(std::span<const std::shared_ptr<const Tape>> tapes);
  /// Hands over what is certain of each rank, however little; by itself play() waits until that is some
  /// thousand events.
  void hand_over_certain();
  /// Hands over what is left.
  void finish();
  /// Latest time of any rank's host.
  [[nodiscard]] std::int64_t now_ns() const noexcept;
  [[nodiscard]] std::int64_t now_ns(std::uint32_t rank) const { return ranks_[rank].time[0]; }

 private:
  struct Pending {
    std::uint32_t op = 0;
    std::int64_t queued_ns = 0;
  };
  struct Rank {
    std::shared_ptr<const Tape> tape;
    std::size_t next = 0;  ///< op that the host thread is at
    std::array<std::int64_t, instrumentation::kStreamCount> time{};
    std::array<std::deque<Pending>, instrumentation::kStreamCount> queue;
    std::vector<std::int64_t> marks;                       ///< of this tape; kUnknown: not recorded yet
    std::unordered_map<Mark, std::int64_t> earlier_marks;  ///< of earlier tapes, those still kept
    std::array<bool, instrumentation::kStreamCount>
        joined{};                                  ///< its arrival at the join it waits in is counted
    std::uint64_t drawn = 0;                       ///< random numbers used
    bool loses = false;                            ///< its kernels are slower beside collectives
    OverlapLoss loss;                              ///< of the compute stream
    HostLateness host_late;                        ///< since the tape's begin
    std::uint32_t ended = instrumentation::kNoId;  ///< the step that ended in this tape
    std::vector<Event> held;
    bool listed = false;
  };
  /// A join of all ranks of a group: it ends when the last has arrived.
  struct Join {
    std::uint32_t arrived = 0;
    std::uint32_t left = 0;
    std::int64_t latest_ns = 0;
  };
  struct Transfer {
    std::int64_t begin_ns;
    std::int64_t end_ns;  ///< kUnknown: under way
    std::uint32_t left = 0;
  };

  void advance(std::uint32_t rank);
  [[nodiscard]] bool advance_host(std::uint32_t rank);
  [[nodiscard]] bool advance_stream(std::uint32_t rank, std::size_t queue);
  /// Carries out an op at `time`, which it moves; false when it must wait.
  [[nodiscard]] bool execute(std::uint32_t rank, const Op& op, std::int64_t& time);
  /// `ns` more. Throws std::invalid_argument where that is longer than anything takes.
  void pass(std::uint32_t rank, std::int64_t ns, std::int64_t& time) const;
  /// kUnknown: not reached yet.
  [[nodiscard]] static std::int64_t time_of(const Rank& rank, Mark mark);
  [[nodiscard]] bool emit_timed(Rank& rank, const TimedEvent& timed, std::int64_t time);
  [[nodiscard]] bool join(std::uint32_t rank, const Op& op, std::int64_t& time);
  [[nodiscard]] bool move(std::uint32_t rank, const Op& op, std::int64_t& time);
  /// The transfer that ends first is through; false when none is under way.
  [[nodiscard]] bool end_transfer();
  [[nodiscard]] std::int64_t duration(std::uint32_t rank, const Op& op);
  /// Of the step that ended in the tape that was played.
  static void emit_host_late(Rank& rank);
  /// A kernel, with what the rank's kernels owe.
  void run_kernel(std::uint32_t rank, const Op& op, std::int64_t& time);
  void hand_over(std::uint32_t rank, std::int64_t until_ns);
  [[nodiscard]] std::int64_t certain_until(const Rank& rank) const;
  void wake(std::uint32_t rank);

  const RunGroups& groups_;
  const Variation variation_;
  const Take take_;
  std::vector<Rank> ranks_;
  std::unordered_map<std::uint64_t, Join> joins_;          ///< by group, kind and call
  std::unordered_map<std::uint64_t, Transfer> transfers_;  ///< likewise
  /// Links of every group, as numbers of `shared_`: its ranks' own, to their nodes or, among nodes, out of
  /// them.
  std::vector<std::vector<std::uint32_t>> links_;
  std::vector<double> group_slowness_;  ///< of every group, that of its slowest rank's links
  std::int64_t latest_ns_ = 0;          ///< that a rank may reach
  SharedLinks shared_;
  std::deque<std::uint32_t> awake_;
};

}  // namespace shardscope::simulate
