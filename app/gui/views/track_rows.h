// Timeline rows other than lanes: curves of a rank or of all ranks, and the status bands of a followed
// parameter, one per rank.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "app/gui/model/row_curves.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class TrackRows {
 public:
  /// Curves of one kind share a scale over all ranks: the maximum of those drawn in the last frame.
  void begin_frame(Context& ctx);
  void curve(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lane,
             const TimeScale& scale);
  void band(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lane,
            const TimeScale& scale);
  /// The status band under the pointer: its parameter and rank.
  struct Band {
    std::uint32_t param = ev::kNoId, rank = ev::kNoId;
  };
  [[nodiscard]] const std::optional<Band>& hovered() const noexcept { return hovered_; }
  /// The name of a followed parameter, and a button to remove it.
  void param_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lane);

 private:
  struct Top {
    double high = 0, low = 0;
    bool any = false;
  };
  /// The scale of a row's kind in `tops`.
  struct Tops {
    std::array<Top, kRowCounters> counters;
    std::map<std::string, Top> sampled;  ///< by name
    [[nodiscard]] Top& of(const TimelineRow& row) {
      return row.sampled.empty() ? counters[static_cast<std::size_t>(row.counter)] : sampled[row.sampled];
    }
  };
  Tops shown_, seen_;
  std::optional<Band> hovered_;
};

}  // namespace shardscope::gui
