#include "runtime/profile/open_spans.h"

#include <algorithm>

#include "instrumentation/event_fields.h"

namespace shardscope::profile {
namespace {

using instrumentation::as;
using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::GpuOwner;
using instrumentation::Pass;

/// The owner of a span, from its begin or end event; no owner for all other kinds.
Owner owner_in(const Event& event) noexcept {
  switch (event.kind) {
    case EventKind::module_begin:
    case EventKind::module_end: {
      const auto fields = as<EventKind::module_begin>(event);
      switch (fields.pass) {
        case Pass::forward:
          return {GpuOwner::forward, fields.module};
        case Pass::backward:
          return {GpuOwner::backward, fields.module};
        case Pass::recompute:
          return {GpuOwner::recompute, fields.module};
      }
      return {};
    }
    case EventKind::collective_begin:
    case EventKind::collective_end:
      return {GpuOwner::collective, as<EventKind::collective_begin>(event).sequence};
    case EventKind::transfer_begin:
    case EventKind::transfer_end:
      return {GpuOwner::transfer, as<EventKind::transfer_begin>(event).param};
    case EventKind::optimizer_begin:
    case EventKind::optimizer_end:
      return {GpuOwner::optimizer, as<EventKind::optimizer_begin>(event).sub_group};
    case EventKind::phase_begin:
    case EventKind::phase_end:
      return {GpuOwner::phase, static_cast<std::uint32_t>(as<EventKind::phase_begin>(event).phase)};
    default:
      return {};
  }
}

}  // namespace

bool OpenSpans::note(const Event& event) noexcept {
  const Owner owner = owner_in(event);
  if (owner.kind == GpuOwner::none) return false;
  if (instrumentation::is_begin(event.kind)) {
    if (event.kind == EventKind::phase_begin && event.stream == instrumentation::StreamId::compute)
      count_ = beyond_ = 0;
    if (count_ == kMost) {
      ++beyond_;
      return false;
    }
    open_[count_++] = {instrumentation::end_of(event.kind), event.stream, owner};
    return true;
  }
  for (std::size_t i = count_; i-- > 0;) {
    const Open& open = open_[i];
    if (open.end != event.kind || open.stream != event.stream || open.owner != owner) continue;
    std::move(open_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              open_.begin() + static_cast<std::ptrdiff_t>(count_),
              open_.begin() + static_cast<std::ptrdiff_t>(i));
    --count_;
    return true;
  }
  if (beyond_ > 0) --beyond_;
  return false;
}

}  // namespace shardscope::profile
