// The pieces of the report page. Each returns an HTML fragment; none writes files. Charts scale to any width:
// bars are HTML, areas SVG without text (it would be stretched); only the timeline needs the page's script.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/analysis/advice.h"
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

/// Escapes text for HTML content and attribute values.
[[nodiscard]] std::string escape_html(std::string_view text);
/// Appends `text` as a JSON string that is safe inside a script element.
void append_script_json(std::string& out, std::string_view text);
/// The value in the format and its unit, or a dash if there is none.
[[nodiscard]] std::string number(const std::optional<double>& value, const char* format,
                                 const char* unit = "");
/// Makes a table scroll sideways where the page is narrower; `name` is its label for screen readers.
[[nodiscard]] std::string scrolling(const std::string& table, const char* name);
/// Wraps a table: open if it has few rows, otherwise collapsed under a line that opens it.
[[nodiscard]] std::string folded(const std::string& table, std::size_t rows, const std::string& what);
inline constexpr std::size_t kManyRanks = 16;  ///< with more ranks a chart has no row for each

// ---- colours ------------------------------------------------------------------------------------

/// Classes of the style sheet: a colour has the same meaning on the whole page and in the dashboard.
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
/// Exposed time, hidden by no computation: hatched, as in the dashboard.
inline constexpr const char* kExposedComm = "c-exposed";
inline constexpr const char* kExposedCopy = "c-exposed-copy";
inline constexpr const char* kUnrecorded = "c-unrecorded";
}  // namespace colour
[[nodiscard]] const char* colour_of(instrumentation::MemoryCategory category);
/// Colours of the timeline, with the numbers that assets/report/report.js uses.
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
/// One bar; `figures` are printed beside it, or above it where the page is narrow.
[[nodiscard]] std::string bar_row(const std::string& label, const std::vector<BarPart>& parts,
                                  const std::string& figures);
/// A legend: colour class and label of each entry.
[[nodiscard]] std::string legend(const std::vector<std::pair<const char*, std::string>>& entries);

// ---- charts -------------------------------------------------------------------------------------

/// Stacked bar per rank: compute, exposed communication, exposed copies, idle. With many ranks: the mean, the
/// extreme ranks, and every rank as a column.
[[nodiscard]] std::string time_partition_html(const analysis::Summary& summary);
/// What bounds a step; empty if there is no critical path.
[[nodiscard]] std::string critical_path_html(const analysis::Summary& summary);
/// Which rank owns which elements of which parameter; many ranks are joined to bands, many parts unnamed.
[[nodiscard]] std::string partition_html(const store::Store& store);
/// Stacked categories of one rank over the run, the peak marked and explained.
[[nodiscard]] std::string memory_html(const store::Store& store, const analysis::Summary& summary,
                                      std::uint32_t rank);
/// Loss by step; with many steps the minimum and maximum of each column. On top the loss on held-out data
/// after each step that has an evaluation (else NaN).
[[nodiscard]] std::string loss_html(const std::vector<double>& loss, const std::vector<double>& held_out);

// ---- the timeline -------------------------------------------------------------------------------

/// A step of the timeline.
struct ShownStep {
  const char* label = nullptr;  ///< "typical"
  std::uint32_t step = 0;
  std::int64_t begin_ns = 0, end_ns = 0, running_ns = 0;
  const analysis::StepDigest* digest = nullptr;  ///< null: not completed by every rank
};
/// The measured step of median time and the longest one; a single one if they are the same.
[[nodiscard]] std::vector<ShownStep> shown_steps(const store::Store& store, const analysis::Digest& digest);
/// A rank of the timeline and why it was chosen: "rank 3, others wait for it".
struct ShownRank {
  std::uint32_t rank = 0;
  std::string label;
};
/// At most eight: all ranks, or the extreme ones and an even sample.
[[nodiscard]] std::vector<ShownRank> shown_ranks(const analysis::Summary& summary);
/// The spans of these steps and ranks as JSON; assets/report/report.js describes the format.
[[nodiscard]] std::string timeline_data(const store::Store& store, const std::vector<ShownStep>& steps,
                                        const std::vector<ShownRank>& ranks);
/// Buttons, canvas and captions around the data.
[[nodiscard]] std::string timeline_html(const store::Store& store, const analysis::Summary& summary,
                                        const analysis::Digest& digest);

// ---- tables -------------------------------------------------------------------------------------

/// Empty if there are no notes.
[[nodiscard]] std::string notes_html(const store::Store& store, const std::vector<Note>& notes);
[[nodiscard]] std::string identity_html(const store::Store& store, const analysis::Summary& summary);
[[nodiscard]] std::string ranks_html(const store::Store& store, const analysis::Summary& summary);
/// The ranks that others waited for.
[[nodiscard]] std::string stragglers_html(const analysis::Summary& summary);
/// The options of findings and what what-if predicts for them; empty if there are none.
[[nodiscard]] std::string what_if_html(const analysis::TriedAdvice& tried,
                                       const std::vector<analysis::Finding>& findings);
[[nodiscard]] std::string communication_html(const analysis::Summary& summary);
/// Empty unless more than one group was measured.
[[nodiscard]] std::string links_html(const analysis::Summary& summary);
[[nodiscard]] std::string prefetch_html(const analysis::Summary& summary);
[[nodiscard]] std::string gpu_html(const analysis::Summary& summary);
/// Durations of operations over the whole run; only recorded with limits.
[[nodiscard]] std::string distributions_html(const analysis::Summary& summary);
[[nodiscard]] std::string scheduling_html(const analysis::Scheduling& scheduling);
/// A: the run to compare with; B: this run.
[[nodiscard]] std::string comparison_html(const analysis::Comparison& comparison, const std::string& a,
                                          const std::string& b);

}  // namespace shardscope::exporter
