// Chrome trace JSON: opens in Perfetto and chrome://tracing. HTA and TraceLens read another form: kineto.h.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "app/store/store.h"

namespace shardscope::exporter {

struct ChromeOptions {
  /// Only this rank.
  std::optional<std::uint32_t> rank;
  /// Only what overlaps [from, to), whole: a span that reaches over an end is not cut.
  std::int64_t from_ns = store::Store::kBegin, to_ns = store::Store::kEnd;
};

/// Streams the trace to `out`: spans as complete events that nest per thread (one per stream), flows from
/// each gather to the waits for it, counters of memory by category, losses, instants, gaps. Times are
/// microseconds relative to `baseTimeNanoseconds`. The text is streamed; only the gathers of one rank are
/// held.
void write_chrome(std::ostream& out, const store::Store& store, const ChromeOptions& options = {});

/// The same to a file, whole or not at all (temporary file, then rename). Throws std::runtime_error: path,
/// reason.
void write_chrome(const std::string& path, const store::Store& store, const ChromeOptions& options = {});

}  // namespace shardscope::exporter
