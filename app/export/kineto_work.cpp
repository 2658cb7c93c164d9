#include "app/export/kineto_work.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "app/analysis/communication.h"
#include "app/analysis/gpu_activity.h"
#include "app/analysis/rank_activity.h"
#include "app/export/span_walk.h"
#include "app/store/names.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using analysis::Interval;
using analysis::IntervalSet;
using analysis::StepWindow;
using ev::EventKind;
using ev::StreamId;
using store::Span;
using store::Store;

constexpr std::int64_t kMicrosecond = 1'000;

/// Calls visit(interval) for the intersections of the set with [begin, end).
template <typename Visitor>
void for_each_part(const IntervalSet& set, std::int64_t begin, std::int64_t end, Visitor&& visit) {
  const auto& all = set.intervals();
  auto at = std::lower_bound(all.begin(), all.end(), begin,
                             [](const Interval& interval, std::int64_t t) { return interval.end <= t; });
  for (; at != all.end() && at->begin < end; ++at) {
    const Interval part{std::max(at->begin, begin), std::min(at->end, end)};
    if (part.end > part.begin) visit(part);
  }
}

/// A span that identifies the computation at its time.
struct Source {
  Span span;
  Interval at;  ///< clamped to the step
};

/// An interval in which the innermost span is the same.
struct Piece {
  Interval at;
  const Source* source = nullptr;  ///< null: computation outside of any such span
};

std::vector<Source> sources(const Store& store, store::LaneId lane, const StepWindow& window) {
  std::vector<Source> found;
  analysis::for_each_span(store, lane, window.begin_ns, window.end_ns, [&](const Span& span) {
    const bool computes = span.kind == EventKind::module_begin || span.kind == EventKind::optimizer_begin ||
                          span.kind == EventKind::kernel_begin || span.kind == EventKind::gpu_begin;
    if (!computes) return;
    const Interval at{std::max(span.begin_ns, window.begin_ns),
                      std::min(store::time_of(store, lane.rank, span).until_ns, window.end_ns)};
    if (at.end > at.begin) found.push_back({span, at});
  });
  std::sort(found.begin(), found.end(), [](const Source& a, const Source& b) {
    return std::tuple(a.at.begin, a.span.depth) < std::tuple(b.at.begin, b.span.depth);
  });
  return found;
}

/// `computed`, cut wherever the innermost span changes.
std::vector<Piece> innermost(const std::vector<Source>& spans, const IntervalSet& computed) {
  struct Edge {
    std::int64_t at;
    bool opens;
    const Source* source;
  };
  std::vector<Edge> edges;
  edges.reserve(2 * spans.size());
  for (const Source& source : spans) {
    edges.push_back({source.at.begin, true, &source});
    edges.push_back({source.at.end, false, &source});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tuple(a.at, a.opens) < std::tuple(b.at, b.opens);
  });
  std::vector<Piece> pieces;
  std::map<std::uint8_t, const Source*> open;  // by depth: spans of the same depth do not overlap
  std::int64_t from = computed.intervals().empty() ? 0 : computed.intervals().front().begin;
  const auto take = [&](std::int64_t until) {
    const Source* const source = open.empty() ? nullptr : open.rbegin()->second;
    for_each_part(computed, from, until, [&](const Interval& part) {
      if (!pieces.empty() && pieces.back().source == source && pieces.back().at.end == part.begin)
        pieces.back().at.end = part.end;
      else
        pieces.push_back({part, source});
    });
    from = std::max(from, until);
  };
  for (const Edge& edge : edges) {
    take(edge.at);
    if (edge.opens) {
      open[edge.source->span.depth] = edge.source;
    } else if (const auto at = open.find(edge.source->span.depth);
               at != open.end() && at->second == edge.source) {
      open.erase(at);
    }
  }
  if (!computed.intervals().empty()) take(computed.intervals().back().end);
  return pieces;
}

/// Rounds boundaries between adjacent pieces to whole microseconds. Holistic Trace Analysis rounds begins up
/// and ends down to microseconds, and would find a gap at each such boundary. The begin and end of a
/// computation, and so its total duration, do not change.
void round_inner_edges(std::vector<Piece>& pieces) {
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    Interval& before = pieces[i].at;
    Interval& after = pieces[i + 1].at;
    if (before.end != after.begin) continue;
    const std::int64_t rounded = (before.end + kMicrosecond / 2) / kMicrosecond * kMicrosecond;
    before.end = after.begin = std::clamp(rounded, before.begin, std::max(after.end, before.begin));
  }
  std::erase_if(pieces, [](const Piece& piece) { return piece.at.end <= piece.at.begin; });
}

/// HTA does not count names that contain Memcpy or Sync, or begin with Memset, as computation: a module may
/// have such a name.
std::string compute_name(std::string name) {
  for (const auto& [word, instead] :
       {std::pair{"Memcpy", "memcpy"}, {"Memset", "memset"}, {"Sync", "sync"}}) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1))
      name.replace(at, std::char_traits<char>::length(word), instead);
  }
  return name;
}

const char* memcpy_name(ev::GpuWork work) {
  switch (work) {
    case ev::GpuWork::host_to_device:
      return "Memcpy HtoD";
    case ev::GpuWork::device_to_host:
      return "Memcpy DtoH";
    case ev::GpuWork::device_to_device:
      return "Memcpy DtoD";
    case ev::GpuWork::peer_to_peer:
      return "Memcpy PtoP";
    case ev::GpuWork::memset:
      return "Memset (Device)";
    default:
      return "Memcpy";
  }
}

const char* memcpy_name(ev::TransferKind kind) {
  switch (kind) {
    case ev::TransferKind::host_to_device:
    case ev::TransferKind::input_to_device:
      return "Memcpy HtoD (Pinned -> Device)";
    case ev::TransferKind::device_to_host:
      return "Memcpy DtoH (Device -> Pinned)";
    case ev::TransferKind::nvme_read:
      return "Memcpy NVMe -> Host";
    case ev::TransferKind::nvme_write:
      return "Memcpy Host -> NVMe";
  }
  return "Memcpy";
}

/// Kernel names of NCCL up to 2.18, without algorithm and protocol, which are not recorded: HTA finds
/// stragglers only among kernels of these names.
const char* nccl_name(ev::CollectiveOp op) {
  switch (op) {
    case ev::CollectiveOp::all_gather:
      return "ncclKernel_AllGather";
    case ev::CollectiveOp::reduce_scatter:
      return "ncclKernel_ReduceScatter";
    case ev::CollectiveOp::reduce:
      return "ncclKernel_Reduce";
    case ev::CollectiveOp::all_reduce:
    case ev::CollectiveOp::barrier:  // NCCL has no barrier: PyTorch uses an all-reduce
      return "ncclKernel_AllReduce";
    case ev::CollectiveOp::broadcast:
      return "ncclKernel_Broadcast";
    case ev::CollectiveOp::all_to_all:
    case ev::CollectiveOp::send:
    case ev::CollectiveOp::receive:
    case ev::CollectiveOp::gather:
    case ev::CollectiveOp::scatter:
      return "ncclKernel_SendRecv";
  }
  return "ncclKernel";
}

class StepWorkMaker {
 public:
  StepWorkMaker(const Store& store, std::uint32_t rank, const StepWindow& window, InnerEdges edges)
      : store_(store), rank_(rank), window_(window), rounds_(edges == InnerEdges::whole_microseconds) {}

  StepWork make() {
    const analysis::RankActivity activity =
        analysis::activity_of(store_, rank_, window_.begin_ns, window_.end_ns);
    out_.paused = activity.paused;
    out_.missing = activity.missing;
    out_.known = activity.known;
    const std::vector<Source> host = sources(store_, {rank_, StreamId::compute}, window_);
    ranges(host);
    if (!activity.known) return std::move(out_);
    if (analysis::gpu_known(store_, rank_, window_.begin_ns, window_.end_ns)) {
      const std::vector<Source> gpu = sources(store_, {rank_, StreamId::gpu_compute}, window_);
      compute(StreamId::compute, gpu, activity.device, false);
    } else {
      compute(StreamId::compute, host, activity.device, rounds_);
    }
    const std::vector<Source> worker = sources(store_, {rank_, StreamId::worker}, window_);
    compute(StreamId::worker, worker, activity.compute.subtract(activity.device), rounds_);
    collectives(activity.comm);
    copies(activity.copy);
    return std::move(out_);
  }

 private:
  void ranges(const std::vector<Source>& spans) {
    for (const Source& source : spans) {
      if (source.span.kind == EventKind::kernel_begin) continue;
      const bool module = source.span.kind == EventKind::module_begin;
      out_.ranges.push_back({source.at.begin, source.at.end, span_name(store_, rank_, source.span),
                             source.span.depth,
                             module ? ev::as<EventKind::module_begin>(source.span).module : ev::kNoId});
    }
  }

  /// The innermost range at each of a series of ascending times.
  class RangeAt {
   public:
    explicit RangeAt(const std::vector<NamedRange>& ranges) : ranges_(ranges) {}
    std::optional<std::size_t> operator()(std::int64_t at) {
      for (; next_ < ranges_.size() && ranges_[next_].begin_ns <= at; ++next_) open_.push_back(next_);
      std::erase_if(open_, [&](std::size_t i) { return ranges_[i].end_ns <= at; });
      if (open_.empty()) return std::nullopt;
      return *std::max_element(open_.begin(), open_.end(), [&](std::size_t a, std::size_t b) {
        return ranges_[a].depth < ranges_[b].depth;
      });
    }

   private:
    const std::vector<NamedRange>& ranges_;
    std::vector<std::size_t> open_;
    std::size_t next_ = 0;
  };

  [[nodiscard]] std::int64_t in_step(std::int64_t launch_ns, std::int64_t begin_ns) const {
    return std::clamp(launch_ns, window_.begin_ns, begin_ns);
  }

  void compute(StreamId stream, const std::vector<Source>& spans, const IntervalSet& computed, bool rounded) {
    std::vector<Piece> pieces = innermost(spans, computed);
    if (rounded) round_inner_edges(pieces);
    RangeAt range_at(out_.ranges);
    for (const Piece& piece : pieces) {
      DeviceWork work{.stream = stream, .begin_ns = piece.at.begin, .end_ns = piece.at.end};
      if (stream == StreamId::compute) work.within = range_at(piece.at.begin);
      work.name = "computation";
      if (piece.source != nullptr) {
        const Span& span = piece.source->span;
        work.span = span;
        work.name = compute_name(span_name(store_, rank_, span));
        if (span.kind == EventKind::gpu_begin) {
          const auto fields = ev::as<EventKind::gpu_begin>(span);
          if (fields.work != ev::GpuWork::kernel) {
            work.kind = WorkClass::copy;
            work.name = memcpy_name(fields.work);
          }
          if (fields.delay_ns != ev::kNoDelay)
            work.launch_ns =
                in_step(span.begin_ns - std::max<std::int64_t>(fields.delay_ns, 0), piece.at.begin);
        }
      }
      out_.work.push_back(std::move(work));
    }
  }

  /// When the host submitted each collective, by operation, sequence number and id of gather or bucket.
  using Submitted = std::map<std::tuple<ev::CollectiveOp, std::uint32_t, std::uint32_t>, std::int64_t>;
  [[nodiscard]] Submitted submitted() const {
    Submitted found;
    // The host is ahead of the streams by at most a step.
    const std::int64_t from = window_.begin_ns - (window_.end_ns - window_.begin_ns);
    store_.for_each_instant(rank_, from, window_.end_ns, [&](const ev::Event& event) {
      if (event.kind != EventKind::collective_submitted) return;
      const auto fields = ev::as<EventKind::collective_submitted>(event);
      found[{fields.op, fields.sequence, fields.group}] = static_cast<std::int64_t>(event.ticks);
    });
    return found;
  }

  void collectives(const IntervalSet& communicated) {
    const Submitted launches = submitted();
    std::vector<Interval> shown;
    analysis::for_each_collective(
        store_, rank_, window_.begin_ns, window_.end_ns, [&](StreamId stream, const Span& span) {
          const auto fields = ev::as<EventKind::collective_begin>(span);
          const auto launch = launches.find({fields.op, fields.sequence, fields.group});
          for_each_part(communicated, span.begin_ns, span.end_ns, [&](const Interval& part) {
            shown.push_back(part);
            DeviceWork work{.kind = WorkClass::collective,
                            .stream = stream == StreamId::compute ? StreamId::extra_1 : stream,
                            .begin_ns = part.begin,
                            .end_ns = part.end,
                            .name = nccl_name(fields.op)};
            work.span = span;
            if (launch != launches.end() && launch->second <= part.begin)
              work.launch_ns = in_step(launch->second, part.begin);
            out_.work.push_back(std::move(work));
          });
        });
    rest(communicated, std::move(shown), WorkClass::collective, StreamId::gather, "ncclKernel");
  }

  void copies(const IntervalSet& copied) {
    std::vector<Interval> shown;
    for (const StreamId stream : {StreamId::copy, StreamId::nvme}) {
      analysis::for_each_span(
          store_, {rank_, stream}, window_.begin_ns, window_.end_ns, [&](const Span& span) {
            if (span.kind != EventKind::transfer_begin) return;
            for_each_part(copied, span.begin_ns, span.end_ns, [&](const Interval& part) {
              shown.push_back(part);
              out_.work.push_back({.kind = WorkClass::copy,
                                   .stream = stream,
                                   .begin_ns = part.begin,
                                   .end_ns = part.end,
                                   .name = memcpy_name(ev::as<EventKind::transfer_begin>(span).transfer),
                                   .span = span});
            });
          });
    }
    rest(copied, std::move(shown), WorkClass::copy, StreamId::copy, "Memcpy");
  }

  /// Work known only from an unmatched end: it has a generic name.
  void rest(const IntervalSet& all, std::vector<Interval> shown, WorkClass kind, StreamId stream,
            const char* name) {
    const IntervalSet left = all.subtract(IntervalSet(std::move(shown)));
    for (const Interval& part : left.intervals()) {
      DeviceWork work{
          .kind = kind, .stream = stream, .begin_ns = part.begin, .end_ns = part.end, .name = name};
      out_.work.push_back(std::move(work));
    }
  }

  const Store& store_;
  std::uint32_t rank_;
  const StepWindow& window_;
  bool rounds_;
  StepWork out_;
};

}  // namespace

StepWork work_of_step(const Store& store, std::uint32_t rank, const StepWindow& window, InnerEdges edges) {
  return StepWorkMaker(store, rank, window, edges).make();
}

}  // namespace shardscope::exporter
