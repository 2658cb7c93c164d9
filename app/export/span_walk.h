// The spans of a lane in the order in which they were opened, parents before children, and their labels.
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
  std::int64_t end_ns = 0;  ///< of a span that has not ended, how far it is known to have gone on
  store::SpanTime time;
  /// Nothing finer was recorded inside: it stands for the work itself (a kernel, a copy, a transfer).
  bool is_work = false;
};

/// Calls `visit` for every span of the lane by begin, then depth.
void walk_spans(const store::Store& store, store::LaneId lane,
                const std::function<void(const WalkedSpan&)>& visit);
/// The same for the spans that begin in [begin, end): all of them are in memory at once.
void walk_spans(const store::Store& store, store::LaneId lane, std::int64_t begin_ns, std::int64_t end_ns,
                const std::function<void(const WalkedSpan&)>& visit);

/// The same for every span that overlaps [begin, end) and of few others before it; reads little else of the
/// lane. Part by part, so that memory does not grow with the range.
void walk_overlapping(const store::Store& store, store::LaneId lane, std::int64_t begin_ns,
                      std::int64_t end_ns, const std::function<void(const WalkedSpan&)>& visit);

/// While it lives, walks of this thread over whole lanes of the store say how far they are, as a share of all
/// its lanes, in front of each part of one. What `said` throws ends the walk.
class WalkProgress {
 public:
  WalkProgress(const store::Store& store, std::function<void(double)> said);
  ~WalkProgress();
  WalkProgress(const WalkProgress&) = delete;
  WalkProgress& operator=(const WalkProgress&) = delete;
  void part();  ///< of a lane is about to be walked over

 private:
  std::function<void(double)> said_;
  double parts_ = 0, done_ = 0;
};

/// What a span is called, as store::label_of() has it, but for two that other tools know by their names:
/// "ProfilerStep#3", as PyTorch's profiler has it, and collectives by operation, "all_gather".
[[nodiscard]] std::string span_label(const store::Store& store, std::uint32_t rank, const store::Span& span);

/// The same, of a module with its pass: "transformer.h.0 forward".
[[nodiscard]] std::string span_name(const store::Store& store, std::uint32_t rank, const store::Span& span);

/// An arrow from the collective that gathered, or reduced a bucket, to the wait for it.
struct Flow {
  std::uint64_t id = 0;
  std::int64_t from_ns = 0, to_ns = 0;  ///< within the collective, within the wait on the compute lane
  bool reduces = false;                 ///< the collective is on the reduce lane; else on the gather lane
};
/// Those that lie within [begin, end), and little else of the rank is read for them (span_walk.cpp, [Note:
/// flows of a range]). Ids differ within one call only.
[[nodiscard]] std::vector<Flow> flows_to_waits(const store::Store& store, std::uint32_t rank,
                                               std::int64_t begin_ns = store::Store::kBegin,
                                               std::int64_t end_ns = store::Store::kEnd);

}  // namespace shardscope::exporter
