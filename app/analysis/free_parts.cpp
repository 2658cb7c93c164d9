#include "app/analysis/free_parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/analysis/path_intervals.h"

namespace shardscope::analysis {
namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();
/// ns between two collectives of a lane up to which the second counts as queued behind the first.
constexpr std::int64_t kQueued = 20'000;

/// An action of a rank; actions are executed in order.
struct Action {
  enum class Kind : std::uint8_t { work, issue, wait } kind{};
  std::int64_t ns = 0;     ///< work: its duration
  PathPart part{};         ///< work: its part of the critical path
  std::uint32_t call = 0;  ///< issue, wait: index of the rank's call
};

/// The participation of a rank in a collective.
struct Call {
  std::uint32_t collective = 0;
  std::int64_t moving_ns = 0;  ///< duration of the transfer
  std::int64_t begin_ns = 0, end_ns = 0;
  std::optional<std::uint32_t> before;  ///< the previous call in its lane
  bool queued = false;                  ///< issued before the previous one had ended
};

struct Program {
  std::int64_t begin_ns = 0;
  std::vector<Call> calls;      ///< by begin
  std::vector<Action> actions;  ///< in order of time
};

Program program_of(const RankActivity& rank, const Arrivals& arrivals,
                   const std::unordered_map<std::uint64_t, std::uint32_t>& numbers) {
  Program out{.begin_ns = rank.window.begin, .calls = {}, .actions = {}};
  std::map<instrumentation::StreamId, std::uint32_t> last_of_lane;
  std::vector<const Participation*> in_order;
  for (const Participation& one : rank.collectives) in_order.push_back(&one);
  std::ranges::stable_sort(in_order, {}, [](const Participation* one) { return one->at.begin; });
  for (const Participation* one : in_order) {
    const auto number = static_cast<std::uint32_t>(out.calls.size());
    Call call{.collective = numbers.at(one->instance),
              .moving_ns = std::max<std::int64_t>(  // only the transfer within this window
                  one->at.end - std::max(moves_from(*one, arrivals), rank.window.begin), 0),
              .begin_ns = one->at.begin,
              .end_ns = one->at.end,
              .before = {}};
    if (const auto [last, first] = last_of_lane.try_emplace(one->stream, number); !first) {
      call.before = last->second;
      call.queued = call.begin_ns <= out.calls[last->second].end_ns + kQueued;
      last->second = number;
    }
    out.calls.push_back(call);
  }
  std::vector<std::uint32_t> by_end(out.calls.size());
  for (std::uint32_t i = 0; i < by_end.size(); ++i) by_end[i] = i;
  std::ranges::sort(by_end, {}, [&](std::uint32_t call) { return out.calls[call].end_ns; });

  std::size_t issued = 0, ended = 0;
  const auto work = [&](std::int64_t ns, PathPart part) {
    if (ns > 0) out.actions.push_back({Action::Kind::work, ns, part, 0});
  };
  // Issues the calls that had begun before `ns`, in order of their begins.
  const auto issue_until = [&](std::int64_t ns) {
    while (issued < out.calls.size() && out.calls[issued].begin_ns < ns)
      out.actions.push_back({.kind = Action::Kind::issue, .call = static_cast<std::uint32_t>(issued++)});
  };
  for (const PathInterval& interval : path_intervals_of(rank, rank.window)) {
    std::int64_t at = interval.at.begin;  // up to here `actions` is complete
    if (!interval.comm) {
      while (issued < out.calls.size() && out.calls[issued].begin_ns < interval.at.end) {
        const std::int64_t begin = std::max(at, out.calls[issued].begin_ns);
        work(begin - at, interval.part);
        at = begin;
        issue_until(begin + 1);
      }
      work(interval.at.end - at, interval.part);
      while (ended < by_end.size() && out.calls[by_end[ended]].end_ns <= interval.at.end) ++ended;
      continue;
    }
    // Exposed communication is waiting for the collectives that end in it. The rest keeps its length: a gap
    // while something else is in flight, or kernels of a collective that its host has left.
    for (; ended < by_end.size() && out.calls[by_end[ended]].end_ns <= interval.at.end; ++ended) {
      const Call& call = out.calls[by_end[ended]];
      if (call.end_ns <= at) continue;
      work(call.begin_ns - at, interval.part);
      at = std::max(at, call.begin_ns);
      issue_until(call.end_ns);
      // A call of length 0 begins where it ends, and is issued after this interval.
      if (by_end[ended] >= issued) continue;
      out.actions.push_back({.kind = Action::Kind::wait, .call = by_end[ended]});
      at = call.end_ns;
    }
    work(interval.at.end - at, interval.part);
    issue_until(interval.at.end);
  }
  // At the end of the step wait for all calls that had ended in it.
  issue_until(std::numeric_limits<std::int64_t>::max());
  for (const std::uint32_t call : by_end) {
    if (out.calls[call].end_ns <= rank.window.end)
      out.actions.push_back({.kind = Action::Kind::wait, .call = call});
  }
  return out;
}

/// [Note: a part that takes no time]
class Replay {
 public:
  explicit Replay(std::span<const RankActivity> ranks) {
    const Arrivals arrivals = arrivals_of(ranks);
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    for (const auto& [instance, arrival] : arrivals) {
      numbers.emplace(instance, static_cast<std::uint32_t>(ranks_of_.size()));
      ranks_of_.push_back(arrival.ranks);
    }
    for (const RankActivity& rank : ranks) programs_.push_back(program_of(rank, arrivals, numbers));
  }

  /// When the last rank is done; nullopt if ranks wait for each other in a cycle, which wrong clocks can
  /// produce.
  [[nodiscard]] std::optional<std::int64_t> end_without(std::optional<PathPart> part);

 private:
  struct Collective {
    std::uint32_t to_come = 0;
    std::int64_t starts_ns = kUnknown;  ///< while `to_come` is above 0: the latest begin so far
  };
  struct Progress {
    std::int64_t now_ns = 0;
    std::size_t next = 0;                ///< index of the next action
    std::vector<std::int64_t> ends_ns;   ///< by call; kUnknown: not ended
    std::vector<std::int64_t> asked_ns;  ///< by call
    std::vector<bool> came;              ///< by call: counted in its collective
  };
  /// Executes actions until one must wait. True if any was executed.
  bool advance(std::size_t rank, std::optional<PathPart> part);
  /// The end of a call; kUnknown while a rank has not entered its collective.
  std::int64_t end_of(std::size_t rank, std::uint32_t call, std::optional<PathPart> part);
  /// Counts an issued call in its collective once the previous call in its lane has ended.
  bool come(std::size_t rank, std::uint32_t call, std::optional<PathPart> part);

  std::vector<std::uint32_t> ranks_of_;  ///< by collective: number of participants
  std::vector<Program> programs_;
  std::vector<Collective> collectives_;
  std::vector<Progress> progress_;
};

bool Replay::come(std::size_t rank, std::uint32_t call, std::optional<PathPart> part) {
  Progress& progress = progress_[rank];
  const Call& own = programs_[rank].calls[call];
  std::int64_t begins = own.queued ? programs_[rank].begin_ns : progress.asked_ns[call];
  if (own.before) {
    const std::int64_t free = end_of(rank, *own.before, part);
    if (free == kUnknown) return false;
    begins = std::max(begins, free);
  }
  progress.came[call] = true;
  Collective& collective = collectives_[own.collective];
  collective.starts_ns = std::max(collective.starts_ns, begins);
  --collective.to_come;
  return true;
}

std::int64_t Replay::end_of(std::size_t rank, std::uint32_t call, std::optional<PathPart> part) {
  std::int64_t& end = progress_[rank].ends_ns[call];
  const Call& own = programs_[rank].calls[call];
  const Collective& collective = collectives_[own.collective];
  if (end == kUnknown && collective.to_come == 0)
    end = collective.starts_ns + (part == PathPart::transfer ? 0 : own.moving_ns);
  return end;
}

bool Replay::advance(std::size_t rank, std::optional<PathPart> part) {
  Progress& progress = progress_[rank];
  const Program& program = programs_[rank];
  bool moved = false;
  for (; progress.next < program.actions.size(); ++progress.next, moved = true) {
    const Action& action = program.actions[progress.next];
    if (action.kind == Action::Kind::work) {
      if (action.part != part) progress.now_ns += action.ns;
    } else if (action.kind == Action::Kind::issue) {
      progress.asked_ns[action.call] = progress.now_ns;
    } else {
      const std::int64_t end = end_of(rank, action.call, part);
      if (end == kUnknown) break;
      progress.now_ns = std::max(progress.now_ns, end);
    }
  }
  return moved;
}

std::optional<std::int64_t> Replay::end_without(std::optional<PathPart> part) {
  collectives_.clear();
  for (const std::uint32_t ranks : ranks_of_) collectives_.push_back({.to_come = ranks});
  progress_.clear();
  for (const Program& program : programs_) {
    progress_.push_back({.now_ns = program.begin_ns,
                         .next = 0,
                         .ends_ns = std::vector(program.calls.size(), kUnknown),
                         .asked_ns = std::vector(program.calls.size(), kUnknown),
                         .came = std::vector<bool>(program.calls.size())});
  }
  std::vector<std::size_t> first_not_come(programs_.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      moved = advance(rank, part) || moved;
      Progress& progress = progress_[rank];
      std::size_t& first = first_not_come[rank];
      for (std::size_t call = first; call < progress.came.size(); ++call) {
        if (progress.came[call]) {
          first += call == first ? 1 : 0;
          continue;
        }
        if (progress.asked_ns[call] == kUnknown) break;
        if (come(rank, static_cast<std::uint32_t>(call), part)) {
          moved = true;
          first += call == first ? 1 : 0;
        }
      }
    }
  }
  std::int64_t end = kUnknown;
  for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
    if (progress_[rank].next < programs_[rank].actions.size()) return std::nullopt;
    end = std::max(end, progress_[rank].now_ns);
  }
  return end;
}

bool can_be_free(PathPart part) {
  return part != PathPart::paused && part != PathPart::unrecorded && part != PathPart::checkpoint;
}

}  // namespace

bool was_replayed(const PathTimes& gains) noexcept {
  return std::ranges::any_of(gains, [](std::int64_t gain) { return gain != kNotReplayed; });
}

PathTimes gains_without(std::span<const RankActivity> ranks, const CriticalPath& path) {
  PathTimes out{};
  out.fill(kNotReplayed);
  Replay replay(ranks);
  const std::optional<std::int64_t> as_it_was = replay.end_without({});
  if (!as_it_was) return out;
  const std::int64_t least = (path.window.end - path.window.begin) / 100;
  for (std::size_t number = 0; number < kPathParts; ++number) {
    const auto part = static_cast<PathPart>(number);
    if (!can_be_free(part)) continue;
    if (path.times[number] < least || path.times[number] == 0) {
      out[number] = path.times[number];
      continue;
    }
    const auto without = replay.end_without(part);
    if (without) out[number] = std::clamp<std::int64_t>(*as_it_was - *without, 0, path.times[number]);
  }
  return out;
}

}  // namespace shardscope::analysis
