// Durations of operations over a whole run, from the distributions of a recording with limits.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/export/html_parts.h"
#include "app/store/quantile_sketch.h"

namespace shardscope::exporter {
namespace {

/// With fewer spans the slowest 1 % contains none.
constexpr std::uint64_t kFewest = 100;
constexpr std::size_t kShown = 16;

std::string ms_text(double ms) { return time_text(static_cast<std::int64_t>(ms * 1e6)); }

/// The 99 % quantile as a multiple of the median.
double spread_of(const analysis::Distribution& one) { return one.p99_ms / one.p50_ms; }

/// The rank whose 99 % quantile exceeds that of all ranks by more than the error of both quantiles.
std::string longest_text(const analysis::Distribution& one) {
  if (!one.longest) return "—";
  if (one.longest->p99_ms <= one.p99_ms * (1 + 2 * store::QuantileSketch::kError)) return "none stands out";
  return fmt::format("rank {}: {}", one.longest->rank, ms_text(one.longest->p99_ms));
}

std::string row_html(const analysis::Distribution& one) {
  return fmt::format(
      "<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td "
      "class=n>{:.1f}<td>{}</tr>",
      escape_html(one.what), one.module.empty() ? "all" : escape_html(one.module),
      count_text(static_cast<double>(one.count)), ms_text(one.p50_ms), ms_text(one.p90_ms),
      ms_text(one.p99_ms), ms_text(one.max_ms), spread_of(one), longest_text(one));
}

std::string source_html(bool whole, std::size_t left_out) {
  std::string out = fmt::format(
      "<p class=note>Widest spread (99 % / median) first, of operations with {} spans and more{}. From the "
      "distributions that the recorder kept {}, of all ranks together, pauses cut out; also of spans whose "
      "events were deleted. Median, 90 % and 99 % are within {:.0f} % (a sketch: buckets of that relative "
      "width); counts and largest are exact.",
      kFewest, left_out == 0 ? "" : fmt::format("; {} more: <code>summary --json</code> has all", left_out),
      whole ? "of the whole run" : "up to the last minute recorded (it did not end, or goes on)",
      store::QuantileSketch::kError * 100);
  return out + "</p>";
}

}  // namespace

std::string distributions_html(const analysis::Summary& s) {
  if (!s.distributions) {
    return "<p class=missing>Not recorded: distributions are kept of runs that are recorded with "
           "<code>--max-age</code> or <code>--max-size</code>.</p>";
  }
  std::vector<const analysis::Distribution*> shown;
  for (const analysis::Distribution& one : s.distributions->list)
    if (one.count >= kFewest && one.p50_ms > 0) shown.push_back(&one);
  if (shown.empty()) {
    return fmt::format(
        "<p class=missing>No operation ended {} times{}: of fewer a distribution says little.</p>", kFewest,
        s.distributions->whole ? "" : " up to the last minute recorded");
  }
  std::ranges::stable_sort(shown, [](const auto* a, const auto* b) { return spread_of(*a) > spread_of(*b); });
  const std::size_t all = s.distributions->list.size();
  shown.resize(std::min(shown.size(), kShown));
  std::string table =
      "<table><tr><th>operation<th>module<th class=n>count<th class=n>median<th class=n>90 %<th class=n>99 "
      "%<th class=n>largest<th class=n>99 % / median<th>longest 99 % of a rank</tr>";
  for (const auto* one : shown) table += row_html(*one);
  return scrolling(table + "</table>", "how long operations took") +
         source_html(s.distributions->whole, all - shown.size());
}

}  // namespace shardscope::exporter
