// Why a run hangs: which rank waits in which collective for whom, what the missing rank does instead,
// and where ranks issued different collectives. Definitions: metrics.md 2.14. Pure: of what a store holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/silences.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// A collective as it can be named: "all-gather #12 of layer.3 (1.2 MiB)".
struct NamedCollective {
  instrumentation::CollectiveOp op{};
  std::uint32_t sequence = 0;
  std::string group;  ///< a described group's name; empty: all ranks
  std::int64_t elems = 0, bytes = 0;
  std::string module;  ///< whose parameters it gathers or reduces, of a bucket the first's; may be empty
  std::uint32_t more_params = 0;  ///< what else a bucket holds
  [[nodiscard]] std::string text() const;
};

/// What one rank does, at the end of what is held.
struct RankState {
  enum class How : std::uint8_t {
    in_collective,  ///< begun, not ended
    working,        ///< in a module, an optimizer step or a phase, and in no collective
    waiting,        ///< for data, a gather or a reduction
    paused,
    stopped,  ///< sends nothing over a connection that lasts (store/silences.h): none of its threads runs
    between,  ///< no span is open
    ended,    ///< said so, with code 0
    gone      ///< failed, was killed, or its events ended
  };
  std::uint32_t rank = 0;
  How how = How::between;
  std::optional<NamedCollective> collective;  ///< that it is in
  std::string doing;                          ///< "in module layer.3 (forward)", "ended with code 0"
  std::string gate;                           ///< last one passed: "pre-forward of layer.3"
  std::int64_t since_ns = 0;                  ///< of what it does
  std::int64_t last_event_ns = 0;
  std::vector<std::uint32_t> waits_for;  ///< ranks of the collective that have not entered it
  std::uint64_t collectives = 0;         ///< that it began, of all that were compared
  bool said_end = false;                 ///< it reported how it ended: all of its events have arrived
  std::string exit_message;              ///< what it reported with it: an exception's type and text
};

/// The place where ranks issued something else: of several the one that a rank came to earliest.
struct IssueDifference {
  struct Side {
    std::vector<std::uint32_t> ranks;
    std::optional<NamedCollective> collective;  ///< nothing: these ranks ended or stopped before it
    std::string module;                         ///< that it is for, else that they were in
    std::int64_t at_ns = 0;                     ///< when the first of them issued it
  };
  std::string what;  ///< "operation", "size", "module", "never issued"
  std::vector<Side> sides;
};

struct Hang {
  /// Surely: a rank waits for one that has ended, or for a second and longer, or while nothing comes in.
  /// Ranks of a run that goes on wait for each other too, and a recording may end there.
  bool hung = false;
  std::string text;      ///< a paragraph: who waits for whom, and why
  std::string headline;  ///< its shortest form, while ranks wait: "Rank 0 waits for rank 2 in all-gather #12"
  std::vector<RankState> ranks;
  std::optional<IssueDifference> difference;
  std::uint32_t culprit = instrumentation::kNoId;  ///< rank that others wait for
  std::vector<store::Silence> stops;               ///< of ranks that go on or went on, the latest
  std::int64_t since_ns = 0;
};

/// What a run does on purpose (zero_train --fault), as it says itself: "rank 1 skips module blk.1 in step 3
/// on purpose". Nothing for any other run.
[[nodiscard]] std::optional<std::string> rehearsed_fault(const store::Store& store);

/// How the end of what a store holds is to be read: it is all that was recorded, nothing more came in for a
/// while, or more comes in.
enum class Watched : std::uint8_t { recorded, quiet, goes_on };
/// As the run stands at the end of what the store holds. `quiet_ns`: for how long nothing came in.
[[nodiscard]] Hang diagnose_hang(const store::Store& store, Watched watched = Watched::recorded,
                                 std::int64_t quiet_ns = 0);
[[nodiscard]] std::string hang_json(const Hang& hang);
/// Whose stacks say most: the rank that others wait for, and the first that waits for it; else the first
/// rank.
[[nodiscard]] std::vector<std::uint32_t> named_ranks(const Hang& hang);
/// What one rank does, without its number: "in all-gather #12 of layer.3, in layer.3 (forward), after gate
/// ...".
[[nodiscard]] std::string line_of(const RankState& one);
/// The paragraph, and a line a rank.
[[nodiscard]] std::string hang_text(const Hang& hang);

}  // namespace shardscope::analysis
