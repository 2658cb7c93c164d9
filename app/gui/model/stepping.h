// Stepping: in a recording a time cursor moves along the gates; live, the same wish becomes a stop rule.
// And the words for what the scheduler did between two gates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/run_index.h"
#include "app/store/store.h"
#include "instrumentation/gate.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class StepUnit : std::uint8_t { event, module, micro_step, step };
enum class Direction : std::int8_t { backward = -1, forward = 1 };
enum class RunToKind : std::uint8_t { module, param, step };

struct RunTo {
  RunToKind kind = RunToKind::module;
  std::uint32_t id = 0;
};

[[nodiscard]] ev::StopRule stop_rule(StepUnit unit) noexcept;
[[nodiscard]] ev::StopRule stop_rule(RunTo target) noexcept;
[[nodiscard]] const char* word(StepUnit unit) noexcept;

using GateRow = store::Store::GateRow;

/// The last gate of a rank at or before `at_ns`; nothing before the first.
[[nodiscard]] std::optional<GateRow> gate_at(const store::Store& store, std::uint32_t rank,
                                             std::int64_t at_ns);
/// Next gate of that unit after (before) `at_ns`; nothing at the end of the run.
[[nodiscard]] std::optional<GateRow> gate_beside(const store::Store& store, std::uint32_t rank,
                                                 std::int64_t at_ns, StepUnit unit, Direction direction);
[[nodiscard]] std::optional<GateRow> gate_run_to(const store::Store& store, std::uint32_t rank,
                                                 std::int64_t at_ns, RunTo target, Direction direction);

/// One line of what happened, with what it concerns so that a click can select it.
struct Deed {
  std::int64_t at_ns = 0;
  std::string text;    ///< "Prefetched 2 parameters of h.4.attn (1.77M elements)"
  std::string reason;  ///< "stopped because stage3_prefetch_bucket_size was reached"; may be empty
  std::uint32_t param = ev::kNoId, module = ev::kNoId, gather = ev::kNoId;
};
/// What the scheduler and the bucket planner of a rank did in [begin, end), alike ones merged.
[[nodiscard]] std::vector<Deed> deeds_between(const store::Store& store, std::uint32_t rank,
                                              std::int64_t begin_ns, std::int64_t end_ns);

/// Where a rank stands and what surrounds that place.
struct Standing {
  std::uint32_t rank = 0;
  bool known = false;
  bool holding = false;  ///< live and paused
  std::uint64_t gate_number = 0;
  std::string place;           ///< "before the forward of h.3.attn"
  std::int64_t gate_ns = 0;    ///< when it passed (or reached) that gate
  std::string previous_place;  ///< of the gate before; empty at the first
  std::vector<Deed> before;    ///< between the gate before and this one
  std::vector<Deed> next;      ///< between this gate and the next one
  std::string next_place;
  bool predicted = false;  ///< `next` is from the same place of an earlier micro-step
};
[[nodiscard]] Standing standing_of(const store::Store& store, std::uint32_t rank, std::int64_t at_ns);

/// Parameters of a rank by status at a time.
struct StatusLists {
  std::vector<std::uint32_t> not_available, in_flight, available, persistent;
  std::int64_t not_available_elems = 0, in_flight_elems = 0, available_elems = 0, persistent_elems = 0;
};
[[nodiscard]] StatusLists status_lists(const store::Store& store, std::uint32_t rank, std::int64_t at_ns);

}  // namespace shardscope::gui
