#include "app/gui/model/found_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {
namespace {

/// Seconds between two refreshes during a search.
constexpr double kRows = 0.15, kGroups = 0.25;
constexpr std::size_t kMostGroups = 1000, kBars = 48;

std::vector<Cell> row_of_name(const NameHit& hit) {
  const Cell none = number_cell(std::nullopt, "");
  return {{word(hit.kind), {}, Tone::muted, {}, ""},
          {hit.detail.empty() ? hit.text : hit.text + "  " + hit.detail, {}, Tone::normal, {}, ""},
          none,
          none,
          none,
          none,
          none};
}

}  // namespace

bool FoundRows::refresh(const AppState& app, double seconds) {
  const Finder& find = app.find;
  // Findings are identified by their index in the analysis.
  const bool other = words_ != find.words || run_ != app.run->number() || of_ != app.run->analysis();
  if (other) {
    words_ = find.words;
    run_ = app.run->number();
    of_ = app.run->analysis();
    names_ = find_names(app, words_);
  }
  const bool anew = other || search_ != find.searches;
  const bool waits = !find.search.done() && made_at_ && seconds - *made_at_ < kRows;
  if (!anew && (version_ == find.version || waits)) return false;
  version_ = find.version;
  search_ = find.searches;
  made_at_ = seconds;
  hits_ = find.rows.rows();
  table_ = hit_table(app, hits_);
  std::vector<std::vector<Cell>> spans = std::exchange(table_.rows, {});
  for (const NameHit& hit : names_) table_.add(row_of_name(hit));
  std::ranges::move(spans, std::back_inserter(table_.rows));
  return other;
}

std::optional<std::size_t> FoundRows::row_of(HitRef hit) const {
  const auto at = std::ranges::find(hits_, hit);
  if (at == hits_.end()) return std::nullopt;
  return names_.size() + static_cast<std::size_t>(at - hits_.begin());
}

const NameHit* FoundRows::go_to(AppState& app, std::size_t row) const {
  if (row < names_.size()) {
    go_to_name(app, names_[row]);
    return &names_[row];
  }
  row -= names_.size();
  if (row >= hits_.size() || search_ != app.find.searches) return nullptr;
  if (const auto place = place_of(app.find.search, hits_[row])) go_to_hit(app, *place);
  return nullptr;
}

void FoundGroups::refresh(const AppState& app, double seconds) {
  const Finder& find = app.find;
  const bool complete = find.search.done() && find.statistics.ready();
  const bool anew = counting_ != find.countings;
  const bool rescaled = std::exchange(scale_, find.scale) != find.scale;
  if (!anew && !rescaled &&
      (version_ == find.version || (!complete && made_at_ && seconds - *made_at_ < kGroups)))
    return;
  version_ = find.version;
  counting_ = find.countings;
  made_at_ = seconds;
  histogram_ = complete ? gui::histogram(find.statistics.whole().times, kBars, find.scale) : TimeHistogram{};
  groups_ = group_table(app.store(), find.search, find.statistics, kMostGroups);
}

void FoundGroups::narrow_to(Finder& find, std::size_t row) const {
  if (counting_ != find.countings || row >= groups_.of_row.size()) return;
  const std::size_t group = groups_.of_row[row];
  if (group < find.statistics.groups().size())
    find.filter.narrow(find.statistics.by(), find.statistics.groups()[group].key);
}

}  // namespace shardscope::gui
