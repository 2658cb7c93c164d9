// How the runtime emits: now, or when a stream gets there. Kinds, their lanes and fields are in
// instrumentation/event_kinds.def.
//
// [Note: time of a step]
// The host runs ahead of the device. Steps, micro-steps, phases and modules are therefore emitted through
// the compute stream, which stamps them when it gets there: a step holds the work it caused. What the host
// decides (buckets, fetches, gates) carries the time of the decision.
#pragma once

#include "instrumentation/emitter.h"
#include "instrumentation/event.h"
#include "runtime/device/device.h"

namespace shardscope {
namespace ev = instrumentation;
}

namespace shardscope::execution {

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

}  // namespace shardscope::execution
