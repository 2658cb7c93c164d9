// How the runtime emits events: now, or when a stream reaches a point. Kinds, their lanes and fields are in
// instrumentation/event_kinds.def.
//
// [Note: time of a step]
// The host runs ahead of the device. Steps, micro-steps, phases and modules are therefore emitted through the
// compute stream, which takes the timestamp when it gets there: a step contains the work it caused. Host
// decisions (buckets, fetches, gates) have the time of the decision.
#pragma once

#include "instrumentation/emitter.h"
#include "instrumentation/event.h"
#include "runtime/device/device.h"

namespace shardscope {
namespace ev = instrumentation;
}

namespace shardscope::execution {

/// Emits now, on the kind's lane.
template <ev::EventKind kind>
void emit_host(const ev::Fields<kind>& fields) noexcept {
  ev::emit<kind>(fields);
}
/// Emits when `stream` reaches this point, on the lane `lane`.
template <ev::EventKind kind>
void emit_on(device::Stream& stream, ev::StreamId lane, const ev::Fields<kind>& fields) {
  if (ev::enabled(ev::detail_of(kind))) stream.emit(ev::make<kind>(lane, fields));
}
/// Emits when `stream` reaches this point, on its own lane.
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

}  // namespace shardscope::execution
