// The words of the dashboard: ZeRO's terms for every value an event can carry. Why something was decided:
// app/analysis/decision_text.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/store/store.h"
#include "instrumentation/event.h"
#include "instrumentation/gate.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

/// Words for values of the events' own enumerations, from event_enums.def.
template <typename Enum>
requires requires(Enum value) { ev::label_of(value); }
[[nodiscard]] const char* word(Enum value) noexcept { return ev::label_of(value); }
[[nodiscard]] const char* word(plan::ParamStatus status) noexcept;
[[nodiscard]] const char* word(plan::TraceMode mode) noexcept;

/// Module path or parameter name by id; the root is the model's name; "module 7" when not in the tables.
[[nodiscard]] std::string module_name(const store::Store& store, std::uint32_t module);
/// In place of a state that is not known: Store::is_known().
[[nodiscard]] std::string not_kept_text();
[[nodiscard]] std::string param_name(const store::Store& store, std::uint32_t param);
/// The owner of GPU work: "h.3.attn, backward"; empty where that is not known.
[[nodiscard]] std::string gpu_owner(const store::Store& store, std::uint8_t code, std::uint32_t owner);
/// "before the forward of h.3.attn".
[[nodiscard]] std::string gate_place(const store::Store& store, ev::GateKind kind, std::uint32_t id);
/// What to write on a span: "attn", "bucket 7", "all-gather 12". Views shorten it.
[[nodiscard]] std::string span_label(const store::Store& store, std::uint32_t rank, const store::Span& span);

}  // namespace shardscope::gui
