// Why a run hangs: which rank waits in which collective for which, what the missing rank does instead, and
// where ranks issued different collectives. Definitions: metrics.md 2.14. Pure: a function of a store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/silences.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// A collective with its name: "all-gather #12 of layer.3 (1.2 MiB)".
struct NamedCollective {
  instrumentation::CollectiveOp op{};
  std::uint32_t sequence = 0;
  std::string group;  ///< a described group's name; empty: all ranks
  std::int64_t elems = 0, bytes = 0;
  std::string module;  ///< whose parameters it gathers or reduces; of a bucket the first one's; may be empty
  std::uint32_t more_params = 0;  ///< further parameters in a bucket
  [[nodiscard]] std::string text() const;
};

/// The state of a rank at the end of the store's events.
struct RankState {
  enum class How : std::uint8_t {
    in_collective,  ///< begun, not ended
    working,        ///< in a module, optimizer step or phase, and in no collective
    waiting,        ///< for data, a gather or a reduction
    paused,
    stopped,  ///< silent although its connection persists (store/silences.h): none of its threads runs
    between,  ///< no open span
    ended,    ///< reported its end, with code 0
    gone      ///< failed, killed, or its events ended
  };
  std::uint32_t rank = 0;
  How how = How::between;
  std::optional<NamedCollective> collective;  ///< the one that it is in
  std::string doing;                          ///< "in module layer.3 (forward)", "ended with code 0"
  std::string gate;                           ///< last gate passed: "pre-forward of layer.3"
  std::int64_t since_ns = 0;                  ///< begin of that state
  std::int64_t last_event_ns = 0;
  std::vector<std::uint32_t> waits_for;  ///< members of the collective that have not entered it
  std::uint64_t collectives = 0;         ///< collectives begun, of those compared
  bool reported_end = false;             ///< it reported its end: all of its events have arrived
  std::string exit_message;              ///< its reported exception: type and text
  /// It is in an evaluation, a checkpoint or the like, which has no usual length: others may wait for long.
  bool long_phase = false;
};

/// The place at which ranks issued different collectives: the earliest one.
struct IssueDifference {
  struct Side {
    std::vector<std::uint32_t> ranks;
    std::optional<NamedCollective> collective;  ///< nullopt: these ranks ended or stopped before it
    std::string module;                         ///< which it is for, or else in which the ranks were
    std::int64_t at_ns = 0;                     ///< when the first of them issued it
  };
  std::string what;  ///< "operation", "size", "module", "never issued"
  std::vector<Side> sides;
};

struct Hang {
  /// Certain: the collective failed, the awaited rank ended or stopped, or the wait, or the time without any
  /// event, was longer than usual_wait_ns(). Otherwise ranks of a healthy run may just wait for each other.
  bool hung = false;
  std::string text;      ///< a paragraph: which rank waits for which, and why
  std::string headline;  ///< shortest form, while ranks wait: "Rank 0 waits for rank 2 in all-gather #12"
  std::vector<RankState> ranks;
  std::optional<IssueDifference> difference;
  std::uint32_t culprit = instrumentation::kNoId;  ///< the rank that others wait for
  std::vector<store::Silence> stops;               ///< latest silences of ranks, over or ongoing
  std::int64_t since_ns = 0;
};

/// The fault that a run injects on purpose (zero_train --fault), as reported by itself: "rank 1 skips module
/// blk.1 in step 3 on purpose". nullopt for any other run.
[[nodiscard]] std::optional<std::string> rehearsed_fault(const store::Store& store);

/// What the end of the store's events means: the end of the recording, no further events for a while, or a
/// run that is still sending.
enum class Watched : std::uint8_t { recorded, quiet, running };
/// A wait of this length is no hang yet: three times the median of the last completed steps, at least 1.5 s;
/// 10 s before the first one, which compiles and allocates.
[[nodiscard]] std::int64_t usual_wait_ns(const store::Store& store);
/// Diagnoses the state at the end of the store's events. `quiet_ns`: time since the last event arrived; 0
/// with Watched::quiet: long enough. `long_ns`: a wait of this length is a hang; nullopt: usual_wait_ns().
[[nodiscard]] Hang diagnose_hang(const store::Store& store, Watched watched = Watched::recorded,
                                 std::int64_t quiet_ns = 0,
                                 std::optional<std::int64_t> long_ns = std::nullopt);
[[nodiscard]] std::string hang_json(const Hang& hang);
/// The ranks whose stacks are most useful: the one that others wait for, and the first that waits for it;
/// else the first rank.
[[nodiscard]] std::vector<std::uint32_t> named_ranks(const Hang& hang);
/// The state of a rank without its number: "in all-gather #12 of layer.3, in layer.3 (forward), after gate
/// ...".
[[nodiscard]] std::string line_of(const RankState& one);
/// The paragraph, and one line per rank.
[[nodiscard]] std::string hang_text(const Hang& hang);

}  // namespace shardscope::analysis
