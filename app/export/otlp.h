// OpenTelemetry spans as OTLP/JSON lines, as a collector's file receiver and exporter have them: steps, their
// micro-steps and phases, and collectives. Each line is one message TracesData of opentelemetry-proto.
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
      steps;  ///< first and last; nothing: all, and between, where no range of time is chosen
  /// Of these only steps that overlap it, each whole with all that begins in it: a trace is a step.
  TimeRange range = {};
  /// Spans that are emitted up to this level: `steps`; `phases` with micro-steps and phases; above,
  /// collectives.
  instrumentation::Detail detail = instrumentation::Detail::kernels;
  /// Called before each rank with the share of them written so far.
  std::function<void(double)> progress = {};
  /// Collector clock + this = Unix time. Nothing: the run begins at the epoch, and every resource says so.
  std::optional<std::int64_t> unix_offset_ns;
  std::string version;                     ///< of this program
  std::vector<std::string> problems = {};  ///< of the recording: every resource has them
};

/// [Note: traces of a run]
/// A trace is one step: its root is the step over all ranks (of a resource that is the run), below it each
/// rank's step, its micro-steps, phases and collectives. A parent is the innermost of these that the child
/// begins in; a collective may end after it. What lies between steps, and where events are missing, is in one
/// more trace of the run. Ids are made of the run's id, the step, the rank and the place in the file: the
/// same export has the same ones each time. Memory holds one step of one rank.
void write_otlp(std::ostream& out, const store::Store& store, const OtlpOptions& options = {});
/// Whole or not at all. Throws std::runtime_error: path, reason; or that no such rank or step was recorded.
void write_otlp(const std::string& path, const store::Store& store, const OtlpOptions& options = {});

}  // namespace shardscope::exporter
