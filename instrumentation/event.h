// The event record: 40 bytes on the wire and in memory (a ring's own records are shorter), no pointers or
// strings. event_kinds.def is the table of kinds and their fields; event_fields.h reads and writes fields by
// name. Emission stores raw clock ticks; the publisher converts them to nanoseconds of the rank's monotonic
// clock before they leave the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace shardscope::instrumentation {

inline constexpr std::uint32_t kNoId = std::numeric_limits<std::uint32_t>::max();

// ---- enumerations of the fields, from event_enums.def -----------------------------------------------------
#define ENUM(type, ...) enum class type : std::uint8_t { __VA_ARGS__ };
#define VALUE(name, label) name,
#include "instrumentation/event_enums.def"

template <typename Enum>
inline constexpr std::uint8_t kValueCount = 0;
// name_of(): "module_begin", as in files; label_of(): "module begin", for users; "unknown" outside the enum.
#define ENUM(type, ...)                                            \
  template <>                                                      \
  inline constexpr std::uint8_t kValueCount<type> = 0 __VA_ARGS__; \
  [[nodiscard]] const char* name_of(type value) noexcept;          \
  [[nodiscard]] const char* label_of(type value) noexcept;
#define VALUE(name, label) +1
#include "instrumentation/event_enums.def"

inline constexpr std::uint8_t kStreamCount = kValueCount<StreamId>;
inline constexpr std::uint8_t kCollectiveScopeCount = kValueCount<CollectiveScope>;
inline constexpr std::uint8_t kMemoryPoolCount = kValueCount<MemoryPool>;
inline constexpr std::uint8_t kMemoryCategoryCount = kValueCount<MemoryCategory>;
inline constexpr std::uint8_t kGpuWorkCount = kValueCount<GpuWork>;
inline constexpr std::uint8_t kGpuOwnerCount = kValueCount<GpuOwner>;

// ---- kinds, from event_kinds.def --------------------------------------------------------------------------
enum class EventKind : std::uint16_t {
#define EVENT(number, name, ...) name = number,
#include "instrumentation/event_kinds.def"
};
enum class EventShape : std::uint8_t { instant, begin, end };
/// How generic code treats a kind; explained in event_kinds.def.
enum class EventRole : std::uint8_t { none, wait, work, state, step_value, library };
/// Further properties of a kind for generic code; explained in event_kinds.def.
enum class EventTrait : std::uint8_t { mark, of_values, kept_each, kept_first, kept_first_of_stretch };

struct KindRow {
  const char* name = "unknown";
  Detail detail = Detail::kernels;
  EventShape shape = EventShape::instant;
  EventRole role = EventRole::none;
  std::uint8_t traits = 0;  ///< one bit per EventTrait
};
/// Indexed by kind; 0 and numbers beyond the table are unknown.
inline constexpr auto kKindRows = std::to_array<KindRow>({
    {},
#define EVENT(number, name, shape, role, detail, lane, text, ...) \
  {#name, Detail::detail, EventShape::shape, EventRole::role, 0 __VA_ARGS__},
#define FIELD(slot, name, type, unit)
#define BITS(slot, shift, width, name, type, unit)
#define TRAIT(trait) | 1U << static_cast<unsigned>(EventTrait::trait)
#include "instrumentation/event_kinds.def"
});
inline constexpr EventKind kLastEventKind = static_cast<EventKind>(kKindRows.size() - 1);

[[nodiscard]] constexpr const KindRow& row_of(EventKind kind) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  return kKindRows[number < kKindRows.size() ? number : 0];
}
/// The detail level at which a kind is emitted.
[[nodiscard]] constexpr Detail detail_of(EventKind kind) noexcept { return row_of(kind).detail; }
/// "module_begin", ... for exports and messages; "unknown" for a value outside the enum.
[[nodiscard]] constexpr const char* name_of(EventKind kind) noexcept { return row_of(kind).name; }
[[nodiscard]] constexpr EventRole role_of(EventKind kind) noexcept { return row_of(kind).role; }
[[nodiscard]] constexpr bool has_trait(EventKind kind, EventTrait trait) noexcept {
  return (row_of(kind).traits >> static_cast<unsigned>(trait) & 1U) != 0;
}
[[nodiscard]] constexpr bool is_begin(EventKind kind) noexcept {
  return row_of(kind).shape == EventShape::begin;
}
[[nodiscard]] constexpr bool is_end(EventKind kind) noexcept { return row_of(kind).shape == EventShape::end; }
/// The end kind of a begin kind; the kind itself for others.
[[nodiscard]] constexpr EventKind end_of(EventKind kind) noexcept {
  return is_begin(kind) ? static_cast<EventKind>(static_cast<std::uint16_t>(kind) + 1) : kind;
}
// Rows are in order of their numbers, without gaps, and every begin is followed by its end.
static_assert([] {
#define EVENT(number, name, ...) static_cast<std::size_t>(number),
  constexpr std::size_t kNumbers[] = {
#include "instrumentation/event_kinds.def"
  };
  for (std::size_t i = 0; i + 1 < kKindRows.size(); ++i) {
    if (kNumbers[i] != i + 1) return false;
    const bool ends = i + 2 < kKindRows.size() && kKindRows[i + 2].shape == EventShape::end;
    if ((kKindRows[i + 1].shape == EventShape::begin) != ends) return false;
  }
  return true;
}());

/// v0 of gpu_begin if the launch was not recorded.
inline constexpr std::int64_t kNoDelay = std::numeric_limits<std::int64_t>::min();

/// code of param_status: status (plan::ParamStatus) in the low 4 bits, StatusCause in the high 4.
[[nodiscard]] constexpr std::uint8_t status_code(std::uint8_t status, StatusCause cause) noexcept {
  return static_cast<std::uint8_t>((status & 0xF) | (static_cast<std::uint8_t>(cause) << 4));
}
/// As HeldStatus::bits (param_status.h).
[[nodiscard]] constexpr std::uint8_t held_status_of(std::uint8_t status_code) noexcept {
  return status_code & 0xFU;
}
[[nodiscard]] constexpr StatusCause cause_of(std::uint8_t status_code) noexcept {
  return static_cast<StatusCause>(status_code >> 4U);
}
/// code of memory_alloc and memory_free: MemoryCategory in the low 4 bits, MemoryPool in the high 4. Returns
/// a number, which may be that of an unknown pool.
[[nodiscard]] constexpr std::size_t pool_number(std::uint8_t memory_code) noexcept {
  return memory_code >> 4U;
}
/// c of collective_begin and _end: ElementType in bits 0-7, CollectiveScope in bits 8-12, kHoldsHost in bit
/// 13, kEndedByError in bit 14, kEndIsBound in bit 15, ranks of the communicator in bits 16-31; for scope
/// `group` the group's id instead.
[[nodiscard]] constexpr std::uint32_t collective_code(std::uint8_t type, CollectiveScope scope,
                                                      std::uint32_t ranks) noexcept {
  return type | static_cast<std::uint32_t>(scope) << 8U | (ranks & 0xFFFFU) << 16U;
}
[[nodiscard]] constexpr CollectiveScope scope_of(std::uint32_t collective_code) noexcept {
  return static_cast<CollectiveScope>(collective_code >> 8U & 0x1FU);
}
/// In a CollectiveCode: the end is an upper bound, the operation ended at an unknown time before it.
inline constexpr std::uint32_t kEndIsBound = 1U << 15U;
[[nodiscard]] constexpr bool end_is_bound(std::uint32_t collective_code) noexcept {
  return collective_code != kNoId && (collective_code & kEndIsBound) != 0;
}
/// In a CollectiveCode: a synchronous call on host memory, which returned when the operation had ended. The
/// thread that trains did nothing else, whatever spans of modules are around the call.
inline constexpr std::uint32_t kHoldsHost = 1U << 13U;
[[nodiscard]] constexpr bool holds_host(std::uint32_t collective_code) noexcept {
  return collective_code != kNoId && (collective_code & kHoldsHost) != 0;
}
/// In the CollectiveCode of an end: the operation failed, for example because another rank died. Such an end
/// does not imply that every rank had begun it.
inline constexpr std::uint32_t kEndedByError = 1U << 14U;
[[nodiscard]] constexpr bool ended_by_error(std::uint32_t collective_code) noexcept {
  return collective_code != kNoId && (collective_code & kEndedByError) != 0;
}
/// A group's id; kNoId for other scopes.
[[nodiscard]] constexpr std::uint32_t group_of(std::uint32_t collective_code) noexcept {
  return collective_code != kNoId && scope_of(collective_code) == CollectiveScope::group
             ? collective_code >> 16U
             : kNoId;
}
/// a of a collective in a group: the group's id and its number within the group. No two collectives of a rank
/// have the same.
[[nodiscard]] constexpr std::uint32_t group_sequence(std::uint32_t group, std::uint32_t number) noexcept {
  return ((group + 1) & 0xFFU) << 24U | (number & 0xFFFFFFU);
}
/// The number within the group.
[[nodiscard]] constexpr std::uint32_t number_in_group(std::uint32_t sequence) noexcept {
  return sequence & 0xFFFFFFU;
}
/// Undefined for scope `group`.
[[nodiscard]] constexpr std::uint32_t ranks_of(std::uint32_t collective_code) noexcept {
  return collective_code >> 16U;
}
/// c of nccl_collective: algorithm in bits 0-7, protocol in bits 8-15, channels in bits 16-23, warps of a
/// channel in bits 24-31.
[[nodiscard]] constexpr std::uint32_t nccl_code(NcclAlgorithm algorithm, NcclProtocol protocol,
                                                std::uint32_t channels, std::uint32_t warps) noexcept {
  return static_cast<std::uint32_t>(algorithm) | static_cast<std::uint32_t>(protocol) << 8U |
         (channels & 0xFFU) << 16U | (warps & 0xFFU) << 24U;
}
/// code of gpu_begin and _end: GpuWork in the low 4 bits, GpuOwner in the high 4.
[[nodiscard]] constexpr std::uint8_t gpu_code(GpuWork work, GpuOwner owner) noexcept {
  return static_cast<std::uint8_t>((static_cast<std::uint8_t>(work) & 0xF) |
                                   (static_cast<std::uint8_t>(owner) << 4));
}
[[nodiscard]] constexpr GpuWork work_of(std::uint8_t gpu_code) noexcept {
  return static_cast<GpuWork>(gpu_code & 0xF);
}
[[nodiscard]] constexpr GpuOwner owner_of(std::uint8_t gpu_code) noexcept {
  return static_cast<GpuOwner>(gpu_code >> 4U);
}
/// Whether the lane is a CUDA stream.
[[nodiscard]] constexpr bool is_gpu_stream(StreamId lane) noexcept {
  return lane >= StreamId::gpu_compute && lane <= StreamId::gpu_other_3;
}

struct Event {
  std::uint64_t ticks = 0;  ///< raw clock ticks inside the process; signed nanoseconds afterwards
  EventKind kind{};
  StreamId stream{};
  std::uint8_t code = 0;
  std::uint32_t a = kNoId;
  std::uint32_t b = kNoId;
  std::uint32_t c = kNoId;
  std::int64_t v0 = 0;
  std::int64_t v1 = 0;
};
static_assert(sizeof(Event) == 40);

}  // namespace shardscope::instrumentation
