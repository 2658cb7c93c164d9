#include "app/gui/model/row_curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "app/gui/model/format.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_text.h"
#include "app/store/span_time.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

double length_of(TimeRange range, std::size_t count) {
  return static_cast<double>(range.length()) / static_cast<double>(std::max<std::size_t>(count, 1));
}

std::int64_t begin_of(TimeRange range, std::size_t count, std::size_t column) {
  return range.begin_ns + static_cast<std::int64_t>(length_of(range, count) * static_cast<double>(column));
}

/// Clears the columns after the last known event.
void cut_after(std::vector<ColumnRange>& columns, TimeRange range, std::int64_t known_until) {
  for (std::size_t i = columns.size(); i-- > 0 && begin_of(range, columns.size(), i) > known_until;)
    columns[i] = {};
}

/// One value per step, held for the step's duration.
template <typename Value>
std::vector<ColumnRange> of_steps(const store::Store& store, TimeRange range, std::size_t count,
                                  const Value& value) {
  std::vector<ColumnRange> out(count);
  const auto steps = store.steps();
  auto step = std::ranges::upper_bound(steps, range.begin_ns, {}, &store::StepRow::begin_ns);
  if (step != steps.begin()) --step;
  for (; step != steps.end() && step->begin_ns < range.end_ns; ++step) {
    if (step->end_ns == store::kOpen || step->end_ns <= range.begin_ns) continue;
    const double of = value(*step);
    if (!std::isfinite(of)) continue;
    const auto column = [&](std::int64_t at_ns) {
      const double x = static_cast<double>(at_ns - range.begin_ns) / length_of(range, count);
      return static_cast<std::size_t>(std::clamp(x, 0.0, static_cast<double>(count)));
    };
    const std::size_t first = column(step->begin_ns);
    const std::size_t last = std::max(first + 1, column(step->end_ns));
    for (std::size_t i = first; i < std::min(last, count); ++i) out[i].take(of);
  }
  return out;
}

RowCurve memory_of(AppState& app, std::uint32_t rank, TimeRange range, std::size_t count) {
  RowCurve out;
  out.samples.assign(count, {});
  const store::Store& store = app.store();
  if (!store.memory_peak(rank, app.memory_pool)) {
    out.instead = "no memory events of this pool";
    return out;
  }
  store.memory_columns(rank, app.memory_pool, range.begin_ns, range.end_ns, out.samples);
  out.columns.assign(count, {});
  for (std::size_t i = 0; i < count; ++i) out.columns[i].take(static_cast<double>(out.samples[i].total()));
  return out;
}

RowCurve tracked(AppState& app, RowCounter counter, std::uint32_t rank, TimeRange range, std::size_t count) {
  RowCurve out;
  const RankTrack& track = app.run->tracks().of(app.store(), rank, range, wanted_of(app.timeline));
  if (track.state == RankTrack::State::too_much) out.instead = too_much_text();
  const StepSeries& series = counter == RowCounter::live_elements ? track.live : track.in_flight;
  if (track.state != RankTrack::State::read || series.empty()) return out;
  out.columns = series.columns(range, count);
  // A track of an earlier frame ends with that frame's range.
  cut_after(out.columns, range, track.range.end_ns);
  return out;
}

std::string time_of_piece(const AppState& app, std::uint32_t rank, const std::vector<StatusPiece>& pieces,
                          const StatusPiece& piece) {
  const StatusPiece* const next = &piece == &pieces.back() ? nullptr : &piece + 1;
  const std::int64_t since = piece.state.since_ns;
  if (next != nullptr) {
    return since > 0 || piece.begin_ns > 0 ? " for " + duration(next->begin_ns - since).text()
                                           : " until " + timestamp(next->begin_ns, 1000);
  }
  const std::int64_t until = store::known_until(app.store(), rank);
  return until > since && since > 0 ? ", so far for " + duration(until - since).text() : "";
}

}  // namespace

double RowCurve::highest() const noexcept {
  double out = 0;
  for (const ColumnRange& column : columns)
    if (column.any) out = std::max(out, column.high);
  return out;
}

double RowCurve::lowest() const noexcept {
  double out = std::numeric_limits<double>::infinity();
  for (const ColumnRange& column : columns)
    if (column.any) out = std::min(out, column.low);
  return std::isfinite(out) ? out : 0;
}

const char* meaning_text(RowCounter counter) noexcept {
  switch (counter) {
    case RowCounter::live_elements:
      return "Elements of parameters that are available or in flight on the rank";
    case RowCounter::memory:
      return "Memory of the rank's pool by category; the pool is chosen in the Memory panel";
    case RowCounter::in_flight:
      return "Bytes of the rank's collectives that have begun and not ended, waiting for other ranks "
             "included";
    case RowCounter::loss:
      return "Loss of each step, mean over ranks and micro-steps";
    case RowCounter::step_time:
      return "Time of each step, from its first begin to its last end over ranks, pauses cut out";
  }
  return "";
}

std::string value_text(RowCounter counter, double value) {
  switch (counter) {
    case RowCounter::live_elements:
      return count(value).text();
    case RowCounter::memory:
    case RowCounter::in_flight:
      return bytes(std::llround(value)).text();
    case RowCounter::loss:
      return decimal(value, 4);
    case RowCounter::step_time:
      return duration(std::llround(value)).text();
  }
  return "";
}

RowCurve row_curve(AppState& app, RowCounter counter, std::uint32_t rank, TimeRange range,
                   std::size_t count) {
  const store::Store& store = app.store();
  RowCurve out;
  switch (counter) {
    case RowCounter::live_elements:
    case RowCounter::in_flight:
      out = tracked(app, counter, rank, range, count);
      break;
    case RowCounter::memory:
      out = memory_of(app, rank, range, count);
      break;
    case RowCounter::loss:
      out.columns = of_steps(store, range, count, [](const store::StepRow& step) { return step.loss; });
      return out;
    case RowCounter::step_time:
      out.columns = of_steps(store, range, count, [](const store::StepRow& step) {
        return static_cast<double>(step.end_ns - step.begin_ns - step.paused_ns);
      });
      return out;
  }
  cut_after(out.columns, range, store::known_until(store, rank));
  return out;
}

std::string tip_of(const AppState& app, RowCounter counter, std::uint32_t rank, const RowCurve& curve,
                   TimeRange range, std::int64_t at_ns) {
  const std::string whose = rank == ev::kNoId ? "" : " of rank " + std::to_string(rank);
  std::string out = std::string(word(counter)) + whose;
  const double x = static_cast<double>(at_ns - range.begin_ns) / length_of(range, curve.columns.size());
  const auto column = static_cast<std::size_t>(std::max(0.0, x));
  if (column >= curve.columns.size() || !curve.columns[column].any)
    return out + (curve.instead.empty() ? ": not known here" : ": " + curve.instead) + ".\n" +
           meaning_text(counter) + ".";
  const ColumnRange& here = curve.columns[column];
  out += ": " + value_text(counter, here.high);
  if (here.low < here.high) out += ", at least " + value_text(counter, here.low);
  if (counter == RowCounter::memory) {
    const store::MemorySample& sample = curve.samples[column];
    std::vector<ev::MemoryCategory> used = used_categories({&sample, 1});
    constexpr std::size_t kShown = 4;
    std::ranges::stable_sort(used, std::ranges::greater{}, [&](ev::MemoryCategory category) {
      return sample.bytes[static_cast<std::size_t>(category)];
    });
    for (std::size_t i = 0; i < std::min(used.size(), kShown); ++i)
      out += "\n" + std::string(word(used[i])) + ": " +
             bytes(sample.bytes[static_cast<std::size_t>(used[i])]).text();
    out += "\nPool: " + std::string(word(app.memory_pool));
  }
  return out + "\n" + meaning_text(counter) + ".";
}

std::string status_tip(const AppState& app, std::uint32_t param, std::uint32_t rank,
                       const std::vector<StatusPiece>& pieces, std::int64_t at_ns) {
  const store::Store& store = app.store();
  std::string out = param_name(store, param) + " on rank " + std::to_string(rank) + ": ";
  const StatusPiece* const piece = piece_at(pieces, at_ns);
  if (piece == nullptr || at_ns > store::known_until(store, rank)) return out + "not known here.";
  if (!piece->known) return out + not_kept_text() + ".";
  const store::ParamState& state = piece->state;
  out += word(static_cast<plan::ParamStatus>(ev::status_of(state.status)));
  if (ev::secondary_held(state.status)) out += " (secondary copy held)";
  out += time_of_piece(app, rank, pieces, *piece);
  // The initial status of a parameter has no cause.
  if (state.since_ns > 0 || state.gather != ev::kNoId) {
    out += "\nCause: " + cause_word(store, state.cause);
    if (state.module != ev::kNoId) out += ", at " + whole_unit_name(store, state.module);
    if (state.gather != ev::kNoId)
      out += ", " + std::string(words_of(store).gather) + " " + std::to_string(state.gather);
  }
  const std::string reason =
      reason_of(store, ev::status_code(state.status, state.cause), state.module, std::span(&param, 1));
  if (!reason.empty()) out += "\nWhy: " + reason;
  const StatusPiece* const next = piece == &pieces.back() ? nullptr : piece + 1;
  if (next != nullptr)
    out += "\nThen " + std::string(word(static_cast<plan::ParamStatus>(ev::status_of(next->state.status)))) +
           ", " + cause_word(store, next->state.cause) +
           (next->state.module != ev::kNoId ? " at " + whole_unit_name(store, next->state.module) : "");
  return out;
}

const char* too_much_text() noexcept { return "too many events to read at once: zoom in"; }

RankTracks::Wanted wanted_of(const TimelineOptions& options) {
  return {options.counters.contains(RowCounter::live_elements),
          options.counters.contains(RowCounter::in_flight), options.params};
}

}  // namespace shardscope::gui
