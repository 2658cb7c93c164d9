// The pieces of the report page. Each returns a fragment of HTML or inline SVG; none writes files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/analysis/quantity_text.h"
#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Of every chart, and of the labels at its left, in SVG user units (pixels at 100 %).
constexpr double kChartWidth = 1120, kChartLabel = 110;

/// Text made safe for HTML content and attribute values.
[[nodiscard]] std::string escape_html(std::string_view text);

// Colour means one thing everywhere; the same palette as the dashboard's (docs/guide.md).
namespace colour {
inline constexpr const char* kCompute = "#4C9BE8";
inline constexpr const char* kGather = "#35B39B";
inline constexpr const char* kReduce = "#E8964A";
inline constexpr const char* kOptimizer = "#E3C44B";
inline constexpr const char* kActivation = "#9A8FBF";
inline constexpr const char* kBuffer = "#7E441A";
inline constexpr const char* kCopy = "#B07CD8";
inline constexpr const char* kWait = "#E2555A";
inline constexpr const char* kIdle = "#C9CED6";
}  // namespace colour
[[nodiscard]] const char* colour_of(instrumentation::MemoryCategory category);

using analysis::bytes_text;
using analysis::count_text;
using analysis::time_text;

/// Stacked bar per rank: compute, exposed communication, exposed copies, idle.
[[nodiscard]] std::string time_partition_svg(const analysis::Summary& summary);
/// Every lane of every rank over one step; `step` is chosen by typical_step().
[[nodiscard]] std::string timeline_svg(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns);
/// Which rank owns which elements of which parameter.
[[nodiscard]] std::string partition_svg(const store::Store& store);
/// Stacked categories of one rank over the run, peak marked, model-state expression dashed.
[[nodiscard]] std::string memory_svg(const store::Store& store, const analysis::Summary& summary,
                                     std::uint32_t rank);
/// Loss by step.
[[nodiscard]] std::string loss_svg(const std::vector<double>& loss);

}  // namespace shardscope::exporter
