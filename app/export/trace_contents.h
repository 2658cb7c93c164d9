// What slices and instants of a trace have beside their times, for Chrome's and Perfetto's alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "app/export/part.h"
#include "app/export/span_walk.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Where arguments go: each format writes them its own way.
class ArgumentSink {
 public:
  virtual ~ArgumentSink() = default;
  virtual void number(const char* key, std::int64_t value) = 0;
  virtual void text(const char* key, std::string_view value) = 0;
};

/// Of a slice, but for a collective's own fields, whose names are a format's, and that the span did not end.
void span_arguments(const WalkedSpan& walked, ArgumentSink& out);

/// An instant of a rank: prefetches issued and what became of them, collectives that were submitted, and
/// kinds of event that are marks.
struct TraceInstant {
  std::string name;
  std::int64_t at_ns = 0;
  const instrumentation::Event* event = nullptr;
  void arguments(ArgumentSink& out) const;
};
/// Those of the part, in order of time.
void for_each_trace_instant(const store::Store& store, std::uint32_t rank, const ExportPart& part,
                            const std::function<void(const TraceInstant&)>& visit);

}  // namespace shardscope::exporter
