#include "instrumentation/event_table.h"

#include <array>

namespace shardscope::instrumentation {
namespace {

constexpr std::uint8_t width_of(EventSlot slot) noexcept {
  switch (slot) {
    case EventSlot::a:
    case EventSlot::b:
    case EventSlot::c:
      return 32;
    case EventSlot::code:
      return 8;
    case EventSlot::v0:
    case EventSlot::v1:
      return 64;
  }
  return 0;
}

template <EventKind kind>
inline constexpr int kFields = 0;
#define EVENT(number, name, shape, role, detail, lane, text, ...) \
  template <>                                                     \
  inline constexpr auto kFields<EventKind::name> = std::to_array<FieldInfo>({__VA_ARGS__});
#define FIELD(slot, name, type, unit) {EventSlot::slot, 0, width_of(EventSlot::slot), #name, #type, unit},
#define BITS(slot, shift, width, name, type, unit) {EventSlot::slot, shift, width, #name, #type, unit},
#include "instrumentation/event_kinds.def"

constexpr auto kKinds = std::to_array<KindInfo>({
#define EVENT(number, name, shape, role, detail, lane, text, ...) \
  {EventKind::name, fields::kLane<EventKind::name>, lane, text, kFields<EventKind::name>},
#define ON(stream) #stream
#define OWN(text) text
#include "instrumentation/event_kinds.def"
});
#undef ON
#undef OWN

std::uint64_t bits_of(EventSlot slot, const Event& event) noexcept {
  switch (slot) {
    case EventSlot::a:
      return event.a;
    case EventSlot::b:
      return event.b;
    case EventSlot::c:
      return event.c;
    case EventSlot::code:
      return event.code;
    case EventSlot::v0:
      return static_cast<std::uint64_t>(event.v0);
    case EventSlot::v1:
      return static_cast<std::uint64_t>(event.v1);
  }
  return 0;
}

}  // namespace

bool FieldInfo::is_part() const noexcept { return width != width_of(slot); }

std::span<const KindInfo> event_kinds() noexcept { return kKinds; }

const KindInfo& info_of(EventKind kind) noexcept { return kKinds[static_cast<std::size_t>(kind) - 1]; }

std::optional<std::int64_t> integer_of(const FieldInfo& field, const Event& event) noexcept {
  const std::uint64_t bits = bits_of(field.slot, event);
  if (field.width == 32 && bits == kNoId) return std::nullopt;
  if (field.width == 64) return static_cast<std::int64_t>(bits);
  return static_cast<std::int64_t>(bits >> field.shift & fields::mask(field.width));
}

}  // namespace shardscope::instrumentation
