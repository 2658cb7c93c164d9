// Walks the spans of a lane in order of their begins, parents before children, and gives them labels.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/store/span_time.h"
#include "app/store/store.h"

namespace shardscope::exporter {

struct WalkedSpan {
  const store::Span* span = nullptr;
  std::int64_t end_ns = 0;  ///< of an open span: the latest time at which it is known to be running
  store::SpanTime time;
  /// No finer span was recorded inside: this span is the work itself (a kernel, a copy, a transfer).
  bool is_work = false;
};

/// Calls `visit` for every span of the lane, sorted by begin, then depth.
void walk_spans(const store::Store& store, store::LaneId lane,
                const std::function<void(const WalkedSpan&)>& visit);
/// For the spans that begin in [begin, end) only; all of them are in memory at once.
void walk_spans(const store::Store& store, store::LaneId lane, std::int64_t begin_ns, std::int64_t end_ns,
                const std::function<void(const WalkedSpan&)>& visit);

/// For the spans that overlap [begin, end) and a few before it; reads few other blocks of the lane. Works in
/// parts, so that memory does not grow with the range.
void walk_overlapping(const store::Store& store, store::LaneId lane, std::int64_t begin_ns,
                      std::int64_t end_ns, const std::function<void(const WalkedSpan&)>& visit);

/// While it exists, walks over lanes of the store by this thread call `report` before each part, with the
/// fraction of the parts of all lanes that is done. An exception from `report` ends the walk.
class WalkProgress {
 public:
  WalkProgress(const store::Store& store, std::function<void(double)> report);
  ~WalkProgress();
  WalkProgress(const WalkProgress&) = delete;
  WalkProgress& operator=(const WalkProgress&) = delete;
  void part();  ///< Called before each part of a lane.

 private:
  std::function<void(double)> report_;
  double parts_ = 0, done_ = 0;
};

/// The label of a span: store::label_of(), except for two that other tools know by name: "ProfilerStep#3", as
/// in PyTorch's profiler, and collectives by operation, "all_gather".
[[nodiscard]] std::string span_label(const store::Store& store, std::uint32_t rank, const store::Span& span);

/// span_label(); for a module with its pass: "transformer.h.0 forward".
[[nodiscard]] std::string span_name(const store::Store& store, std::uint32_t rank, const store::Span& span);

/// An arrow from the collective of a gather, or of a bucket's reduction, to the wait for it.
struct Flow {
  std::uint64_t id = 0;
  std::int64_t from_ns = 0, to_ns = 0;  ///< in the collective; in the wait on the compute lane
  bool reduces = false;                 ///< the collective is on the reduce lane; else on the gather lane
};
/// Flows within [begin, end); reads little of the rank outside (span_walk.cpp, [Note: flows of a range]). Ids
/// are unique within one call only.
[[nodiscard]] std::vector<Flow> flows_to_waits(const store::Store& store, std::uint32_t rank,
                                               std::int64_t begin_ns = store::Store::kBegin,
                                               std::int64_t end_ns = store::Store::kEnd);

}  // namespace shardscope::exporter
