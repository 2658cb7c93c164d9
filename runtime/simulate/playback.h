// Assigns times to the tapes of all ranks: every queue of every rank is a separate time line, ordered with
// others by marks and collectives.
//
// [Note: times without a clock]
// A rank's operations do not depend on time, so there is no event queue in order of time: each rank advances
// until it waits for a time not known yet, and the rank that determines it wakes it. Every time is a maximum
// of others plus a duration, so the order in which ranks advance does not matter. Only the duration of a
// transfer on shared links, and the loss of kernels beside it (overlap_loss.h), depend on other times: so
// when no rank can advance, the transfer that ends first is determined (shared_links.h). Everything that
// begins later does so because of that end or a later one, so the end is final, and all kernels that began
// before it have been played.
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
  double jitter = 0;  ///< factor on the time of own work, uniform in 1 +- jitter
  std::vector<double>
      slowness;  ///< by rank: factor on the time of its own work on the compute stream; empty: 1
  /// By rank: factor on the transfer time of its links, latency not included; empty: 1. A collective is as
  /// slow as the slowest link of its ranks.
  std::vector<double> link_slowness{};
};

class Playback {
 public:
  /// Events of one rank, in order of time, complete up to the end of `events`: later calls have later events
  /// only.
  using Take = std::function<void(std::uint32_t rank, std::vector<Event> events)>;

  /// `groups` must outlive it. Times begin at `origin_ns`. `overlap_slowdown`: part of its time that a kernel
  /// loses beside a collective, see overlap_loss.h.
  Playback(const RunGroups& groups, Variation variation, double overlap_slowdown, std::int64_t origin_ns,
           Take take);
  /// Times begin at `origin_ns` instead; before the first play().
  void begin_at(std::int64_t origin_ns);

  /// Plays one tape of every rank to its end; `tapes` by rank, the same piece of the run on each. Passes
  /// events whose order is final to `take` meanwhile. Throws std::logic_error on a deadlock of ranks,
  /// std::invalid_argument if the run is implausibly long.
  void play(std::span<const std::shared_ptr<const Tape>> tapes);
  /// Passes all final events of each rank to `take`; play() alone collects about a thousand first.
  void hand_over_certain();
  /// Passes the remaining events to `take`.
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
    std::size_t next = 0;  ///< next op of the host thread
    std::array<std::int64_t, instrumentation::kStreamCount> time{};
    std::array<std::deque<Pending>, instrumentation::kStreamCount> queue;
    std::vector<std::int64_t> marks;                           ///< of this tape; kUnknown: not recorded yet
    std::unordered_map<Mark, std::int64_t> earlier_marks;      ///< of earlier tapes, those still kept
    std::array<bool, instrumentation::kStreamCount> joined{};  ///< its arrival at the current join is counted
    std::uint64_t drawn = 0;                                   ///< random numbers used
    bool loses = false;                                        ///< its kernels are slower beside collectives
    OverlapLoss loss;                                          ///< of the compute stream
    HostLateness host_late;                                    ///< since the tape's begin
    std::uint32_t ended = instrumentation::kNoId;              ///< the step that ended in this tape
    std::vector<Event> held;
    bool listed = false;
  };
  /// A join of all ranks of a group: ends when the last has arrived.
  struct Join {
    std::uint32_t arrived = 0;
    std::uint32_t left = 0;
    std::int64_t latest_ns = 0;
  };
  struct Transfer {
    std::int64_t begin_ns;
    std::int64_t end_ns;  ///< kUnknown: still running
    std::uint32_t left = 0;
  };

  void advance(std::uint32_t rank);
  [[nodiscard]] bool advance_host(std::uint32_t rank);
  [[nodiscard]] bool advance_stream(std::uint32_t rank, std::size_t queue);
  /// Executes an op at `time` and advances it; false if it must wait.
  [[nodiscard]] bool execute(std::uint32_t rank, const Op& op, std::int64_t& time);
  /// Advances `time` by `ns`. Throws std::invalid_argument if that is implausibly long.
  void pass(std::uint32_t rank, std::int64_t ns, std::int64_t& time) const;
  /// kUnknown: not reached yet.
  [[nodiscard]] static std::int64_t time_of(const Rank& rank, Mark mark);
  [[nodiscard]] bool emit_timed(Rank& rank, const TimedEvent& timed, std::int64_t time);
  [[nodiscard]] bool join(std::uint32_t rank, const Op& op, std::int64_t& time);
  [[nodiscard]] bool move(std::uint32_t rank, const Op& op, std::int64_t& time);
  /// Ends the transfer that ends first; false if none is running.
  [[nodiscard]] bool end_transfer();
  [[nodiscard]] std::int64_t duration(std::uint32_t rank, const Op& op);
  /// Emits host_late for the step that ended in the played tape.
  static void emit_host_late(Rank& rank);
  /// Executes a kernel, extended by the rank's deferred loss.
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
  /// Links of every group, as numbers of `shared_`: those of its ranks within their nodes or, among nodes,
  /// those out of them.
  std::vector<std::vector<std::uint32_t>> links_;
  std::vector<double> group_slowness_;  ///< by group: factor of its slowest rank's links
  std::int64_t latest_ns_ = 0;          ///< latest time that a rank may reach
  SharedLinks shared_;
  std::deque<std::uint32_t> awake_;
};

}  // namespace shardscope::simulate
