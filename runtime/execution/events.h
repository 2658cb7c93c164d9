// The runtime's events in one place: which lane each belongs to and what its fields hold stands in
// instrumentation/event.h; here they get names and types.
//
// [Note: time of a step]
// The host runs ahead of the device. Steps, micro-steps, phases and modules are therefore emitted through
// the compute stream, which stamps them when it gets there: a step holds the work it caused. What the host
// decides (buckets, fetches, gates) carries the time of the decision.
#pragma once

#include <bit>
#include <cstdint>

#include "instrumentation/emitter.h"
#include "instrumentation/event.h"
#include "runtime/device/device.h"

namespace shardscope {
namespace ev = instrumentation;
}

namespace shardscope::execution {

/// Fields of one event; what is not given is "none".
struct Fields {
  std::uint32_t a = ev::kNoId;
  std::uint32_t b = ev::kNoId;
  std::uint32_t c = ev::kNoId;
  std::uint8_t code = 0;
  std::int64_t v0 = 0;
  std::int64_t v1 = 0;
};

[[nodiscard]] inline ev::Event make_event(ev::EventKind kind, ev::StreamId lane, const Fields& f) noexcept {
  return ev::Event{0, kind, lane, f.code, f.a, f.b, f.c, f.v0, f.v1};
}

/// Now, on the host lane.
inline void emit_host(ev::EventKind kind, const Fields& fields) noexcept {
  if (ev::enabled(ev::detail_of(kind))) ev::emit(make_event(kind, ev::StreamId::host, fields));
}

/// When `stream` gets there, on the lane `lane`.
inline void emit_on(device::Stream& stream, ev::StreamId lane, ev::EventKind kind, const Fields& fields) {
  if (ev::enabled(ev::detail_of(kind))) stream.emit(make_event(kind, lane, fields));
}
/// When `stream` gets there, on its own lane.
inline void emit_on(device::Stream& stream, ev::EventKind kind, const Fields& fields) {
  emit_on(stream, stream.id(), kind, fields);
}

/// Now, on the kind's lane.
template <ev::EventKind kind>
void emit_host(const ev::Fields<kind>& fields) noexcept {
  ev::emit<kind>(fields);
}
/// When `stream` gets there, on the lane `lane`.
template <ev::EventKind kind>
void emit_on(device::Stream& stream, ev::StreamId lane, const ev::Fields<kind>& fields) {
  if (ev::enabled(ev::detail_of(kind))) stream.emit(ev::make<kind>(lane, fields));
}
/// When `stream` gets there, on its own lane.
template <ev::EventKind kind>
void emit_on(device::Stream& stream, const ev::Fields<kind>& fields) {
  emit_on<kind>(stream, stream.id(), fields);
}
/// The end of a span, with the fields of its begin.
template <ev::EventKind begin>
void emit_end_on(device::Stream& stream, ev::StreamId lane, const ev::Fields<begin>& fields) {
  if (!ev::enabled(ev::detail_of(begin))) return;
  ev::Event event = ev::make<begin>(lane, fields);
  event.kind = ev::end_of(begin);
  stream.emit(event);
}
template <ev::EventKind begin>
void emit_end_on(device::Stream& stream, const ev::Fields<begin>& fields) {
  emit_end_on<begin>(stream, stream.id(), fields);
}

[[nodiscard]] inline std::int64_t bits(double value) noexcept { return std::bit_cast<std::int64_t>(value); }

template <typename Enum>
[[nodiscard]] constexpr std::uint8_t code_of(Enum value) noexcept {
  return static_cast<std::uint8_t>(value);
}

}  // namespace shardscope::execution
