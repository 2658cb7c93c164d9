#include "app/arrow/event_columns.h"

#include <array>
#include <optional>
#include <type_traits>

#include "app/store/names.h"
#include "instrumentation/event_fields.h"
#include "runtime/plan/bucket.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::arrow {
namespace {

using namespace shardscope::instrumentation;  // the types of fields, as the table spells them

// The plan's enumerations, by value; the C interface has them in the same order.
template <typename T>
inline constexpr std::array<const char*, 0> kNames{};
template <>
inline constexpr auto kNames<plan::FlushReason> =
    std::to_array({"full", "extra_large", "epilogue", "boundary", "group_changed", "group_complete"});
template <>
inline constexpr auto kNames<plan::TraceMode> = std::to_array({"invalid", "record", "complete"});
template <>
inline constexpr auto kNames<plan::PrefetchStop> = std::to_array({"disabled", "no_trace", "end_of_trace",
                                                                  "bucket_full", "live_limit", "offloaded",
                                                                  "returned"});
template <>
inline constexpr auto kNames<plan::KeepReason> = std::to_array({"persistent", "reused_soon",
                                                                "already_fetched", "in_use", "external",
                                                                "not_available", "reshard_off"});
template <>
inline constexpr auto kNames<plan::InvalidationCause> = std::to_array({"module_differs", "trace_too_short",
                                                                       "params_differ"});
template <>
inline constexpr auto kNames<plan::PrefetchOutcome> = std::to_array({"early", "just_in_time", "late",
                                                                     "mistargeted", "unused"});
static_assert(kNames<plan::FlushReason>.size() ==
              static_cast<std::size_t>(plan::FlushReason::group_complete) + 1);
static_assert(kNames<plan::PrefetchStop>.size() ==
              static_cast<std::size_t>(plan::PrefetchStop::returned) + 1);
static_assert(kNames<plan::KeepReason>.size() == static_cast<std::size_t>(plan::KeepReason::reshard_off) + 1);

template <typename T>
constexpr bool kNamed = std::is_enum_v<T> && (!kNames<T>.empty() || requires(T value) { name_of(value); });

template <typename T>
struct Of {
  static constexpr ColumnType type() {
    if constexpr (std::is_same_v<T, double>) return ColumnType::float64;
    if constexpr (std::is_same_v<T, bool>) return ColumnType::boolean;
    if constexpr (std::is_same_v<T, HeldStatus> || kNamed<T>) return ColumnType::text;
    if constexpr (std::is_same_v<T, std::uint32_t> || std::is_same_v<T, CollectiveCode>)
      return ColumnType::uint32;
    return ColumnType::int64;
  }
  static void append(Batch& batch, const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      batch.number(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      batch.flag(value);
    } else if constexpr (std::is_same_v<T, HeldStatus>) {
      batch.text(store::status_name(status_of(value.bits)));
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      batch.id(value);
    } else if constexpr (std::is_same_v<T, CollectiveCode>) {
      batch.id(value.bits);
    } else if constexpr (kNamed<T> && !kNames<T>.empty()) {
      const auto index = static_cast<std::size_t>(value);
      batch.text(index < kNames<T>.size() ? kNames<T>[index] : "unknown");
    } else if constexpr (kNamed<T>) {
      batch.text(name_of(value));
    } else {
      batch.integer(static_cast<std::int64_t>(value));
    }
  }
};
template <typename T>
struct Of<std::optional<T>> {
  static constexpr ColumnType type() { return Of<T>::type(); }
  static void append(Batch& batch, const std::optional<T>& value) {
    if (value) {
      Of<T>::append(batch, *value);
    } else {
      batch.null();
    }
  }
};

template <EventSlot slot, unsigned shift, unsigned width, typename T>
EventColumn column(const char* name) {
  return {{name, Of<T>::type()}, [](Batch& batch, const Event& record) {
            std::uint64_t bits = fields::slot<slot>(record);
            if constexpr (width > 0) bits = bits >> shift & fields::mask(width);
            Of<T>::append(batch, fields::from_bits<T>(bits));
          }};
}

}  // namespace

std::vector<EventColumn> columns_of(EventKind kind) {
  std::vector<EventColumn> out;
  switch (kind) {
#define EVENT(number, name, shape, role, detail, lane, text, ...) \
  case EventKind::name:                                           \
    out = {__VA_ARGS__};                                          \
    break;
#define FIELD(slot, name, type, unit) column<EventSlot::slot, 0, 0, type>(#name),
#define BITS(slot, shift, width, name, type, unit) column<EventSlot::slot, shift, width, type>(#name),
#include "instrumentation/event_kinds.def"
  }
  return out;
}

Event begin_of(const store::Span& span) {
  return {.ticks = static_cast<std::uint64_t>(span.begin_ns),
          .kind = span.kind,
          .code = span.code,
          .a = span.a,
          .b = span.b,
          .c = span.c,
          .v0 = span.v0,
          .v1 = span.v1};
}

}  // namespace shardscope::arrow
