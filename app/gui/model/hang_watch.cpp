#include "app/gui/model/hang_watch.h"

#include <utility>

#include "app/gui/model/format.h"
#include "app/store/rank_end.h"

namespace shardscope::gui {

void HangWatch::set(std::optional<analysis::Hang> hang, std::uint64_t of) {
  hang_ = std::move(hang);
  of_ = of;
  ++revision_;
}

bool HangWatch::look(const store::Store& store, Run run, Clock::time_point now) {
  if (run == Run::over) {
    if (!hang_ || over_) return false;
    set(std::nullopt, UINT64_MAX);  // the run is over: no hang
    return true;
  }
  over_ = false;
  const std::uint64_t events = store.event_count();
  if (std::exchange(events_, events) != events || changed_ == Clock::time_point{}) changed_ = now;
  const bool quiet = run == Run::running && !store.ranks().empty() && now - changed_ >= kQuiet;
  if (!quiet) {
    if (!hang_) return false;
    set(std::nullopt, UINT64_MAX);
    return true;
  }
  // Messages and ranks that end also change the diagnosis without being events; so does a wait that has
  // become longer than is usual in this run.
  if (of_ != store.revision()) usual_ = std::chrono::nanoseconds(analysis::usual_wait_ns(store));
  const bool is_long = now - changed_ >= usual_;
  if ((of_ == store.revision() && is_long == judged_long_) || now - made_ < kEvery) return false;
  made_ = now;
  judged_long_ = is_long;
  const std::string before = hang_ ? hang_->text : std::string();
  analysis::Hang hang =
      analysis::diagnose_hang(store, analysis::Watched::quiet,
                              std::chrono::duration_cast<std::chrono::nanoseconds>(now - changed_).count());
  const bool changed = !hang_ || hang.text != before;
  if (changed) {
    set(std::move(hang), store.revision());
  } else {
    of_ = store.revision();
  }
  return changed;
}

const analysis::Hang& HangWatch::diagnosis(const store::Store& store, Run run) {
  if (run == Run::over && (!over_ || of_ != store.revision())) {
    over_ = true;
    set(analysis::diagnose_hang(store), store.revision());
  }
  if (hang_) return *hang_;
  none_.text = run == Run::held ? "The run is paused, or this window is not connected to it."
                                : "The run continues: events come in.";
  return none_;
}

Table hang_table(const analysis::Hang& hang) {
  Table table;
  table.columns = {
      {.name = "rank", .weight = 0.05F, .number = true},
      {.name = "waits for", .weight = 0.09F, .tip = "Ranks that have not entered its collective"},
      {.name = "what it does", .weight = 0.3F, .tip = "Its innermost span that has not ended"},
      {.name = "collective", .weight = 0.28F, .tip = "Started and not ended"},
      {.name = "last gate", .weight = 0.18F},
      {.name = "last event", .weight = 0.1F, .number = true, .tip = "Since the run's first event"}};
  for (const analysis::RankState& one : hang.ranks) {
    std::string waits;
    constexpr std::size_t kShown = 4;
    for (std::size_t i = 0; i < one.waits_for.size() && i < kShown; ++i)
      waits += (i == 0 ? "" : ", ") + std::to_string(one.waits_for[i]);
    if (one.waits_for.size() > kShown)
      waits += " and " + std::to_string(one.waits_for.size() - kShown) + " more";
    const bool culprit = one.rank == hang.culprit;
    const Tone tone = culprit ? Tone::bad : one.waits_for.empty() ? Tone::normal : Tone::warning;
    const std::string doing = one.doing.empty() ? std::string("not in any recorded span") : one.doing;
    const auto cell = [](std::string text, Tone of = Tone::normal) {
      return Cell{std::move(text), {}, of, {}, ""};
    };
    Cell number = number_cell(static_cast<double>(one.rank), std::to_string(one.rank));
    number.tone = tone;
    table.add({std::move(number), cell(waits.empty() ? "–" : waits),
               cell(doing, culprit ? Tone::bad : Tone::normal),
               cell(one.collective ? one.collective->text() : "–"), cell(one.gate.empty() ? "–" : one.gate),
               number_cell(static_cast<double>(one.last_event_ns), timestamp(one.last_event_ns, 1'000'000))});
  }
  return table;
}

}  // namespace shardscope::gui
