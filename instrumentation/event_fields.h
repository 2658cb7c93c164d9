// Typed access to the fields of events, from event_kinds.def: the only way in which code outside of the
// transport and the recording's codec should read or fill an event's slots.
//
//   emit(make<EventKind::clip_factor>({.step = 7, .value = 0.5}));
//   if (event.kind == EventKind::clip_factor) use(as<EventKind::clip_factor>(event).value);
//
// Everything is inline: fields that are not used are not decoded.
#pragma once

#include <bit>
#include <concepts>
#include <optional>
#include <type_traits>

#include "instrumentation/event.h"
#include "instrumentation/param_status.h"

// runtime/plan enumerates its decisions; only the types are needed here.
namespace shardscope::plan {
enum class FlushReason : std::uint8_t;
enum class TraceMode : std::uint8_t;
enum class InvalidationCause : std::uint8_t;
enum class PrefetchStop : std::uint8_t;
enum class PrefetchOutcome : std::uint8_t;
enum class KeepReason : std::uint8_t;
enum class FetchCounter : std::uint8_t;
enum class LimitedOperation : std::uint8_t;
enum class SelectionCause : std::uint8_t;
enum class UpdateCause : std::uint8_t;
}  // namespace shardscope::plan

namespace shardscope::instrumentation {

/// Scope of a collective and type of its elements; kNoId: among all ranks, type
/// unknown.
struct CollectiveCode {
  std::uint32_t bits = kNoId;
  [[nodiscard]] constexpr bool known() const noexcept { return bits != kNoId; }
  [[nodiscard]] constexpr CollectiveScope scope() const noexcept { return scope_of(bits); }
  /// 0: the whole world.
  [[nodiscard]] constexpr std::uint32_t ranks() const noexcept { return ranks_of(bits); }
  [[nodiscard]] constexpr std::uint32_t group() const noexcept { return group_of(bits); }
  [[nodiscard]] constexpr bool end_is_bound() const noexcept { return instrumentation::end_is_bound(bits); }
  [[nodiscard]] constexpr bool holds_host() const noexcept { return instrumentation::holds_host(bits); }
  [[nodiscard]] constexpr bool ended_by_error() const noexcept {
    return instrumentation::ended_by_error(bits);
  }
  /// An ElementType's value.
  [[nodiscard]] constexpr std::uint8_t dtype() const noexcept { return static_cast<std::uint8_t>(bits); }
  friend constexpr bool operator==(CollectiveCode, CollectiveCode) = default;
};

enum class EventSlot : std::uint8_t { a, b, c, code, v0, v1 };

namespace fields {

/// Converts a slot's bits to the field's type and back.
template <typename T>
constexpr T from_bits(std::uint64_t bits) noexcept {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else if constexpr (std::is_same_v<T, bool>) {
    return bits != 0;
  } else if constexpr (requires { typename T::value_type; }) {  // std::optional of an enumeration
    if (bits == kNoId) return std::nullopt;
    return static_cast<typename T::value_type>(static_cast<std::uint8_t>(bits));
  } else if constexpr (std::is_class_v<T>) {
    return T{static_cast<decltype(T::bits)>(bits)};
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(static_cast<std::underlying_type_t<T>>(bits));
  } else {
    return static_cast<T>(bits);
  }
}
template <typename T>
constexpr std::uint64_t to_bits(const T& value) noexcept {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else if constexpr (requires { typename T::value_type; }) {
    return value ? static_cast<std::uint64_t>(*value) : kNoId;
  } else if constexpr (std::is_class_v<T>) {
    return value.bits;
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

/// Default of a field: no id, an enumeration's first value, or 0.
template <typename T>
constexpr T initial(EventSlot slot) noexcept {
  if constexpr (std::is_same_v<T, std::uint32_t>) {
    return slot <= EventSlot::c ? kNoId : 0;
  } else {
    return T{};
  }
}

/// `Record` is an Event or a type with the same slot names, such as a span of the store.
template <EventSlot Slot, typename Record>
constexpr std::uint64_t slot(const Record& record) noexcept {
  if constexpr (Slot == EventSlot::a) return record.a;
  if constexpr (Slot == EventSlot::b) return record.b;
  if constexpr (Slot == EventSlot::c) return record.c;
  if constexpr (Slot == EventSlot::code) return record.code;
  if constexpr (Slot == EventSlot::v0) return static_cast<std::uint64_t>(record.v0);
  if constexpr (Slot == EventSlot::v1) return static_cast<std::uint64_t>(record.v1);
}
template <EventSlot Slot>
constexpr void set_slot(Event& event, std::uint64_t bits) noexcept {
  if constexpr (Slot == EventSlot::a) event.a = static_cast<std::uint32_t>(bits);
  if constexpr (Slot == EventSlot::b) event.b = static_cast<std::uint32_t>(bits);
  if constexpr (Slot == EventSlot::c) event.c = static_cast<std::uint32_t>(bits);
  if constexpr (Slot == EventSlot::code) event.code = static_cast<std::uint8_t>(bits);
  if constexpr (Slot == EventSlot::v0) event.v0 = static_cast<std::int64_t>(bits);
  if constexpr (Slot == EventSlot::v1) event.v1 = static_cast<std::int64_t>(bits);
}
constexpr std::uint64_t mask(unsigned width) noexcept { return (std::uint64_t{1} << width) - 1; }
/// Writes a part of a slot. Parts of a, b or c cover all 32 bits: an unwritten slot is kNoId.
template <EventSlot Slot>
constexpr void set_bits(Event& event, unsigned shift, unsigned width, std::uint64_t bits) noexcept {
  const std::uint64_t others = slot<Slot>(event) & ~(mask(width) << shift);
  set_slot<Slot>(event, others | (bits & mask(width)) << shift);
}

}  // namespace fields

/// The fields of one kind, in the order of the table; omitted ones are no id or 0.
template <EventKind kind>
struct Fields;

#define EVENT(number, name, shape, role, detail, lane, text, ...) \
  template <>                                                     \
  struct Fields<EventKind::name> {                                \
    __VA_ARGS__                                                   \
  };
#define FIELD(slot, name, type, unit) type name = fields::initial<type>(EventSlot::slot);
#define BITS(slot, shift, width, name, type, unit) type name{};
#include "instrumentation/event_kinds.def"

namespace fields {

#define EVENT(number, name, shape, role, detail, lane, text, ...)                                           \
  [[gnu::always_inline]] constexpr void write(Event& event, const Fields<EventKind::name>& from) noexcept { \
    __VA_ARGS__                                                                                             \
  }
#define FIELD(slot, name, type, unit) set_slot<EventSlot::slot>(event, to_bits(from.name));
#define BITS(slot, shift, width, name, type, unit) \
  set_bits<EventSlot::slot>(event, shift, width, to_bits(from.name));
#include "instrumentation/event_kinds.def"

#define EVENT(number, name, shape, role, detail, lane, text, ...)                                          \
  template <typename Record>                                                                               \
  [[gnu::always_inline]] constexpr void read(const Record& record, Fields<EventKind::name>& to) noexcept { \
    __VA_ARGS__                                                                                            \
  }
#define FIELD(slot_, name, type, unit) to.name = from_bits<type>(slot<EventSlot::slot_>(record));
#define BITS(slot_, shift, width, name, type, unit) \
  to.name = from_bits<type>(slot<EventSlot::slot_>(record) >> shift & mask(width));
#include "instrumentation/event_kinds.def"

/// The lane of a kind that has a fixed one.
template <EventKind kind>
inline constexpr std::optional<StreamId> kLane;
#define EVENT(number, name, shape, role, detail, lane, ...) \
  template <>                                               \
  inline constexpr std::optional<StreamId> kLane<EventKind::name> = lane;
#define ON(stream) StreamId::stream
#define OWN(text) std::nullopt
#include "instrumentation/event_kinds.def"
#undef ON
#undef OWN

}  // namespace fields

/// Makes an event of a kind that may be on several lanes. Emission sets the timestamp.
template <EventKind kind>
[[nodiscard, gnu::always_inline]] constexpr Event make(StreamId lane, const Fields<kind>& from) noexcept {
  Event event{.kind = kind, .stream = lane};
  fields::write(event, from);
  return event;
}
/// Makes an event of a kind with a fixed lane.
template <EventKind kind>
[[nodiscard, gnu::always_inline]] constexpr Event make(const Fields<kind>& from) noexcept {
  static_assert(fields::kLane<kind>,
                "the table leaves this kind's lane to the emitter: make<kind>(lane, fields)");
  return make<kind>(*fields::kLane<kind>, from);
}

/// The fields of an event or span of `kind`, or of the matching end. Kinds with equal fields are
/// interchangeable: memory_alloc and memory_free, a begin and its end.
template <EventKind kind, typename Record>
[[nodiscard, gnu::always_inline]] constexpr Fields<kind> as(const Record& record) noexcept {
  Fields<kind> to;
  fields::read(record, to);
  return to;
}

/// Whether two events or spans of the same kind have the same first field, which is the id of what they are
/// about where the kind has one: a module, a parameter, a collective, a gate.
template <typename One, typename Other>
[[nodiscard]] constexpr bool same_first_field(const One& one, const Other& other) noexcept {
  return fields::slot<EventSlot::a>(one) == fields::slot<EventSlot::a>(other);
}

}  // namespace shardscope::instrumentation
