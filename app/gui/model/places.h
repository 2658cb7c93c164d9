// Navigation history (undo, redo), and places as text for sharing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/selection.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"

namespace shardscope::gui {

struct AppState;

/// How the ranks of the timeline are arranged, and which levels of their lanes are hidden.
struct RankArrangement {
  RankOrder order = RankOrder::number;
  std::string grouping = kByNode;
  std::vector<std::uint32_t> own_order;
  LaneCrops crops = {};
  friend bool operator==(const RankArrangement&, const RankArrangement&) = default;
};
[[nodiscard]] RankArrangement arrangement_of(const TimelineOptions& options);
void arrange(TimelineOptions& options, const RankArrangement& ranks);

/// What the user looks at: visible range, cursor, selection, order of the ranks.
struct Place {
  TimeRange range;
  std::optional<std::int64_t> cursor_ns;
  Selection selection;
  bool follow = false;    ///< the range follows a live run: same_as() ignores it
  RankArrangement ranks;  ///< included so that moving a rank or hiding levels of a lane can be undone
  [[nodiscard]] bool same_as(const Place& other) const noexcept;
};
[[nodiscard]] Place place_of(const AppState& app);
void go_to_place(AppState& app, const Place& place);

/// Works like a browser's history. A zoom or drag consists of many changes but is one entry: a place is kept
/// only if it was unchanged for kRest before it was left.
class PlaceHistory {
 public:
  static constexpr double kRest = 0.6;  ///< seconds
  static constexpr std::size_t kMost = 256;
  /// Call once per frame with the current place.
  void note(const Place& place, double seconds);
  /// The previous place, or the next one after back(); nullopt at either end.
  [[nodiscard]] std::optional<Place> back(double seconds);
  [[nodiscard]] std::optional<Place> forward(double seconds);
  [[nodiscard]] bool can_go_back() const noexcept { return !past_.empty(); }
  [[nodiscard]] bool can_go_forward() const noexcept { return !future_.empty(); }
  void clear() { *this = {}; }

 private:
  std::optional<Place> current_;
  std::vector<Place> past_, future_;
  double changed_at_ = -1;
};

/// The place as text: "run.zscope#at=1234567ns&range=1000ns-2000ns&rank=3&param=h.3.attn.weight". Uses names
/// instead of ids, so that it is valid for another recording of the same model. Also the selected span
/// ("span=", which other recordings lack), the measured range, and the words of Find.
[[nodiscard]] std::string link_of(const AppState& app);
/// Goes to the place in `text`: a step ("12", "step 12"), a time since the run's first event ("1.25 s", "830
/// ms"), a rank ("rank 3"), or a link. Returns an error message, empty on success.
[[nodiscard]] std::string go_to_text(AppState& app, std::string_view text);
/// "1.25 s", "830ms", "12 us", "400 ns" in nanoseconds; nullopt if invalid.
[[nodiscard]] std::optional<std::int64_t> time_from_text(std::string_view text);

}  // namespace shardscope::gui
