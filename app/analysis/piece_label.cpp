#include "app/analysis/piece_label.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "app/analysis/framework.h"
#include "app/analysis/spans.h"
#include "app/store/span_label.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::StreamId;

/// The lanes with the work of a part; none for parts without work.
std::vector<StreamId> lanes_of(const PathPiece& piece) {
  switch (piece.part) {
    case PathPart::forward:
    case PathPart::backward:
    case PathPart::optimizer:
    case PathPart::compute:
    case PathPart::data:
    case PathPart::checkpoint:
      return {StreamId::compute};
    case PathPart::cpu_optimizer:
      return {StreamId::worker};
    case PathPart::transfer:
      return {piece.lane};
    case PathPart::copy:
      return {StreamId::copy, StreamId::nvme};
    case PathPart::idle:
    case PathPart::unrecorded:
    case PathPart::paused:
      return {};
  }
  return {};
}

/// Spans that can name a piece: phases and waits are less specific than the work in them.
bool names(PathPart part, const store::Span& span) {
  switch (part) {
    case PathPart::transfer:
      return span.kind == EventKind::collective_begin;
    case PathPart::copy:
      return span.kind == EventKind::transfer_begin;
    case PathPart::data:
      return span.kind == EventKind::data_wait_begin;
    case PathPart::checkpoint:
      return span.kind == EventKind::phase_begin;
    default:
      return span.kind == EventKind::module_begin || span.kind == EventKind::kernel_begin ||
             span.kind == EventKind::optimizer_begin;
  }
}

/// ", for parameters of h.3" or ", bucket 7": the contents of a collective on the path; empty if unknown.
std::string moved_what(const store::Store& store, const PathPiece& piece, const store::Span& collective,
                       StreamId lane) {
  const std::uint32_t id = ev::as<EventKind::collective_begin>(collective).group;
  if (id == ev::kNoId) return {};
  if (lane == StreamId::reduce) return ", bucket " + std::to_string(id);
  std::string out;
  // Computation waits for it at least until its end.
  for_each_span(store, {piece.rank, StreamId::compute}, collective.begin_ns, collective.end_ns + 1,
                [&](const store::Span& span) {
                  if (span.kind != EventKind::fetch_wait_begin || !out.empty() ||
                      ev::as<EventKind::fetch_wait_begin>(span).gather != id)
                    return;
                  out = ", for " + store::awaited(store, span);
                });
  return out;
}

}  // namespace

std::string piece_label(const store::Store& store, const PathPiece& piece) {
  // In such a run spans are timed by the host, which is ahead of the device; the path is the device's.
  const bool of_host = piece.part == PathPart::data || piece.part == PathPart::cpu_optimizer ||
                       piece.part == PathPart::checkpoint;
  if (!of_host && store.has_tables() && has_times_of_host(store.tables())) return {};
  std::optional<store::Span> named;
  StreamId on{};
  const std::int64_t most = piece.at.end - piece.at.begin;
  for (const StreamId lane : lanes_of(piece)) {
    for_each_span(store, {piece.rank, lane}, piece.at.begin, piece.at.end, [&](const store::Span& span) {
      if (!names(piece.part, span)) return;
      if (piece.part == PathPart::transfer && piece.id != ev::kNoId &&
          ev::as<EventKind::collective_begin>(span).group != piece.id)
        return;
      const std::int64_t covered =
          std::min(span.end_ns, piece.at.end) - std::max(span.begin_ns, piece.at.begin);
      if (2 * covered < most) return;
      if (named && span.end_ns - span.begin_ns >= named->end_ns - named->begin_ns) return;
      named = span;
      on = lane;
    });
  }
  if (!named) return {};
  return store::label_of(store, piece.rank, *named) +
         (piece.part == PathPart::transfer ? moved_what(store, piece, *named, on) : std::string());
}

}  // namespace shardscope::analysis
