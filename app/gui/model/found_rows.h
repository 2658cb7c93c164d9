// Rows of the panels Find and Statistics, refreshed while a search runs. Both contain indexes into the search
// or its groups, which are dropped in the frame in which a new one starts.
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

/// Name hits (steps, modules, findings...), then span hits.
class FoundRows {
 public:
  /// Call once per frame, at time `seconds`; during a search the list is refreshed at intervals. True when
  /// the words, the run or its analysis have changed.
  bool refresh(const AppState& app, double seconds);
  [[nodiscard]] const Table& table() const noexcept { return table_; }
  [[nodiscard]] const std::vector<NameHit>& names() const noexcept { return names_; }
  [[nodiscard]] const std::vector<HitRef>& hits() const noexcept { return hits_; }
  [[nodiscard]] std::optional<std::size_t> row_of(HitRef hit) const;
  /// Moves to the item of a row. Returns the name hit, or null for a span.
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

/// Histogram and groups of the spans found.
class FoundGroups {
 public:
  void refresh(const AppState& app, double seconds);
  /// Empty until the search is complete.
  [[nodiscard]] const TimeHistogram& histogram() const noexcept { return histogram_; }
  [[nodiscard]] const GroupTable& groups() const noexcept { return groups_; }
  /// Narrows the filter to the row's group; no effect while the groups are recounted.
  void narrow_to(Finder& find, std::size_t row) const;

 private:
  TimeHistogram histogram_;
  HistogramScale scale_ = HistogramScale::automatic;
  GroupTable groups_;
  std::uint64_t version_ = UINT64_MAX, counting_ = UINT64_MAX;  ///< Finder::version, countings
  std::optional<double> made_at_;
};

}  // namespace shardscope::gui
