// Arguments and instants of a trace, shared by the Chrome and Perfetto exports.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "app/export/part.h"
#include "app/export/span_walk.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Receives arguments; each format encodes them in its own way.
class ArgumentSink {
 public:
  virtual ~ArgumentSink() = default;
  virtual void number(const char* key, std::int64_t value) = 0;
  virtual void text(const char* key, std::string_view value) = 0;
};

/// The arguments of a slice, except a collective's fields (named by each format) and that it did not end.
void span_arguments(const WalkedSpan& walked, ArgumentSink& out);

/// An instant of a rank: a prefetch issued and its outcome, a submitted collective, or an event of a kind
/// that is shown as a mark.
struct TraceInstant {
  std::string name;
  std::int64_t at_ns = 0;
  const instrumentation::Event* event = nullptr;
  void arguments(ArgumentSink& out) const;
};
/// Calls `visit` for the instants of the part, in order of time.
void for_each_trace_instant(const store::Store& store, std::uint32_t rank, const ExportPart& part,
                            const std::function<void(const TraceInstant&)>& visit);

}  // namespace shardscope::exporter
