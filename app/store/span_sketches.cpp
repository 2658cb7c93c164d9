#include "app/store/span_sketches.h"

#include <map>

#include "app/store/rank_state.h"

namespace shardscope::store {

void SpanSketches::add(std::uint32_t rank, const RankState& state, const Pauses& pauses) {
  // Few kinds alternate: one small map saves searching the large one for each span.
  std::map<SketchKey, QuantileSketch*> known;
  const auto sketch = [&](const SketchKey& key) -> QuantileSketch& {
    QuantileSketch*& found = known[key];
    if (found == nullptr) found = &sketches_[key];
    return *found;
  };
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) {
    const auto stream = static_cast<ev::StreamId>(s);
    const Lane& lane = state.lanes()[s];
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d) {
      const std::span<const Span> spans = lane.spans(d);
      const std::size_t ended = spans.size() - (d < lane.open_count() ? 1 : 0);
      for (const Span& span : spans.first(ended)) {
        const std::int64_t paused =
            stretched_by_pauses(span.kind) ? pauses.within(span.begin_ns, span.end_ns) : 0;
        const std::int64_t ns = span.end_ns - span.begin_ns - paused;
        sketch({.rank = rank, .stream = stream, .kind = span.kind, .code = span.code}).add(ns);
        if (span.kind != ev::EventKind::module_begin) continue;
        if (const std::uint32_t module = ev::as<ev::EventKind::module_begin>(span).module;
            module < kMostModules)
          sketch({.stream = stream, .kind = span.kind, .code = span.code, .module = module}).add(ns);
      }
    }
  }
}

}  // namespace shardscope::store
