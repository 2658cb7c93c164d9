// Whether a span saves or loads a checkpoint.
#pragma once

#include "app/store/lane.h"
#include "instrumentation/event_fields.h"

namespace shardscope::store {

[[nodiscard]] inline bool is_checkpoint(const Span& span) noexcept {
  if (span.kind != ev::EventKind::phase_begin) return false;
  const ev::Phase phase = ev::as<ev::EventKind::phase_begin>(span).phase;
  return phase == ev::Phase::checkpoint_save || phase == ev::Phase::checkpoint_load;
}

}  // namespace shardscope::store
