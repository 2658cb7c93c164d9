// Stepping: in a recording the cursor moves along the gates; live, the same command is sent as a stop rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/scheduler_actions.h"
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

/// The last gate of a rank at or before `at_ns`; nullopt before the first.
[[nodiscard]] std::optional<GateRow> gate_at(const store::Store& store, std::uint32_t rank,
                                             std::int64_t at_ns);
/// The next gate of this unit after (or before) `at_ns`; nullopt at the end of the run.
[[nodiscard]] std::optional<GateRow> gate_beside(const store::Store& store, std::uint32_t rank,
                                                 std::int64_t at_ns, StepUnit unit, Direction direction);
/// Forwards: searches up to `until_ns` only.
[[nodiscard]] std::optional<GateRow> gate_run_to(const store::Store& store, std::uint32_t rank,
                                                 std::int64_t at_ns, RunTo target, Direction direction,
                                                 std::int64_t until_ns = INT64_MAX);

/// Position of a rank at a time: the last gate that it passed, or that holds it.
struct GatePosition {
  bool known = false;    ///< the rank has passed a gate; false: the other members are unset
  bool holding = false;  ///< live and paused at the gate
  std::uint64_t gate_number = 0;
  std::string place;  ///< "before the forward of h.3.attn"
};
[[nodiscard]] GatePosition gate_position(const store::Store& store, std::uint32_t rank, std::int64_t at_ns);
/// "h.3.attn, before forward", for narrow columns; empty: the rank has passed no gate.
[[nodiscard]] std::string brief_position(const store::Store& store, std::uint32_t rank, std::int64_t at_ns);

/// Scheduler actions before and after that gate.
struct ActionsAround {
  std::string previous_place;           ///< of the previous gate; empty at the first
  std::vector<SchedulerAction> before;  ///< between the previous gate and this one
  std::vector<SchedulerAction> next;    ///< between this gate and the next one
  std::string next_place;
  bool predicted =
      false;  ///< next gate not recorded yet: `next` is from the same place of an earlier micro-step
};
[[nodiscard]] ActionsAround actions_around(const store::Store& store, std::uint32_t rank, std::int64_t at_ns);

/// Parameters of a rank by status at a time.
struct StatusLists {
  std::vector<std::uint32_t> not_available, in_flight, available, persistent;
  bool known = true;  ///< false: not stored for this time (Store::is_known()); the lists are empty
  std::int64_t not_available_elems = 0, in_flight_elems = 0, available_elems = 0, persistent_elems = 0;
};
[[nodiscard]] StatusLists status_lists(const store::Store& store, std::uint32_t rank, std::int64_t at_ns);

}  // namespace shardscope::gui
