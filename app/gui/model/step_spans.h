// Iterates over the completed spans of one kind in a step.
#pragma once

#include <utility>

#include "app/analysis/spans.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Calls visit(span) for the lane's spans of `kind` that begin within the step and have ended, in order of
/// depth: outer spans come before inner ones.
template <typename Visitor>
void for_each_span_in_step(const store::Store& store, store::LaneId lane, const store::StepRow& step,
                           instrumentation::EventKind kind, Visitor&& visit) {
  analysis::for_each_span(store, lane, step.begin_ns, step.end_ns, [&](const store::Span& span) {
    if (span.kind == kind && span.end_ns != store::kOpen && span.begin_ns >= step.begin_ns) visit(span);
  });
}

}  // namespace shardscope::gui
