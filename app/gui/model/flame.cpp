#include "app/gui/model/flame.h"

#include <algorithm>
#include <tuple>

#include "app/gui/model/find_spans.h"
#include "app/gui/model/names.h"
#include "app/store/lane_name.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

/// Approximate number of spans per piece, the work between two checks of the clock.
constexpr std::uint64_t kSpansOfAPiece = 4096;

std::uint64_t pair_of(std::uint32_t high, std::uint32_t low) noexcept {
  return std::uint64_t{high} << 32U | low;
}

std::vector<ev::StreamId> streams_of(FlameOf of) {
  if (of == FlameOf::compute) return {ev::StreamId::compute};
  std::vector<ev::StreamId> out;
  for (std::uint8_t lane = 0; lane < ev::kStreamCount; ++lane) {
    const auto stream = static_cast<ev::StreamId>(lane);
    if (ev::is_gpu_stream(stream)) out.push_back(stream);
  }
  return out;
}

/// One name for all work of a collective or transfer on a stream: these are numbered, and each occurs once.
std::string owner_name(const store::Store& store, const store::Span& span) {
  const auto fields = ev::as<ev::EventKind::gpu_begin>(span);
  switch (fields.owner_kind) {
    case ev::GpuOwner::none:
      return "no recorded launcher";
    case ev::GpuOwner::collective:
      return "collectives";
    default:
      return gpu_owner(store, fields);
  }
}

}  // namespace

bool has_gpu_streams(const store::Store& store) {
  const std::vector<ev::StreamId> streams = streams_of(FlameOf::gpu);
  return std::ranges::any_of(store.ranks(), [&](const store::RankRow& row) {
    return std::ranges::any_of(streams, [&](ev::StreamId stream) {
      return store.depth_count({row.rank, stream}) > 0;
    });
  });
}

void FlameTree::start(const store::Store& store, const FlameQuery& query) {
  *this = {};
  query_ = query;
  begun_ = true;
  nodes_.emplace_back();
  names_.emplace_back("all spans");
  for (const store::RankRow& row : store.ranks()) {
    bool any = false;
    for (const ev::StreamId stream : streams_of(query.of)) {
      const store::LaneId lane{row.rank, stream};
      if (store.depth_count(lane) == 0) continue;
      if (!any) ranks_.push_back(row.rank);
      any = true;
      add_pieces(store, lane, ranks_.size() - 1);
    }
  }
  of_rank_.assign(ranks_.size(), 0);
}

void FlameTree::add_pieces(const store::Store& store, store::LaneId lane, std::size_t rank) {
  const std::int64_t end = std::min(query_.range.end_ns, store.end_ns() + 1);
  const std::int64_t from = std::max<std::int64_t>(query_.range.begin_ns, 0);
  if (from >= end) return;
  std::vector<std::int64_t> cuts{from};
  for (const std::int64_t cut : store.cuts(lane)) {
    if (cut > cuts.back() && cut < end) cuts.push_back(cut);
  }
  cuts.push_back(end);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::uint64_t spans = 0;
    for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth)
      spans += store.span_count(lane, depth, cuts[i], cuts[i + 1]);
    const std::int64_t length = cuts[i + 1] - cuts[i];
    const std::int64_t parts =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(spans / kSpansOfAPiece) + 1, 1, length);
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t begin = cuts[i] + length / parts * part;
      pieces_.push_back({rank, lane.stream, begin, part + 1 == parts ? cuts[i + 1] : begin + length / parts});
    }
  }
}

bool FlameTree::advance(const store::Store& store, std::chrono::nanoseconds time) {
  if (!begun_ || done()) return false;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  do {
    if (query_.of == FlameOf::gpu)
      count_gpu(store, pieces_[at_++]);
    else
      count(store, pieces_[at_++]);
  } while (!done() && Clock::now() - began < time);
  if (done()) order_children();
  return true;
}

void FlameTree::order_children() {
  for (FlameNode& node : nodes_)
    std::ranges::stable_sort(node.children, {}, [&](std::uint32_t child) { return nodes_[child].first_ns; });
}

double FlameTree::progress() const noexcept {
  return pieces_.empty() ? 1 : static_cast<double>(at_) / static_cast<double>(pieces_.size());
}

/// A span across a border of pieces is in both, each with its part of the time.
void FlameTree::count(const store::Store& store, const Piece& piece) {
  const std::uint32_t rank = ranks_[piece.rank];
  const store::LaneId lane{rank, ev::StreamId::compute};
  spans_.clear();
  for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth) {
    store.for_each_span(lane, depth, piece.begin_ns, piece.end_ns, [&](const store::Span& span) {
      if (span.kind != ev::EventKind::paused_begin) spans_.push_back(span);
    });
  }
  std::ranges::sort(spans_, [](const store::Span& x, const store::Span& y) {
    return std::tie(x.begin_ns, x.depth) < std::tie(y.begin_ns, y.depth);
  });
  const bool paused = store::paused_ns(store, rank, piece.begin_ns, piece.end_ns) > 0;
  std::vector<Open> open;
  for (const store::Span& span : spans_) {
    // With a missing parent a span is attributed to the next enclosing one.
    while (!open.empty() && (open.size() > span.depth || open.back().end_ns <= span.begin_ns))
      open.pop_back();
    const std::uint32_t parent = open.empty() ? 0 : open.back().node;
    std::uint32_t at = ev::kNoId;
    if (parent != ev::kNoId) {
      FlameNode like;
      like.kind = span.kind;
      like.code = span.code;
      like.module = module_of(span);
      at = child(parent, name_id(store, rank, span), like);
    }
    open.push_back({span.end_ns, at});
    if (at == ev::kNoId) continue;
    const std::int64_t ns = time_in(store, piece, span, paused);
    add(store, piece, span, ns, at);
    if (parent == 0) {
      nodes_[0].total_ns += ns;
      of_rank_[piece.rank] += ns;
    }
  }
}

/// Work of one stream does not nest: one level each for the stream, the launching owner and the name.
void FlameTree::count_gpu(const store::Store& store, const Piece& piece) {
  const store::LaneId lane{ranks_[piece.rank], piece.stream};
  const bool paused = store::paused_ns(store, lane.rank, piece.begin_ns, piece.end_ns) > 0;
  const std::uint32_t stream_name = id_of(store::lane_name(store, lane));
  for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth) {
    store.for_each_span(lane, depth, piece.begin_ns, piece.end_ns, [&](const store::Span& span) {
      if (span.kind != ev::EventKind::gpu_begin) return;
      const std::int64_t ns = time_in(store, piece, span, paused);
      nodes_[0].total_ns += ns;
      of_rank_[piece.rank] += ns;
      FlameNode like;
      like.kind = span.kind;
      like.code = span.code;
      like.module = module_of(span);
      std::uint32_t at = child(0, stream_name, {});
      if (at != ev::kNoId) {
        add(store, piece, span, ns, at);
        at = child(at, id_of(owner_name(store, span)), like);
      }
      if (at != ev::kNoId) {
        add(store, piece, span, ns, at);
        at = child(at, name_id(store, lane.rank, span), like);
      }
      if (at != ev::kNoId) add(store, piece, span, ns, at);
    });
  }
}

std::int64_t FlameTree::time_in(const store::Store& store, const Piece& piece, const store::Span& span,
                                bool paused) const {
  if (!paused && span.end_ns != store::kOpen)
    return std::min(span.end_ns, piece.end_ns) - std::max(span.begin_ns, piece.begin_ns);
  return store::time_within(store, ranks_[piece.rank], span, piece.begin_ns, piece.end_ns).running_ns;
}

/// Adds to the node, and to its parent's inside_ns; the caller adds to the root's total.
void FlameTree::add(const store::Store& store, const Piece& piece, const store::Span& span, std::int64_t ns,
                    std::uint32_t at) {
  const bool first = piece.begin_ns <= std::max<std::int64_t>(query_.range.begin_ns, 0);
  FlameNode& node = nodes_[at];
  node.total_ns += ns;
  of_rank_[at * ranks_.size() + piece.rank] += ns;
  nodes_[node.parent].inside_ns += ns;
  if (first || span.begin_ns >= piece.begin_ns) ++node.count;
  if (span.begin_ns >= query_.range.begin_ns) node.first_ns = std::min(node.first_ns, span.begin_ns);
  keep_longest(store, {ranks_[piece.rank], piece.stream}, span, node);
}

/// Compares durations within the range.
void FlameTree::keep_longest(const store::Store& store, store::LaneId lane, const store::Span& span,
                             FlameNode& node) const {
  const TimeRange& range = query_.range;
  const bool may_be =
      span.end_ns == store::kOpen || node.longest_ns == 0 ||
      std::min(span.end_ns, range.end_ns) - std::max(span.begin_ns, range.begin_ns) > node.longest_ns;
  if (!may_be) return;
  const std::int64_t ns = store::time_within(store, lane.rank, span, range.begin_ns, range.end_ns).running_ns;
  if (ns <= node.longest_ns && node.longest_ns > 0) return;
  node.longest_ns = ns;
  node.lane = lane;
  node.longest = span;
}

std::uint32_t FlameTree::child(std::uint32_t parent, std::uint32_t name, const FlameNode& like) {
  const auto [found, made] = child_of_.try_emplace(pair_of(parent, name));
  if (!made) return found->second;
  found->second = ev::kNoId;
  if (nodes_.size() >= query_.most_nodes) {
    cut_short_ = true;
    return ev::kNoId;
  }
  const auto at = static_cast<std::uint32_t>(nodes_.size());
  found->second = at;
  FlameNode& node = nodes_.emplace_back(like);
  node.parent = parent;
  node.name = name;
  nodes_[parent].children.push_back(at);
  of_rank_.resize(nodes_.size() * ranks_.size(), 0);
  return at;
}

std::uint32_t FlameTree::id_of(const std::string& name) {
  const auto [id, is_new] = ids_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  return id->second;
}

std::uint32_t FlameTree::name_id(const store::Store& store, std::uint32_t rank, const store::Span& span) {
  std::uint32_t of = module_of(span);
  // Name ids of kernels and of a program's own spans are per rank.
  const bool of_the_rank = span.kind == ev::EventKind::kernel_begin ||
                           span.kind == ev::EventKind::gpu_begin || span.kind == ev::EventKind::span_begin;
  if (span.kind == ev::EventKind::optimizer_begin)
    of = ev::as<ev::EventKind::optimizer_begin>(span).sub_group;
  std::uint32_t* known = nullptr;
  if (!of_the_rank) {
    const std::uint32_t kind = static_cast<std::uint32_t>(span.kind) << 8U | span.code;
    const auto [found, made] = known_.try_emplace(pair_of(kind, of));
    if (!made) return found->second;
    known = &found->second;
  }
  const std::uint32_t id = id_of(shared_name(store, rank, span));
  if (known != nullptr) *known = id;
  return id;
}

std::int64_t FlameTree::self_of(std::uint32_t node, std::size_t rank) const {
  std::int64_t ns = total_of(node, rank);
  for (const std::uint32_t one : nodes_[node].children) ns -= total_of(one, rank);
  return ns;
}

std::vector<std::string> FlameTree::path(std::uint32_t node) const {
  std::vector<std::string> out;
  for (; node != 0 && node < nodes_.size(); node = nodes_[node].parent) out.push_back(name(node));
  std::ranges::reverse(out);
  return out;
}

std::uint32_t FlameTree::at_path(const std::vector<std::string>& path) const {
  std::uint32_t at = 0;
  for (const std::string& wanted : path) {
    if (nodes_.empty()) break;
    const auto& children = nodes_[at].children;
    const auto found = std::ranges::find_if(children, [&](std::uint32_t one) { return name(one) == wanted; });
    if (found == children.end()) break;
    at = *found;
  }
  return at;
}

}  // namespace shardscope::gui
