// The pieces of the report page. Each returns a fragment of HTML; none writes files. Charts are drawn to any
// width: bars are HTML, areas are SVG without text that is stretched, and only the timeline needs the page's
// script.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/summary.h"
#include "app/export/notes.h"
#include "app/store/span_label.h"
#include "app/store/store.h"

namespace shardscope::exporter {

using analysis::bytes_text;
using analysis::count_text;
using analysis::time_text;

// ---- text ---------------------------------------------------------------------------------------

/// Text made safe for HTML content and attribute values.
[[nodiscard]] std::string escape_html(std::string_view text);
/// Appends `text` as a JSON string that may stand in a script element.
void append_script_json(std::string& out, std::string_view text);
/// The value in the format and its unit, or a dash.
[[nodiscard]] std::string number(const std::optional<double>& value, const char* format,
                                 const char* unit = "");
/// A table that scrolls by itself where the page is narrower; `name` for who does not see it.
[[nodiscard]] std::string scrolling(const std::string& table, const char* name);
/// Shown at once where there are few rows, behind a line to open otherwise.
[[nodiscard]] std::string folded(const std::string& table, std::size_t rows, const std::string& what);
inline constexpr std::size_t kManyRanks = 16;  ///< more are not each a row of a chart

// ---- colours ------------------------------------------------------------------------------------

/// Classes of the style sheet: a colour means one thing everywhere, as in the dashboard.
namespace colour {
inline constexpr const char* kCompute = "c-compute";
inline constexpr const char* kGather = "c-gather";
inline constexpr const char* kReduce = "c-reduce";
inline constexpr const char* kOptimizer = "c-optimizer";
inline constexpr const char* kActivation = "c-activation";
inline constexpr const char* kBuffer = "c-buffer";
inline constexpr const char* kCopy = "c-copy";
inline constexpr const char* kWait = "c-wait";
inline constexpr const char* kIdle = "c-idle";
/// No computation hides them: hatched, as in the dashboard.
inline constexpr const char* kExposedComm = "c-exposed";
inline constexpr const char* kExposedCopy = "c-exposed-copy";
inline constexpr const char* kUnrecorded = "c-unrecorded";
}  // namespace colour
[[nodiscard]] const char* colour_of(instrumentation::MemoryCategory category);
/// What is drawn in the timeline, numbered as in assets/report/report.js.
enum class Hue : std::uint8_t { compute, gather, reduce, optimizer, copy, wait, idle, pause, unrecorded };
[[nodiscard]] Hue hue_of(analysis::PathPart part);
[[nodiscard]] Hue hue_of(store::SpanHue hue);
[[nodiscard]] const char* colour_of(Hue hue);

/// A part of a bar.
struct BarPart {
  const char* fill = nullptr;
  std::string title;  ///< "compute: 4.30 s (78.4 %)"
  double share = 0;   ///< of the whole bar, 0 to 1
};
/// One bar; `figures` stand beside it, or over it where the page is narrow.
[[nodiscard]] std::string bar_row(const std::string& label, const std::vector<BarPart>& parts,
                                  const std::string& figures);
/// What the colours are.
[[nodiscard]] std::string legend(const std::vector<std::pair<const char*, std::string>>& entries);

// ---- charts -------------------------------------------------------------------------------------

/// Stacked bar per rank: compute, exposed communication, exposed copies, idle. Of many ranks the mean, those
/// at the ends, and all as columns.
[[nodiscard]] std::string time_partition_html(const analysis::Summary& summary);
/// What bounds a step; empty where it is not known.
[[nodiscard]] std::string critical_path_html(const analysis::Summary& summary);
/// Which rank owns which elements of which parameter; many ranks in bands, many parts without their names.
[[nodiscard]] std::string partition_html(const store::Store& store);
/// Stacked categories of one rank over the run, the peak marked and explained.
[[nodiscard]] std::string memory_html(const store::Store& store, const analysis::Summary& summary,
                                      std::uint32_t rank);
/// Loss by step; of many steps the least and the most of each column. Over it the loss on held-out data,
/// where there was an evaluation after a step (else NaN).
[[nodiscard]] std::string loss_html(const std::vector<double>& loss, const std::vector<double>& held_out);

// ---- the timeline -------------------------------------------------------------------------------

/// A step that the page shows.
struct ShownStep {
  const char* label = nullptr;  ///< "typical"
  std::uint32_t step = 0;
  std::int64_t begin_ns = 0, end_ns = 0, running_ns = 0;
  const analysis::StepDigest* digest = nullptr;  ///< null: not every rank completed it
};
/// The measured step with the median time and the longest one; one of them where they are the same.
[[nodiscard]] std::vector<ShownStep> shown_steps(const store::Store& store, const analysis::Digest& digest);
/// A rank of the timeline, and why it is one: "rank 3, others wait for it".
struct ShownRank {
  std::uint32_t rank = 0;
  std::string label;
};
/// Eight at most: all, or the extremes and an even sample.
[[nodiscard]] std::vector<ShownRank> shown_ranks(const analysis::Summary& summary);
/// The spans of these as JSON for assets/report/report.js, which says what is in it.
[[nodiscard]] std::string timeline_data(const store::Store& store, const std::vector<ShownStep>& steps,
                                        const std::vector<ShownRank>& ranks);
/// Buttons, canvas and words around the data.
[[nodiscard]] std::string timeline_html(const store::Store& store, const analysis::Summary& summary,
                                        const analysis::Digest& digest);

// ---- tables -------------------------------------------------------------------------------------

/// Empty where there are none.
[[nodiscard]] std::string notes_html(const store::Store& store, const std::vector<Note>& notes);
[[nodiscard]] std::string identity_html(const store::Store& store, const analysis::Summary& summary);
[[nodiscard]] std::string ranks_html(const store::Store& store, const analysis::Summary& summary);
/// Whom others waited for.
[[nodiscard]] std::string stragglers_html(const analysis::Summary& summary);
[[nodiscard]] std::string communication_html(const analysis::Summary& summary);
[[nodiscard]] std::string prefetch_html(const analysis::Summary& summary);
[[nodiscard]] std::string gpu_html(const analysis::Summary& summary);
/// How long operations took over the whole run; only of a recording with limits.
[[nodiscard]] std::string distributions_html(const analysis::Summary& summary);
[[nodiscard]] std::string scheduling_html(const analysis::Scheduling& scheduling);
/// A: what the run is compared with; B: the run.
[[nodiscard]] std::string comparison_html(const analysis::Comparison& comparison);

}  // namespace shardscope::exporter
