// Display names in ZeRO's terms for every value that an event can carry. Texts of decisions:
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

/// Labels of the events' own enumerations, from event_enums.def.
template <typename Enum>
requires requires(Enum value) { ev::label_of(value); }
[[nodiscard]] const char* word(Enum value) noexcept { return ev::label_of(value); }
[[nodiscard]] const char* word(plan::ParamStatus status) noexcept;
[[nodiscard]] const char* word(plan::TraceMode mode) noexcept;

using store::module_name;
/// Without the model's own name (tail_path()).
[[nodiscard]] std::string short_module(const store::Store& store, std::uint32_t module);
[[nodiscard]] std::string short_param(const store::Store& store, std::uint32_t param);
/// What is gathered and released as one unit: short_module() after the framework's term ("group
/// layers.0").
[[nodiscard]] std::string unit_name(const store::Store& store, std::uint32_t module);
/// unit_name() with the full module_name(), which is unique.
[[nodiscard]] std::string whole_unit_name(const store::Store& store, std::uint32_t module);
/// The vocabulary of the run's framework.
[[nodiscard]] const store::Vocabulary& words_of(const store::Store& store);
/// Why a parameter's status changed: "fetched", or for FSDP2 "unsharded".
[[nodiscard]] std::string cause_word(const store::Store& store, ev::StatusCause cause);
/// Capitalizes the first letter.
[[nodiscard]] std::string sentence(std::string text);
/// label_of(), with short_module() for spans of modules.
[[nodiscard]] std::string short_label(const store::Store& store, std::uint32_t rank, const store::Span& span);
/// Replaces a state that is unknown: see Store::is_known().
[[nodiscard]] std::string not_kept_text();
/// For a rank whose gate at a time is not known: it has passed none yet, or its events of that time were
/// deleted.
[[nodiscard]] std::string no_gate_text(const store::Store& store, std::uint32_t rank, std::int64_t at_ns);
/// "parameter 7" if it is not in the tables.
[[nodiscard]] std::string param_name(const store::Store& store, std::uint32_t param);
/// The owner of GPU work: "h.3.attn, backward"; empty if unknown.
[[nodiscard]] std::string gpu_owner(const store::Store& store,
                                    const ev::Fields<ev::EventKind::gpu_begin>& work);
/// "before the forward of h.3.attn".
[[nodiscard]] std::string gate_place(const store::Store& store, ev::GateKind kind, std::uint32_t id);
/// The same for narrow columns, with the module first: "h.3.attn, before forward".
[[nodiscard]] std::string brief_gate_place(const store::Store& store, ev::GateKind kind, std::uint32_t id);
/// The label of a span. Views shorten it.
using store::label_of;

}  // namespace shardscope::gui
