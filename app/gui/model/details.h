// Contents of the inspector and of tooltips: fields with value, unit and, for derived values, the formula.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/shard_places.h"
#include "app/gui/model/app_state.h"

namespace shardscope::gui {

struct Field {
  std::string label;
  std::string value;
  std::string unit;
  std::string formula;  ///< of a derived value; empty: measured
};

/// A row of the list under the fields. A click moves to its time, or selects its parameter.
struct HistoryRow {
  std::optional<std::int64_t> at_ns;
  std::string text;
  std::string value;
  std::uint32_t param = ev::kNoId;
  bool later = false;  ///< after the time that is looked at
};

/// Another span: one that the selected one waits for, that waits for it, or that it is inside of. A click
/// selects it.
struct RelatedRow {
  std::string text;   ///< "used by h.3.attn forward"
  std::string value;  ///< time from the one to the other; of a parent its duration
  store::LaneId lane;
  store::Span span;
};

struct Details {
  std::string title;
  std::string subtitle;
  Meaning meaning = Meaning::neutral;
  std::vector<Field> fields;
  std::string reason;               ///< why, in a sentence
  std::vector<RelatedRow> parents;  ///< innermost first
  std::vector<RelatedRow> related;
  std::string history_title;
  std::vector<HistoryRow> history;  ///< newest first
  std::vector<HistoryRow> inside;   ///< children by name, the longest first, and messages
};

/// Details of the selection; the title is empty without one.
[[nodiscard]] Details describe_selection(const AppState& app);
[[nodiscard]] Details describe_span(const AppState& app, store::LaneId lane, const store::Span& span);
/// Why a GPU stream is idle at a time; empty where it is busy, or the next work is unknown.
[[nodiscard]] std::string idle_text(const AppState& app, store::LaneId lane, std::int64_t at_ns);
[[nodiscard]] Details describe_param(const AppState& app, std::uint32_t param, std::uint32_t rank,
                                     std::int64_t at_ns);
[[nodiscard]] std::string status_text(const store::ParamState& state, bool persistent);
/// "on NVMe", "in pinned host memory, as int8".
[[nodiscard]] std::string text_of(const analysis::ShardPlace& rest);

}  // namespace shardscope::gui
