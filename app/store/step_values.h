// The numbers of a step that one event has (loss, learning rate, ...): every kind whose role in
// event_kinds.def is step_value is a member of StepRow and a column wherever steps are written. This file
// names none of them.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "instrumentation/event_fields.h"

namespace shardscope::store {

struct StepValues {
  static constexpr double NAN_ = __builtin_nan("");
#define SHARDSCOPE_MEMBER_none(name)
#define SHARDSCOPE_MEMBER_wait(name)
#define SHARDSCOPE_MEMBER_work(name)
#define SHARDSCOPE_MEMBER_state(name)
#define SHARDSCOPE_MEMBER_library(name)
#define SHARDSCOPE_MEMBER_step_value(name) double name = NAN_;  // not recorded: NaN
#define EVENT(number, name, shape, role, ...) SHARDSCOPE_MEMBER_##role(name)
#include "instrumentation/event_kinds.def"
#undef SHARDSCOPE_MEMBER_step_value
};

struct StepValue {
  instrumentation::EventKind kind{};
  double StepValues::*member = nullptr;
  double (*read)(const instrumentation::Event&) = nullptr;
  [[nodiscard]] const char* name() const noexcept { return instrumentation::name_of(kind); }
};
/// In the order of the table of kinds.
inline constexpr auto kStepValues = std::to_array<StepValue>({
#define SHARDSCOPE_MEMBER_step_value(name)                                                        \
  {instrumentation::EventKind::name, &StepValues::name, [](const instrumentation::Event& event) { \
     return instrumentation::as<instrumentation::EventKind::name>(event).value;                   \
   }},
#define EVENT(number, name, shape, role, ...) SHARDSCOPE_MEMBER_##role(name)
#include "instrumentation/event_kinds.def"
});
#undef SHARDSCOPE_MEMBER_none
#undef SHARDSCOPE_MEMBER_wait
#undef SHARDSCOPE_MEMBER_work
#undef SHARDSCOPE_MEMBER_state
#undef SHARDSCOPE_MEMBER_library
#undef SHARDSCOPE_MEMBER_step_value

/// The last columns of every table of steps: value(StepValue) for each, and skipped() once. `skipped`
/// comes right after learning_rate, and the values after it in the order in which they were added to the
/// table of kinds.
template <typename Value, typename Skipped>
void for_each_step_column(Value value, Skipped skipped) {
  for (const StepValue& column : kStepValues) {
    value(column);
    if (column.kind == instrumentation::EventKind::learning_rate) skipped();
  }
}

}  // namespace shardscope::store
