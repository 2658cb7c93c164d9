// The words of the dashboard: ZeRO's terms for every value an event can carry.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/store/store.h"
#include "instrumentation/event.h"
#include "instrumentation/gate.h"
#include "runtime/plan/bucket.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

[[nodiscard]] const char* word(ev::StreamId stream) noexcept;
[[nodiscard]] const char* word(ev::Phase phase) noexcept;
[[nodiscard]] const char* word(ev::Pass pass) noexcept;
[[nodiscard]] const char* word(ev::CollectiveOp op) noexcept;
[[nodiscard]] const char* word(ev::MemoryPool pool) noexcept;
[[nodiscard]] const char* word(ev::MemoryCategory category) noexcept;
[[nodiscard]] const char* word(ev::TransferKind kind) noexcept;
[[nodiscard]] const char* word(ev::StatusCause cause) noexcept;
[[nodiscard]] const char* word(ev::GpuWork work) noexcept;
[[nodiscard]] const char* word(ev::GpuSync sync) noexcept;
[[nodiscard]] const char* word(ev::GateKind kind) noexcept;
[[nodiscard]] const char* word(plan::ParamStatus status) noexcept;
[[nodiscard]] const char* word(plan::TraceMode mode) noexcept;
/// Whole sentences: why the prefetcher stopped, why a parameter stays, why a bucket went.
[[nodiscard]] const char* sentence(plan::PrefetchStop stop) noexcept;
[[nodiscard]] const char* sentence(plan::KeepReason reason) noexcept;
[[nodiscard]] const char* sentence(plan::FlushReason reason) noexcept;

/// Module path or parameter name by id; the root is the model's name; "module 7" when not in the tables.
[[nodiscard]] std::string module_name(const store::Store& store, std::uint32_t module);
[[nodiscard]] std::string param_name(const store::Store& store, std::uint32_t param);
/// For whom the GPU worked: "h.3.attn, backward"; empty where that is not known.
[[nodiscard]] std::string gpu_owner(const store::Store& store, std::uint8_t code, std::uint32_t owner);
/// "before the forward of h.3.attn".
[[nodiscard]] std::string gate_place(const store::Store& store, ev::GateKind kind, std::uint32_t id);
/// What to write on a span: "attn", "bucket 7", "all-gather 12". Views shorten it.
[[nodiscard]] std::string span_label(const store::Store& store, std::uint32_t rank, const store::Span& span);

}  // namespace shardscope::gui
