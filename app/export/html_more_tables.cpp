// Tables that only some runs have: stragglers, GPU streams, another scheduler's figures, another run.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/analysis/hang/module_order.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/why_late.h"
#include "app/export/html_parts.h"
#include "app/store/names.h"

namespace shardscope::exporter {

namespace {

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace

std::string stragglers_html(const analysis::Summary& s) {
  constexpr std::size_t kShown = 8;
  std::vector<const analysis::RankSummary*> late;
  for (const analysis::RankSummary& rank : s.ranks) {
    if (rank.others_waited_ns > 0) late.push_back(&rank);
  }
  if (s.ranks.size() < 2 || !s.critical_path) return {};
  if (late.empty()) return "<p>No rank was waited for.</p>";
  std::sort(late.begin(), late.end(),
            [](const auto* a, const auto* b) { return a->others_waited_ns > b->others_waited_ns; });
  const std::size_t all = late.size();
  late.resize(std::min(all, kShown));
  std::string out =
      "<table><tr><th>rank<th class=n>others waited<th class=n>entered last<th class=n>waits itself<th "
      "class=n>bytes "
      "move<th class=n>computes<th>why it was late</tr>";
  for (const auto* rank : late) {
    const auto why = analysis::why_late(s, rank->rank);
    out += fmt::format(
        "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>{}</tr>",
        rank->rank, time_text(rank->others_waited_ns), rank->entered_last, time_text(rank->waiting_ns),
        time_text(rank->moving_ns), time_text(rank->time.compute_ns),
        why ? analysis::text_of(*why) : "\u2014");
  }
  out = scrolling(out + "</table>", "whom others waited for");
  if (const auto why = analysis::why_late(s))
    out += "<p>" + escape_html(capitalized(analysis::text_of(s.late_causes, *why))) + ".</p>";
  if (all > kShown) out += fmt::format("<p>{} ranks more were waited for.</p>", all - kShown);
  return out;
}

std::string links_html(const analysis::Summary& s) {
  constexpr std::size_t kShown = 32;
  const auto other = [&](const analysis::GroupLink& link) { return link.ranks != s.links.front().ranks; };
  if (std::none_of(s.links.begin(), s.links.end(), other)) return {};
  std::string out =
      "<table><tr><th>link: group<th>collective<th class=n>count<th class=n>bytes<th class=n>busbw, GB/s<th "
      "class=n>95 %</tr>";
  for (std::size_t i = 0; i < std::min(kShown, s.links.size()); ++i) {
    const analysis::GroupLink& link = s.links[i];
    out +=
        fmt::format("<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}</tr>",
                    analysis::ranks_text(link.ranks), store::name_of(link.op), link.count,
                    bytes_text(link.bytes), number(link.busbw_gbs, "{:.3f}"),
                    link.interval ? fmt::format("{:.3f} to {:.3f}", link.interval->low, link.interval->high)
                                  : "none: " + escape_html(link.no_interval));
  }
  out = folded(scrolling(out + "</table>", "links by group"), s.links.size(), "Links by group");
  if (s.links.size() > kShown)
    out += fmt::format("<p>{} more: summary --json has all.</p>", s.links.size() - kShown);
  return out +
         "<p>Links, slowest first: median of the latest measured steps, and its interval by blocks of "
         "steps.</p>";
}

std::string gpu_html(const analysis::Summary& s) {
  const bool any = std::any_of(s.ranks.begin(), s.ranks.end(), [](const auto& rank) { return rank.gpu; });
  if (!any) {
    return "<p class=missing>Not recorded: kernels are recorded on CUDA devices, at detail "
           "<code>kernels</code>.</p>";
  }
  std::string out =
      "<table><tr><th>rank<th>stream<th class=n>kernels<th class=n>copies<th class=n>busy<th class=n>launch "
      "to "
      "start (mean)<th class=n>least<th class=n>most<th>idle</tr>";
  for (const analysis::RankSummary& rank : s.ranks) {
    if (!rank.gpu) {
      out +=
          fmt::format("<tr><td>{}<td colspan=8 class=missing>no step is covered by records</tr>", rank.rank);
      continue;
    }
    for (const auto& [lane, stream] : rank.gpu->streams) {
      const bool timed = stream.launches > 0;
      const auto delay = [&](std::int64_t ns) { return timed ? time_text(ns) : std::string("—"); };
      out += fmt::format(
          "<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td "
          "class=n>{}<td>{}</tr>",
          rank.rank, store::name_of(lane), count_text(static_cast<double>(stream.kernels)),
          count_text(static_cast<double>(stream.copies)), time_text(stream.busy_ns),
          delay(timed ? stream.delay_sum_ns / static_cast<std::int64_t>(stream.launches) : 0),
          delay(stream.delay_min_ns), delay(stream.delay_max_ns),
          escape_html(analysis::gap_text(stream.idle_ns, time_text)));
    }
    if (rank.gpu->clock_residual_ns) {
      out += fmt::format("<tr><td>{}<td colspan=8>times are right to ±{} on the rank's clock</tr>", rank.rank,
                         time_text(*rank.gpu->clock_residual_ns));
    }
    if (rank.gpu->dropped + rank.gpu->not_placed + rank.gpu->no_launch > 0) {
      out += fmt::format(
          "<tr><td>{}<td colspan=8>{} records dropped by CUPTI, {} fitted in no lane, {} without their "
          "launch</tr>",
          rank.rank, rank.gpu->dropped, rank.gpu->not_placed, rank.gpu->no_launch);
    }
  }
  return folded(scrolling(out + "</table>", "streams of the GPU"), s.ranks.size(), "Streams of all ranks");
}

std::string scheduling_html(const analysis::Scheduling& scheduling) {
  std::string out = "<p>" + escape_html(scheduling.text()) + ".</p>";
  if (!scheduling.missing.empty() || scheduling.comparison.differences.empty()) return out;
  out += fmt::format(
      "<table><tr><th>scheduler<th class=n>gathers<th class=n>waited for by their own module"
      "<th class=n>elements gathered<th class=n>most elements held</tr>");
  for (const auto& [name, totals] :
       {std::pair{std::string(plan::to_string(scheduling.run)) + " (run)", scheduling.comparison.first},
        {plan::to_string(scheduling.other), scheduling.comparison.second}}) {
    out +=
        fmt::format("<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}</tr>", name,
                    totals.gathers, totals.on_demand, count_text(static_cast<double>(totals.gathered_elems)),
                    count_text(static_cast<double>(totals.peak_elems)));
  }
  out = scrolling(out + "</table>", "schedulers") + "<ul>";
  constexpr std::size_t kAtOnce = 3, kShown = 30;
  const auto& differences = scheduling.comparison.differences;
  for (std::size_t i = 0; i < std::min(kShown, differences.size()); ++i) {
    if (i == kAtOnce) out += "</ul><details><summary>More boundaries at which they differ</summary><ul>";
    out += "<li>" + escape_html(differences[i].text) + "</li>";
  }
  out += "</ul>";
  if (differences.size() > kShown)
    out += fmt::format("<p>{} more: summary --json has all.</p>", differences.size() - kShown);
  if (differences.size() > kAtOnce) out += "</details>";
  if (!scheduling.caveat.empty()) out += "<p>" + escape_html(scheduling.caveat) + "</p>";
  return out;
}

std::string comparison_html(const analysis::Comparison& comparison, const std::string& a,
                            const std::string& b) {
  std::string table =
      "<table><tr><th>median over steps<th class=n>A<th class=n>B<th class=n>change<th>unit</tr>";
  for (const analysis::Difference& row : comparison.metrics) {
    const auto change = row.change();
    const char* const word = !change || std::abs(change->value) < 0.05 ? ""
                             : !row.differs()                          ? " (no significant difference)"
                             : change->better                          ? " (better)"
                                                                       : " (worse)";
    table += fmt::format(
        "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>{}</tr>", escape_html(row.metric),
        analysis::with_spread(row.a, row.spread_a), analysis::with_spread(row.b, row.spread_b),
        change ? fmt::format("{:+.1f} {}{}", change->value, change->points ? "points" : "%", word) : "—",
        escape_html(row.unit));
  }
  std::string out = "<p class=verdict>" + escape_html(comparison.verdict) + "</p>" +
                    fmt::format("<p>A: {}. B: {}.</p>", escape_html(a), escape_html(b)) +
                    scrolling(table + "</table>", "A beside B");
  for (const auto& [side, missing] :
       {std::pair{"A", &comparison.missing_a}, std::pair{"B", &comparison.missing_b}}) {
    for (const std::string& one : *missing)
      out += fmt::format("<p>Missing in {}: {}</p>", side, escape_html(one));
  }
  if (comparison.config_changes.empty())
    return out + "<p>" + escape_html(comparison.no_config_changes) + "</p>";
  out += "<p>Changed configuration keys, from A to B:</p><ul>";
  for (const std::string& change : comparison.config_changes)
    out += "<li><code>" + escape_html(change) + "</code></li>";
  return out + "</ul>";
}

}  // namespace shardscope::exporter
