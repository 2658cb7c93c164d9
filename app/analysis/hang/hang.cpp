#include "app/analysis/hang/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "app/analysis/hang/issued_collectives.h"
#include "app/analysis/hang/rank_states.h"
#include "app/analysis/hang/sentences.h"
#include "app/analysis/hang/waits.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/statistics.h"
#include "app/store/span_time.h"

namespace shardscope::analysis {
namespace {

/// Number of steps whose median is the usual length of a step.
constexpr std::size_t kSteps = 32;

constexpr const char* kGoesOn = "The run continues: events come in.";

/// The latest silences, over or ongoing.
std::vector<store::Silence> latest_stops(const store::Store& store) {
  constexpr std::size_t kMost = 4;
  std::vector<store::Silence> stops = store::silences(store);
  if (stops.size() > kMost) stops.erase(stops.begin(), stops.end() - kMost);
  return stops;
}

}  // namespace

std::string NamedCollective::text() const {
  std::string out = fmt::format("{} #{}", instrumentation::label_of(op), sequence);
  if (!group.empty()) out += " of group " + group;
  if (!module.empty()) out += " for " + module;
  if (more_params > 0)
    out += fmt::format(" and {} more parameter{}", more_params, more_params == 1 ? "" : "s");
  if (bytes > 0) out += " (" + bytes_text(bytes) + ")";
  return out;
}

std::int64_t usual_wait_ns(const store::Store& store) {
  constexpr std::int64_t kLeast = 1'500'000'000, kFirst = 10'000'000'000;
  constexpr double kStepsLong = 3;
  std::vector<double> lengths;
  const std::span<const store::StepRow> steps = store.steps();
  constexpr std::size_t kMostRead = 1024;  // none of which may have ended
  for (std::size_t i = steps.size(); i-- > 0 && lengths.size() < kSteps && steps.size() - i <= kMostRead;) {
    if (steps[i].end_ns != store::kOpen)
      lengths.push_back(static_cast<double>(store::time_of(store, steps[i]).running_ns));
  }
  if (lengths.empty()) return kFirst;
  return std::max(kLeast, static_cast<std::int64_t>(kStepsLong * quantile(std::move(lengths), 0.5)));
}

Hang diagnose_hang(const store::Store& store, Watched watched, std::int64_t quiet_ns,
                   std::optional<std::int64_t> long_ns) {
  Hang out;
  const std::int64_t from_ns = last_steps_from(store), now_ns = store.end_ns() + quiet_ns;
  const SharedRanks world = all_ranks(store);
  std::vector<IssuedCollectives> recent;
  for (const store::RankRow& row : store.ranks()) {
    recent.push_back(issued_collectives(store, row.rank, from_ns, world));
    out.ranks.push_back(state_of(store, row, recent.back(), from_ns));
  }
  drop_completed_collectives(recent, out.ranks);
  out.stops = latest_stops(store);
  out.difference = first_difference(recent);
  const std::optional<std::uint32_t> failed = failed_by_itself(store);
  const std::optional<std::uint32_t> cut_off =
      failed && was_cut_off(store, *failed, now_ns) ? failed : std::nullopt;
  const std::vector<const Issue*> blocked = find_waits(recent, cut_off, out.ranks);
  out.culprit = most_missed(out.ranks);
  const Issue* const oldest = oldest_without(blocked, out.ranks, out.culprit);
  if (oldest == nullptr) {
    const RankState* const missed = without_waits(store, out.ranks);
    // The exit of a rank that was killed from outside is no evidence about the others.
    const auto failed_itself = [](const RankState& one) {
      return one.how == RankState::How::gone && one.reported_end;
    };
    const bool failed_alike = !failed && missed != nullptr && std::ranges::all_of(out.ranks, failed_itself);
    const std::string modules =
        watched == Watched::running ? std::string() : other_modules(store, from_ns, out, failed_alike);
    const bool differed = failed_alike && (out.difference || !modules.empty());
    if (!differed) out.text = watched == Watched::running ? kGoesOn : no_rank_waits(out.ranks, missed);
    // Ranks also synchronize outside of recorded collectives, for overflow and norm.
    if (missed != nullptr && missed->how == RankState::How::stopped && watched == Watched::quiet) {
      out.hung = true;
      out.culprit = missed->rank;
      out.since_ns = missed->since_ns;
    }
    add_difference(store, out);
    if (!modules.empty()) out.text += (out.text.empty() ? "" : " ") + modules;
    if (differed) out.text += how_all_ended(out.ranks);
    add_absent(store, watched, out);
    add_stops(out);
    if (watched != Watched::running) add_exception(store, out);
    if (watched != Watched::running) add_rehearsal(store, out);
    return out;
  }
  out.since_ns = oldest->at_ns;
  const auto culprit = std::ranges::find(out.ranks, out.culprit, &RankState::rank);
  const bool over = culprit != out.ranks.end() && is_over(*culprit);
  const bool all_over = std::ranges::all_of(out.ranks, is_over);
  const bool stopped = culprit != out.ranks.end() && culprit->how == RankState::How::stopped;
  const bool died = all_over && failed == out.culprit;
  const std::int64_t usual_ns = long_ns ? *long_ns : usual_wait_ns(store);
  const bool busy = culprit != out.ranks.end() && culprit->long_phase && !culprit->collective;
  const bool quiet = watched == Watched::quiet && (quiet_ns == 0 || quiet_ns >= usual_ns);
  const bool certain = oldest->failed_ns != 0 || (over && !all_over) || died || stopped ||
                       (!busy && (quiet || now_ns - oldest->at_ns >= usual_ns));
  out.hung = certain && watched != Watched::running;
  if (watched == Watched::running) {
    out.text = kGoesOn;
  } else {
    const bool live = watched == Watched::quiet;
    if (!certain) out.text = live ? "Now: " : "Where the recording ends: ";
    out.text += who_waits(out, blocked, *oldest, now_ns, cut_off == out.culprit);
    if (!certain && live) {
      out.text += busy ? fmt::format(" That may take long: rank {} has not stopped.", out.culprit)
                       : fmt::format(" That is no hang yet: a wait of {} would be.", time_text(usual_ns));
    } else if (!certain) {
      out.text += " Whether it was on its way is not recorded.";
    }
    if (!out.difference) out.difference = never_issued(recent, *oldest);
  }
  add_difference(store, out);
  if (watched != Watched::running) {
    const std::string modules = other_modules(store, from_ns, out, false);
    if (!modules.empty()) out.text += " " + modules;
  }
  add_stops(out);
  if (watched != Watched::running) add_exception(store, out);
  if (watched != Watched::running) add_rehearsal(store, out);
  return out;
}

}  // namespace shardscope::analysis
