// The table of kinds as data, from event_kinds.def, for generic code: the C header, the manual, exports that
// write an event's fields by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "instrumentation/event_fields.h"

namespace shardscope::instrumentation {

struct FieldInfo {
  EventSlot slot{};
  std::uint8_t shift = 0;
  std::uint8_t width = 0;  ///< bits; less than the slot's if the field is a part of it
  const char* name = "";
  std::string_view type;  ///< as in the table: "double", "plan::TraceMode"
  std::string_view unit;
  /// Whether the field is only a part of its slot.
  [[nodiscard]] bool is_part() const noexcept;
};

struct KindInfo {
  EventKind kind{};
  std::optional<StreamId> lane;  ///< nullopt: chosen by the emitter
  std::string_view lane_text;    ///< for users
  std::string_view text;         ///< one sentence; may be empty
  std::span<const FieldInfo> fields;
};

/// Sorted by number; the first is step_begin.
[[nodiscard]] std::span<const KindInfo> event_kinds() noexcept;
/// Row of a kind in this version's table.
[[nodiscard]] const KindInfo& info_of(EventKind kind) noexcept;

/// A field's bits in an event; nullopt if its 32-bit slot has no id.
[[nodiscard]] std::optional<std::int64_t> integer_of(const FieldInfo& field, const Event& event) noexcept;

}  // namespace shardscope::instrumentation
