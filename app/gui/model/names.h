// The words of the dashboard: ZeRO's terms for every value an event can carry. Why something was decided:
// app/analysis/decision_text.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/store/module_name.h"
#include "app/store/span_label.h"
#include "app/store/store.h"
#include "app/store/vocabulary.h"
#include "instrumentation/event.h"
#include "instrumentation/event_fields.h"
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

using store::module_name;
/// The same without the model's own name in front (tail_path()).
[[nodiscard]] std::string short_module(const store::Store& store, std::uint32_t module);
[[nodiscard]] std::string short_param(const store::Store& store, std::uint32_t param);
/// What is gathered and released as one: short_module(), after the framework's word for it ("group
/// layers.0").
[[nodiscard]] std::string unit_name(const store::Store& store, std::uint32_t module);
/// The same of module_name(), which no other module has.
[[nodiscard]] std::string whole_unit_name(const store::Store& store, std::uint32_t module);
/// The words of the run's framework.
[[nodiscard]] const store::Vocabulary& words_of(const store::Store& store);
/// Why a parameter's status changed: "fetched", of FSDP2 "unsharded".
[[nodiscard]] std::string cause_word(const store::Store& store, ev::StatusCause cause);
/// The first letter as a capital.
[[nodiscard]] std::string sentence(std::string text);
/// label_of(), of a module's span short_module().
[[nodiscard]] std::string short_label(const store::Store& store, std::uint32_t rank, const store::Span& span);
/// In place of a state that is not known: Store::is_known().
[[nodiscard]] std::string not_kept_text();
/// "parameter 7" when not in the tables.
[[nodiscard]] std::string param_name(const store::Store& store, std::uint32_t param);
/// The owner of GPU work: "h.3.attn, backward"; empty where that is not known.
[[nodiscard]] std::string gpu_owner(const store::Store& store,
                                    const ev::Fields<ev::EventKind::gpu_begin>& work);
/// "before the forward of h.3.attn".
[[nodiscard]] std::string gate_place(const store::Store& store, ev::GateKind kind, std::uint32_t id);
/// What to write on a span. Views shorten it.
using store::label_of;

}  // namespace shardscope::gui
