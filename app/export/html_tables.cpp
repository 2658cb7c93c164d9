// Tables of the run, its ranks, and their communication.
#include <fmt/format.h>

#include <algorithm>

#include "app/analysis/missing_reason.h"
#include "app/analysis/zero_settings.h"
#include "app/export/html_parts.h"
#include "app/store/names.h"

namespace shardscope::exporter {
namespace {

/// " (12 of 20 steps)" where figures do not cover all steps.
std::string covered(const analysis::Summary& s, std::uint32_t steps, std::uint32_t all) {
  const std::string text = analysis::coverage(s, steps, all);
  return text.empty() ? text : " (" + text + ")";
}

/// DeepSpeed's eight fetch counters by rank; empty if no rank has them.
std::string fetch_counters_html(const analysis::Summary& s) {
  const bool any = std::any_of(s.ranks.begin(), s.ranks.end(),
                               [](const auto& rank) { return rank.fetch_counters.has_value(); });
  if (!any)
    return s.stage == 3 && analysis::has_fetch_trace(s.kind)
               ? "<p class=missing>Fetch counters were not recorded.</p>"
               : "";
  constexpr std::size_t kPerDirection = plan::kFetchCounters / 2;
  std::string out =
      "<table><tr><th>rank<th>fetches<th class=n>micro-steps<th class=n>fetch_submit<th class=n>elements<th "
      "class=n>fetch_wait<th class=n>elements<th class=n>prefetch_submit<th class=n>elements<th "
      "class=n>all_gather<th "
      "class=n>elements</tr>";
  for (const analysis::RankSummary& rank : s.ranks) {
    if (!rank.fetch_counters) continue;
    for (std::size_t direction = 0; direction < 2; ++direction) {
      out += fmt::format("<tr><td>{}<td>{}<td class=n>{}", rank.rank, direction == 0 ? "forward" : "backward",
                         rank.fetch_counters->micro_steps);
      for (std::size_t i = 0; i < kPerDirection; ++i) {
        const plan::FetchCount& counter = rank.fetch_counters->total[direction * kPerDirection + i];
        out += fmt::format("<td class=n>{}<td class=n>{}", counter.count,
                           count_text(static_cast<double>(counter.elems)));
      }
      out += "</tr>";
    }
  }
  return folded(scrolling(out + "</table>", "fetch counters"), 2 * s.ranks.size(),
                "Fetch counters of all ranks") +
         "<p>What fetches counted, as DeepSpeed counts: elements of fetch_submit and fetch_wait are "
         "those of the "
         "rank's shards with padding, of prefetch_submit and all_gather those of whole parameters.</p>";
}

}  // namespace

std::string identity_html(const store::Store& store, const analysis::Summary& s) {
  std::string out = "<dl>";
  const auto row = [&](const char* name, const std::string& value) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>", name, escape_html(value));
  };
  row("model", fmt::format("{}, {} parameters", s.model, count_text(static_cast<double>(s.params))));
  row("training", fmt::format("{} on {} ranks{}", analysis::partitioning_name(s.kind, s.stage), s.world,
                              analysis::copies_text(s.world, s.copy_ranks)));
  row("device", s.device);
  row("step time",
      number(s.step_ms_median, "{:.2f}", " ms median") + ", " + number(s.step_ms_p95, "{:.2f}", " ms p95"));
  row("throughput", s.tokens_per_s ? count_text(*s.tokens_per_s) + " tokens/s" : "—");
  row("steps", fmt::format("{}, of which {} measured", s.steps, s.steps_measured));
  if (s.kept) row("kept", analysis::text_of(*s.kept));
  if (store.has_tables()) {
    row("hardware", store.tables().hardware);
    row("versions", store.tables().versions);
    row("run", store.tables().run_id);
  }
  row("events", count_text(static_cast<double>(s.events)));
  return out + "</dl>";
}

std::string communication_html(const analysis::Summary& s) {
  std::string out =
      "<table><tr><th rowspan=2>collective<th class=n rowspan=2>count<th class=n rowspan=2>bytes<th class=n "
      "rowspan=2>elements<th class=n colspan=2>transfer alone, GB/s<th class=n colspan=2>with waiting, GB/s"
      "</tr><tr><th class=n>algbw<th class=n>busbw<th class=n>algbw<th class=n>busbw</tr>";
  for (const analysis::OpRow& op : s.ops) {
    out += fmt::format("<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}", store::name_of(op.op),
                       op.count, bytes_text(op.bytes), count_text(static_cast<double>(op.elems)));
    for (const std::optional<double>& value :
         {op.algbw_gbs, op.busbw_gbs, op.algbw_waiting_gbs, op.busbw_waiting_gbs}) {
      out += "<td class=n>" + number(value, "{:.3f}");
    }
    out += "</tr>";
  }
  out = scrolling(out + "</table>", "collectives");
  if (!s.ranks.empty())
    out += fmt::format("<p>Collectives of rank {}{}.</p>", s.ranks.front().rank,
                       covered(s, s.ops_steps, s.steps_measured));
  if (!s.elements_per_step && s.lacking_steps > 0)
    out += "<p class=missing>Elements per step are not known: " +
           analysis::missing_reason(s, "collectives", instrumentation::Detail::modules,
                                    instrumentation::Capability::collectives) +
           ".</p>";
  out += fmt::format("<p>{} elements per rank and step were communicated{}; {} says {}.",
                     s.elements_per_step ? count_text(*s.elements_per_step) : "—",
                     s.elements_per_step ? covered(s, s.elements_steps, s.steps_measured) : "",
                     escape_html(s.comm_expression), count_text(s.expected_elements_per_step));
  for (const analysis::VolumePart& part : s.volume_parts) {
    out += fmt::format("<br>{:+.0f} {}: {}", part.elements_per_step, analysis::name_of(part.cause),
                       analysis::explain(part.cause));
  }
  if (s.unexplained_elements_per_step)
    out += fmt::format("<br>{:.0f} unexplained", *s.unexplained_elements_per_step);
  out += "</p>";
  return out;
}

std::string prefetch_html(const analysis::Summary& s) {
  std::string out;
  if (s.prefetch) {
    const analysis::Prefetch& p = *s.prefetch;
    out += fmt::format(
        "<p>Prefetches of all ranks, all steps{}: {} early, {} just in time, {} late ({} waited), {} "
        "mistargeted, {} unused. ",
        s.stage == 3 ? covered(s, s.prefetch_steps, s.steps) : "", p.early, p.just_in_time, p.late,
        time_text(p.late_wait_ns), p.mistargeted, p.unused);
  } else {
    out += "<p>Prefetches: not known; " +
           analysis::missing_reason(s, "prefetches", instrumentation::Detail::params,
                                    instrumentation::Capability::prefetches) +
           ". ";
  }
  out += s.trace ? fmt::format("Fetch trace of all ranks: {} recording, {} complete, {} invalidated.</p>",
                               s.trace->record, s.trace->complete, s.trace->invalidated)
                 : "Fetch trace: not known; " +
                       analysis::missing_reason(s, "modes of it", instrumentation::Detail::phases,
                                                instrumentation::Capability::trace) +
                       ".</p>";
  if (s.first_invalidation) {
    const analysis::TraceInvalidation& first = *s.first_invalidation;
    out += fmt::format(
        "<p>The trace was first invalidated {} into the run, at trace step {} of rank {}, which {}.</p>",
        time_text(first.at_ns), first.trace_step, first.rank, escape_html(s.first_invalidation_text));
  }
  return out + fetch_counters_html(s);
}

std::string ranks_html(const store::Store& store, const analysis::Summary& s) {
  std::string out =
      "<table><tr><th>rank<th>host<th class=n>overlap<th class=n>compute<th class=n>exposed<th class=n>fetch "
      "wait<th class=n>peak<th "
      "class=n>events<th "
      "class=n>dropped<th class=n>clock offset<th class=n>residual<th class=n>drift</tr>";
  for (const analysis::RankSummary& rank : s.ranks) {
    const auto at = std::find_if(store.ranks().begin(), store.ranks().end(),
                                 [&](const store::RankRow& row) { return row.rank == rank.rank; });
    const auto peak = rank.memory_peak.find(instrumentation::MemoryPool::device);
    out += fmt::format(
        "<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td "
        "class=n>{}<td class=n>{}<td "
        "class=n>{}<td "
        "class=n>±{}<td class=n>{}</tr>",
        rank.rank, escape_html(at->host), number(rank.time.overlap_pct(), "{:.1f}", " %"),
        rank.time.known() ? time_text(rank.time.compute_ns) : std::string("—"),
        rank.time.known() && analysis::exposure_known(s) ? time_text(rank.time.exposed_comm_ns)
                                                         : std::string("—"),
        rank.fetch_wait_ns ? time_text(*rank.fetch_wait_ns) : std::string("—"),
        peak == rank.memory_peak.end() ? "—" : bytes_text(peak->second.total()),
        count_text(static_cast<double>(at->events)), count_text(static_cast<double>(at->dropped)),
        time_text(rank.clock_offset_ns), time_text(rank.clock_residual_ns),
        rank.clock_drift ? analysis::ppm_text(*rank.clock_drift) + " ppm" : "—");
  }
  return folded(scrolling(out + "</table>", "ranks"), s.ranks.size(),
                fmt::format("All {} ranks", s.ranks.size()));
}

}  // namespace shardscope::exporter
