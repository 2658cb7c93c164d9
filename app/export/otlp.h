// OpenTelemetry spans as lines of OTLP/JSON, as the OpenTelemetry Collector's file receiver and exporter use:
// steps, micro-steps, phases, collectives. Each line is one TracesData message of opentelemetry-proto.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/export/part.h"
#include "app/store/store.h"

namespace shardscope::exporter {

struct OtlpOptions {
  std::vector<std::uint32_t> ranks;  ///< empty: all
  std::optional<std::pair<std::uint32_t, std::uint32_t>>
      steps;  ///< first and last; empty: all, and the spans between steps unless `range` is set
  /// Restricts these to the steps that overlap it, each with all spans that begin in it: a trace is a step.
  TimeRange range = {};
  /// Level of detail: `steps`; `phases` adds micro-steps and phases; higher levels add collectives.
  instrumentation::Detail detail = instrumentation::Detail::kernels;
  /// Called before each rank with the fraction of ranks written so far.
  std::function<void(double)> progress = {};
  /// Collector clock + this = Unix time. Empty: the run begins at the epoch, and every resource states this.
  std::optional<std::int64_t> unix_offset_ns;
  std::string version;                     ///< of Shardscope
  std::vector<std::string> problems = {};  ///< of the recording: an attribute of every resource
};

/// [Note: traces of a run]
/// A trace is one step: its root span is the step over all ranks (its resource is the run), below it each
/// rank's step, micro-steps, phases and collectives. A span's parent is the innermost of these in which it
/// begins; a collective may end after its parent. Spans between steps, and missing events, are in one more
/// trace of the run. Ids are derived from run id, step, rank and position, so that repeated exports have the
/// same ids. Memory holds one step of one rank at a time.
void write_otlp(std::ostream& out, const store::Store& store, const OtlpOptions& options = {});
/// Writes a file, whole or not at all. Throws std::runtime_error: path, reason; no such rank or step.
void write_otlp(const std::string& path, const store::Store& store, const OtlpOptions& options = {});

}  // namespace shardscope::exporter
