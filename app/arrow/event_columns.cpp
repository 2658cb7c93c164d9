#include "app/arrow/event_columns.h"

#include <optional>
#include <type_traits>

#include "app/store/names.h"
#include "instrumentation/event_fields.h"
#include "runtime/plan/decision_names.h"
#include "runtime/plan/fetch_counters.h"

namespace shardscope::arrow {
namespace {

using namespace shardscope::instrumentation;  // field types, spelled as in the table of kinds

template <typename T>
constexpr bool kNamed = std::is_enum_v<T>&& requires(T value) {
  name_of(value);
};

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
