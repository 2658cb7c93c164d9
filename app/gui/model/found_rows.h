// What the panels Find and Statistics list of a search, made anew as it goes on. Both hold indexes into the
// search or its groups: they are dropped in the frame in which another one has begun.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/analyst.h"
#include "app/gui/model/find_names.h"
#include "app/gui/model/hit_rows.h"
#include "app/gui/model/span_statistics.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

/// The names of the run that have the words (steps, modules, findings...), then the spans.
class FoundRows {
 public:
  /// Once a frame, at `seconds`; while a search goes on the list is made anew now and then. True when the
  /// words or the run are others than before.
  bool refresh(const AppState& app, double seconds);
  [[nodiscard]] const Table& table() const noexcept { return table_; }
  [[nodiscard]] const std::vector<NameHit>& names() const noexcept { return names_; }
  [[nodiscard]] const std::vector<HitRef>& hits() const noexcept { return hits_; }
  [[nodiscard]] std::optional<std::size_t> row_of(HitRef hit) const;
  /// Goes to what a row is. Returns it when it is a name.
  const NameHit* go_to(AppState& app, std::size_t row) const;

 private:
  std::string words_;
  std::uint64_t run_ = 0;  ///< Session::number()
  std::shared_ptr<const Analysis> of_;
  std::vector<NameHit> names_;
  std::vector<HitRef> hits_;
  Table table_;
  std::uint64_t version_ = UINT64_MAX, search_ = UINT64_MAX;  ///< Finder::version, searches
  std::optional<double> made_at_;
};

/// Histogram and groups.
class FoundGroups {
 public:
  void refresh(const AppState& app, double seconds);
  /// Empty until all is searched.
  [[nodiscard]] const TimeHistogram& histogram() const noexcept { return histogram_; }
  [[nodiscard]] const GroupTable& groups() const noexcept { return groups_; }
  /// Leaves only the spans of the row's group; not while they are grouped anew.
  void narrow_to(Finder& find, std::size_t row) const;

 private:
  TimeHistogram histogram_;
  HistogramScale scale_ = HistogramScale::automatic;
  GroupTable groups_;
  std::uint64_t version_ = UINT64_MAX, counting_ = UINT64_MAX;  ///< Finder::version, countings
  std::optional<double> made_at_;
};

}  // namespace shardscope::gui
