// The words for enumerators, as exports and summary tables spell them; "unknown" outside the enum.
#pragma once

#include "instrumentation/event.h"

namespace shardscope::store {

[[nodiscard]] const char* name_of(instrumentation::StreamId stream) noexcept;
[[nodiscard]] const char* name_of(instrumentation::MemoryPool pool) noexcept;
[[nodiscard]] const char* name_of(instrumentation::MemoryCategory category) noexcept;
[[nodiscard]] const char* name_of(instrumentation::CollectiveOp op) noexcept;
[[nodiscard]] const char* name_of(instrumentation::CollectiveScope scope) noexcept;
[[nodiscard]] const char* name_of(instrumentation::Phase phase) noexcept;
[[nodiscard]] const char* name_of(instrumentation::Pass pass) noexcept;
[[nodiscard]] const char* name_of(instrumentation::StatusCause cause) noexcept;
[[nodiscard]] const char* name_of(instrumentation::Severity severity) noexcept;
[[nodiscard]] const char* name_of(instrumentation::Detail detail) noexcept;
[[nodiscard]] const char* name_of(instrumentation::TransferKind kind) noexcept;
[[nodiscard]] const char* name_of(instrumentation::NcclAlgorithm algorithm) noexcept;
[[nodiscard]] const char* name_of(instrumentation::NcclProtocol protocol) noexcept;
[[nodiscard]] const char* name_of(instrumentation::GpuWork work) noexcept;
[[nodiscard]] const char* name_of(instrumentation::GpuOwner owner) noexcept;
[[nodiscard]] const char* name_of(instrumentation::GpuSync sync) noexcept;
/// plan::ParamStatus by its number.
[[nodiscard]] const char* status_name(unsigned status) noexcept;

}  // namespace shardscope::store
