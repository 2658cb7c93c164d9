// Memory of one rank over the run, with the composition of its peak.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/analysis/missing_reason.h"
#include "app/analysis/outside_memory.h"
#include "app/export/html_parts.h"
#include "app/store/names.h"

namespace shardscope::exporter {
namespace {

using instrumentation::MemoryCategory;

constexpr std::size_t kColumns = 300;
constexpr double kHeight = 200;

struct CategoryShare {
  MemoryCategory category{};
  std::int64_t bytes = 0;
};

/// Categories with bytes at the peak, largest first.
std::vector<CategoryShare> shares(const store::MemorySample& peak) {
  std::vector<CategoryShare> out;
  for (std::size_t i = 0; i < peak.bytes.size(); ++i) {
    if (peak.bytes[i] > 0) out.push_back({static_cast<MemoryCategory>(i), peak.bytes[i]});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

std::string step_at(const store::Store& store, std::int64_t at_ns) {
  for (const store::StepRow& row : store.steps()) {
    if (at_ns < row.begin_ns) break;
    if (row.end_ns == store::kOpen || at_ns <= row.end_ns) return fmt::format(" in step {}", row.step);
  }
  return {};
}

std::string peak_html(const store::Store& store, const store::MemorySample& peak) {
  std::string out = fmt::format("<p><b>The peak is {}</b>, {} into the run{}. It is made of:</p>",
                                bytes_text(peak.total()), time_text(peak.at_ns), step_at(store, peak.at_ns));
  std::string table = "<table><tr><th>category<th class=n>at the peak<th class=n>share</tr>";
  for (const CategoryShare& one : shares(peak)) {
    table += fmt::format(
        "<tr><td><span class=legend><i class=\"{} {}\"></i></span>{}<td class=n>{}<td class=n>{:.1f} %</tr>",
        colour_of(one.category), static_cast<int>(one.category) % 2 == 0 ? "" : "pale",
        store::name_of(one.category), bytes_text(one.bytes),
        100 * static_cast<double>(one.bytes) / static_cast<double>(peak.total()));
  }
  return out + scrolling(table + "</table>", "memory at the peak by category");
}

std::string model_html(const analysis::Summary& summary) {
  const analysis::MemoryModel& model = summary.memory_model;
  std::string out =
      fmt::format("<p>Model states: {} = {} per rank expected, {}.</p>", escape_html(model.expression),
                  bytes_text(model.bytes_per_rank),
                  model.measured_bytes_per_rank
                      ? fmt::format("{} on rank {} measured at their peak ({})",
                                    bytes_text(*model.measured_bytes_per_rank), model.measured_rank,
                                    number(model.excess_pct, "{:+.2f}", " %"))
                      : "not measured: " + escape_html(analysis::missing_model_states(summary)));
  for (const analysis::MemoryPart& part : model.parts) {
    out += fmt::format("<p>{} of it are {}: {}.</p>", bytes_text(part.bytes), analysis::name_of(part.cause),
                       escape_html(analysis::explain(part.cause)));
  }
  if (model.unexplained_bytes)
    out += fmt::format("<p>{} bytes are unexplained.</p>", *model.unexplained_bytes);
  return out;
}

/// The peak of the rank's outside memory; empty if it was not sampled.
std::string outside_html(const analysis::Summary& summary, std::uint32_t rank) {
  for (const analysis::RankSummary& one : summary.ranks) {
    if (one.rank != rank || !one.outside) continue;
    return fmt::format(
        "<p>Outside memory, in none of these: {} at most, {} into the run, of {} in use: {}.</p>",
        bytes_text(one.outside->bytes), time_text(one.outside->at_ns), bytes_text(one.outside->in_use_bytes),
        analysis::outside_contents(summary.kind, summary.framework, summary.device));
  }
  return {};
}

}  // namespace

std::string memory_html(const store::Store& store, const analysis::Summary& summary, std::uint32_t rank) {
  const auto pool = instrumentation::MemoryPool::device;
  const auto peak = store.memory_peak(rank, pool);
  if (!peak || peak->total() <= 0)
    return "<p class=missing>No memory events were recorded for this rank.</p>" + model_html(summary) +
           outside_html(summary, rank);
  const std::int64_t end = std::max<std::int64_t>(store.end_ns(), 1);
  std::vector<store::MemorySample> columns(kColumns);
  store.memory_columns(rank, pool, 0, end, columns);
  const double top = static_cast<double>(std::max(peak->total(), summary.memory_model.bytes_per_rank)) * 1.05;
  const auto y_of = [&](double bytes) { return kHeight * (1 - bytes / top); };
  const auto x_of = [&](std::size_t column) { return 1000.0 * static_cast<double>(column) / (kColumns - 1); };

  std::array<double, kColumns> base{};
  std::string areas;
  for (std::uint8_t i = 0; i < instrumentation::kMemoryCategoryCount; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    std::int64_t most = 0;
    for (const auto& column : columns) most = std::max(most, column.bytes[i]);
    if (most <= 0) continue;
    std::string upper, lower;
    for (std::size_t c = 0; c < kColumns; ++c) {
      lower = fmt::format("L{:.0f} {:.1f}", x_of(c), y_of(base[c])) + lower;
      base[c] += static_cast<double>(columns[c].bytes[i]);
      upper += fmt::format("{}{:.0f} {:.1f}", c == 0 ? "M" : "L", x_of(c), y_of(base[c]));
    }
    areas += fmt::format(R"(<path d="{}{}Z" class="{}{}"><title>{}: {} at most</title></path>)", upper, lower,
                         colour_of(category), i % 2 == 0 ? "" : " pale", store::name_of(category),
                         bytes_text(most));
  }
  const double expected = y_of(static_cast<double>(summary.memory_model.bytes_per_rank));
  const double peak_x = 100 * static_cast<double>(peak->at_ns) / static_cast<double>(end);
  const double peak_y = 100 * y_of(static_cast<double>(peak->total())) / kHeight;
  std::string out = fmt::format(
      R"(<div class=axes><span class=high>{}</span><span class=low>0</span><svg class=plot viewBox="0 0 1000 {}" preserveAspectRatio=none role=img aria-label="device memory of rank {} over the run: {} at its peak, {} into it; the table below says of what">{}<path class=expression d="M0 {:.1f}H1000"/></svg><i class=peak style="left:{:.2f}%;top:{:.2f}%"></i></div><p class=ends><span>begin of the run</span><span>{}</span></p>)",
      bytes_text(static_cast<std::int64_t>(top)), kHeight, rank, bytes_text(peak->total()),
      time_text(peak->at_ns), areas, expected, peak_x, peak_y, time_text(end));
  out += fmt::format(
      "<p class=legend><span><i class=dashes></i>model states {} = {}</span><span><i "
      "class=dot></i>peak</span></p>",
      escape_html(summary.memory_model.expression), bytes_text(summary.memory_model.bytes_per_rank));
  return out + peak_html(store, *peak) + model_html(summary) + outside_html(summary, rank);
}

}  // namespace shardscope::exporter
