// The spans of the page's steps as compact data, which its script draws. With very many spans those too short
// for any zoom level are joined, so that the page stays small.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>

#include "app/analysis/critical_path.h"
#include "app/analysis/piece_label.h"
#include "app/analysis/rank_activity.h"
#include "app/export/html_parts.h"
#include "app/export/span_walk.h"
#include "app/store/gather_contents.h"
#include "app/store/lane_name.h"
#include "app/store/module_name.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "app/store/span_label.h"
#include "app/store/span_time.h"
#include "app/store/vocabulary.h"

namespace shardscope::exporter {
namespace {

using instrumentation::EventKind;
using instrumentation::StreamId;

/// Limits of a step, over all its ranks; an item takes about 20 bytes.
constexpr std::size_t kMostSpans = 24'000, kMostPieces = 4'000;

/// Added to the hue if the name states the duration: the drawn width includes pauses, or the span is open.
constexpr int kSaysDuration = 16;

bool drawn(EventKind kind) {
  return kind != EventKind::phase_begin && kind != EventKind::step_begin &&
         kind != EventKind::micro_step_begin;
}

using Params = std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>;  ///< by collective

/// The name of a span, without its duration.
std::string name_of(const store::Store& store, std::uint32_t rank, const Params& params,
                    const store::Span& span) {
  switch (span.kind) {
    case EventKind::fetch_wait_begin: {
      const std::uint32_t gather = instrumentation::as<EventKind::fetch_wait_begin>(span).gather;
      std::string name = span_name(store, rank, span);
      if (gather != instrumentation::kNoId)
        name += fmt::format(", {} {}", store::vocabulary_of(store.tables()).gather, gather);
      return name;
    }
    case EventKind::collective_begin: {
      const auto fields = instrumentation::as<EventKind::collective_begin>(span);
      const auto moved = params.find(fields.sequence);
      const std::string contents =
          moved == params.end() ? std::string() : store::contents_text(store, moved->second);
      return fmt::format("{} #{}{}, {}", store::name_of(fields.op), fields.sequence,
                         contents.empty() ? "" : " of " + contents, bytes_text(fields.bytes));
    }
    default:
      return span_name(store, rank, span);
  }
}

/// The duration, if the drawn width does not show it (paused or open span); else empty.
std::string odd_duration(const store::Store& store, std::uint32_t rank, const store::SpanTime& time) {
  if (time.ended && time.paused_ns == 0) return {};
  std::string text = time_text(time.running_ns);
  if (!time.ended) {
    text = "not ended, " + text + (time.still_running ? " so far (" : " up to the last event (") +
           store::why_open(store, rank) + ")";
  }
  if (time.paused_ns > 0) text += " (+ " + time_text(time.paused_ns) + " paused, not counted)";
  return text;
}

/// Parameters of the collectives that may run in the step; the host may have submitted them a step earlier.
Params params_of_step(const store::Store& store, std::uint32_t rank, const ShownStep& step) {
  Params out;
  store.for_each_instant(rank, step.begin_ns - (step.end_ns - step.begin_ns), step.end_ns,
                         [&](const instrumentation::Event& event) {
                           if (event.kind != EventKind::collective_part) return;
                           const auto part = instrumentation::as<EventKind::collective_part>(event);
                           out[part.sequence].push_back(part.param);
                         });
  return out;
}

class TimelineData {
 public:
  TimelineData(const store::Store& store, const std::vector<ShownRank>& ranks)
      : store_(store), ranks_(ranks) {}

  std::string write(const std::vector<ShownStep>& steps) {
    std::string out = "{\"steps\":[";
    for (const ShownStep& step : steps) {
      if (out.back() != '[') out += ",\n";
      out +=
          fmt::format("{{\"length\":{},\"path\":[{}],\"ranks\":[", step.end_ns - step.begin_ns, path(step));
      // Join more until there are few enough items.
      std::int64_t shortest = 0;
      std::vector<Lane> lanes = lanes_of(step, shortest);
      while (item_count(lanes) > kMostSpans && shortest < (step.end_ns - step.begin_ns) / 256) {
        shortest = std::max(2 * shortest, (step.end_ns - step.begin_ns) / 16'384);
        lanes = lanes_of(step, shortest);
      }
      out += text_of(step, lanes) + "]}";
    }
    out += "],\n\"names\":[";
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (i > 0) out += ',';
      append_script_json(out, names_[i]);
    }
    return out + "]}";
  }

 private:
  struct Item {
    std::int64_t begin = 0, end = 0;
    std::uint8_t depth = 0;
    Hue hue{};
    store::Span span;       ///< the first of the joined spans
    std::size_t spans = 1;  ///< number of joined spans; 0: not to be joined
  };
  struct Lane {
    store::LaneId id;
    std::vector<Item> items;  ///< by begin, then depth
  };
  static constexpr std::uint8_t kPauseDepth = 255;

  static std::size_t item_count(const std::vector<Lane>& lanes) {
    std::size_t sum = 0;
    for (const Lane& lane : lanes) sum += lane.items.size();
    return sum;
  }

  std::size_t name(std::string text) {
    const auto [at, inserted] = ids_.try_emplace(std::move(text), names_.size());
    if (inserted) names_.push_back(at->first);
    return at->second;
  }

  std::vector<Lane> lanes_of(const ShownStep& step, std::int64_t shortest) const {
    std::vector<Lane> out;
    for (const ShownRank& rank : ranks_) {
      for (const store::LaneId lane : store_.lanes()) {
        if (lane.rank == rank.rank && lane.stream != StreamId::host && lane.stream != StreamId::gpu_records)
          out.push_back({lane, items(lane, step, shortest)});
      }
    }
    return out;
  }

  /// Begins are relative to the previous item. Names are made only here, for items that are written: the
  /// spans joined to them may be very many.
  std::string text_of(const ShownStep& step, const std::vector<Lane>& lanes) {
    std::string out;
    for (const ShownRank& rank : ranks_) {
      if (!out.empty()) out += ",\n";
      out += "[";
      append_script_json(out, rank.label);
      const Params params = params_of_step(store_, rank.rank, step);
      for (const Lane& lane : lanes) {
        if (lane.id.rank != rank.rank) continue;
        out += ",\n[";
        append_script_json(out, store::lane_name(store_, lane.id));
        std::int64_t before = 0;
        for (const Item& item : lane.items) {
          const Named named = named_as(lane.id.rank, params, step, item);
          out += fmt::format(",{},{},{},{},{}", item.depth, item.begin - before, item.end - item.begin,
                             static_cast<int>(item.hue) + (named.says_duration ? kSaysDuration : 0),
                             name(named.text));
          before = item.begin;
        }
        out += "]";
      }
      out += "]";
    }
    return out;
  }

  struct Named {
    std::string text;
    bool says_duration = false;
  };
  [[nodiscard]] Named named_as(std::uint32_t rank, const Params& params, const ShownStep& step,
                               const Item& item) const {
    if (item.spans > 1) return {fmt::format("{} short spans", item.spans)};
    const store::Span& span = item.span;
    if (item.depth == kPauseDepth) {
      const std::string took =
          span.end_ns == store::kOpen ? "not ended" : time_text(span.end_ns - span.begin_ns);
      return {"paused by the user: " + took + ", in no duration", true};
    }
    const store::SpanTime time = store::time_of(store_, rank, span);
    const std::string odd = odd_duration(store_, rank, time);
    std::string text = name_of(store_, rank, params, span);
    if (!odd.empty()) return {text + ": " + odd, true};
    if (span.begin_ns < step.begin_ns || time.until_ns > step.end_ns)
      return {text + ": " + time_text(time.running_ns) + ", partly in another step", true};
    return {std::move(text)};
  }

  /// Spans of all depths, and pauses.
  [[nodiscard]] std::vector<Item> items(store::LaneId lane, const ShownStep& step,
                                        std::int64_t shortest) const {
    std::vector<Item> all;
    for (std::uint8_t depth = 0; depth < store_.depth_count(lane); ++depth) {
      const std::size_t first = all.size();
      std::int64_t longest = 0;  // longest span joined to the last item, which has its colour
      for (const store::Span& span : store_.spans(lane, depth, step.begin_ns, step.end_ns)) {
        if (!drawn(span.kind)) continue;
        const store::SpanTime time = store::time_of(store_, lane.rank, span);
        Item item{std::clamp(span.begin_ns, step.begin_ns, step.end_ns) - step.begin_ns,
                  std::clamp(time.until_ns, step.begin_ns, step.end_ns) - step.begin_ns,
                  depth,
                  hue_of(store::hue_of(lane.stream, span.kind, span.code)),
                  span,
                  1};
        const bool is_short = item.end - item.begin < shortest;
        if (is_short && all.size() > first && all.back().spans > 0 &&
            item.begin - all.back().end < shortest && all.back().end - all.back().begin < 4 * shortest) {
          Item& joined = all.back();
          if (item.end - item.begin > longest) joined.hue = item.hue;
          longest = std::max(longest, item.end - item.begin);
          joined.end = std::max(joined.end, item.end);
          ++joined.spans;
          continue;
        }
        longest = item.end - item.begin;
        if (!is_short) item.spans = 0;  // no span is joined to it
        all.push_back(item);
      }
    }
    store_.for_each_span({lane.rank, StreamId::host}, store::kPauses, step.begin_ns, step.end_ns,
                         [&](const store::Span& pause) {
                           all.push_back({std::max(pause.begin_ns, step.begin_ns) - step.begin_ns,
                                          std::min(pause.end_ns, step.end_ns) - step.begin_ns, kPauseDepth,
                                          Hue::pause, pause, 0});
                         });
    std::sort(all.begin(), all.end(), [](const Item& a, const Item& b) {
      return std::tuple(a.begin, a.depth) < std::tuple(b.begin, b.depth);
    });
    return all;
  }

  /// The critical path: begin relative to the step, duration, hue and name of each piece.
  std::string path(const ShownStep& step) {
    if (step.digest == nullptr) return {};
    std::vector<analysis::RankActivity> activities;
    for (const analysis::RankStep& rank : step.digest->ranks)
      activities.push_back(analysis::activity_of(store_, rank.rank, rank.begin_ns, rank.end_ns));
    const auto found = analysis::critical_path(activities);
    if (!found) return {};
    std::vector<analysis::PathPiece> pieces = found->pieces;
    for (std::int64_t shortest = (step.end_ns - step.begin_ns) / 16'384; pieces.size() > kMostPieces;
         shortest *= 2) {
      // Short pieces are merged into the previous one.
      std::vector<analysis::PathPiece> fewer;
      for (const analysis::PathPiece& piece : pieces) {
        if (!fewer.empty() && piece.at.end - piece.at.begin < shortest)
          fewer.back().at.end = piece.at.end;
        else
          fewer.push_back(piece);
      }
      pieces = std::move(fewer);
    }
    // A label is read from the recording: only the longest pieces get one, else the whole step is read again.
    constexpr std::size_t kNamed = 24;
    std::int64_t named = 0;
    if (pieces.size() > kNamed) {
      std::vector<std::int64_t> lengths;
      for (const analysis::PathPiece& piece : pieces) lengths.push_back(piece.at.end - piece.at.begin);
      std::ranges::nth_element(lengths, lengths.begin() + kNamed, std::greater{});
      named = lengths[kNamed];
    }
    std::string out;
    for (const analysis::PathPiece& piece : pieces) {
      const std::int64_t begin = std::clamp(piece.at.begin, step.begin_ns, step.end_ns);
      const std::int64_t end = std::clamp(piece.at.end, step.begin_ns, step.end_ns);
      if (end <= begin) continue;
      if (!out.empty()) out += ',';
      out += fmt::format("{},{},{},{}", begin - step.begin_ns, end - begin,
                         static_cast<int>(hue_of(piece.part)), name(described(piece, named)));
    }
    return out;
  }

  /// "backward on rank 1: h.3.mlp"; the label only if the piece is longer than `named` nanoseconds.
  [[nodiscard]] std::string described(const analysis::PathPiece& piece, std::int64_t named) const {
    std::string text = fmt::format("{} on rank {}", analysis::label_of(piece.part), piece.rank);
    if (piece.at.end - piece.at.begin <= named) return text;
    const std::string label = analysis::piece_label(store_, piece);
    return label.empty() ? text : text + ": " + label;
  }

  const store::Store& store_;
  const std::vector<ShownRank>& ranks_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> ids_;
};

}  // namespace

std::string timeline_data(const store::Store& store, const std::vector<ShownStep>& steps,
                          const std::vector<ShownRank>& ranks) {
  return TimelineData(store, ranks).write(steps);
}

}  // namespace shardscope::exporter
