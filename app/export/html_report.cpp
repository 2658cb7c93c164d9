#include "app/export/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "app/analysis/memory.h"
#include "app/analysis/missing_reason.h"
#include "app/export/html_parts.h"
#include "app/export/output_file.h"
#include "app/store/control_text.h"
#include "app/store/gap_text.h"
#include "app/store/names.h"
#include "app/store/span_time.h"
#include "instrumentation/emission_cost.h"

namespace shardscope::exporter {
namespace {

constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--base:#F4F5F7;--panel:#fff;--line:#D9DDE3;--text:#1B1F26;--muted:#5A6575}
@media(prefers-color-scheme:dark){:root{--base:#14171C;--panel:#1B1F26;--line:#2A303A;--text:#D7DDE6;--muted:#8B95A5}}
*{box-sizing:border-box}body{margin:0;background:var(--base);color:var(--text);font:14px/1.5 Inter,system-ui,sans-serif}
main{max-width:1184px;margin:0 auto;padding:24px 16px 64px}h1{font-size:24px;margin:0 0 4px}h2{font-size:16px;margin:0 0 8px}
section{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:16px;margin:16px 0;overflow-x:auto}
.lead{color:var(--muted);margin:0 0 8px}.verdict{font-size:16px;border-left:4px solid #4DA3FF;padding:4px 12px;margin:12px 0}
.warning{border-color:#E8964A}.error{border-color:#E2555A}svg{display:block;width:100%;min-width:720px;height:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th{color:var(--muted);font-weight:500;text-align:left}
th,td{padding:4px 12px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right;font-family:"JetBrains Mono",ui-monospace,monospace;font-size:13px}
text{font:11px Inter,system-ui,sans-serif;fill:var(--text)}.tick{fill:var(--muted)}.onbar{fill:#14171C}.grid,.rule{stroke:var(--line);stroke-width:1}
.slot{fill:none;stroke:var(--line)}.cell{stroke:var(--panel);stroke-width:.5}.expression{stroke:var(--text);stroke-width:1.4;stroke-dasharray:6 4}
.peak{fill:#E2555A;stroke:var(--panel)}.legend span{white-space:nowrap;margin-right:14px;color:var(--muted)}.legend b{color:var(--text);font-weight:500}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}.missing{color:var(--muted);font-style:italic}
code,pre{font:12px/1.45 "JetBrains Mono",ui-monospace,monospace}pre{overflow-x:auto;margin:8px 0 0}.note{color:var(--muted);font-size:12px;margin:8px 0 0}
dl{display:grid;grid-template-columns:max-content 1fr max-content 1fr;gap:2px 16px;margin:0}dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
)css";

std::string section(const char* title, const std::string& body, const char* note = nullptr) {
  return fmt::format("<section><h2>{}</h2>{}{}</section>\n", title, body,
                     note != nullptr ? fmt::format("<p class=note>{}</p>", note) : std::string());
}

std::string number(const std::optional<double>& value, const char* format, const char* unit = "") {
  return value ? fmt::format(fmt::runtime(format), *value) + unit : std::string("—");
}

/// The measured step whose time is the median: what "typical" means on the page.
struct TypicalStep {
  std::uint32_t step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
};
TypicalStep typical_step(const store::Store& store) {
  std::vector<store::StepRow> rows;
  for (const store::StepRow& row : store.steps()) {
    if (row.end_ns != store::kOpen) rows.push_back(row);
  }
  if (rows.size() > 1) rows.erase(rows.begin());
  if (rows.empty()) return {};
  const auto time = [&](const store::StepRow& row) { return store::time_of(store, row).running_ns; };
  std::nth_element(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2), rows.end(),
                   [&](const auto& a, const auto& b) { return time(a) < time(b); });
  const store::StepRow& middle = rows[rows.size() / 2];
  return {middle.step, middle.begin_ns, middle.end_ns};
}

std::string identity(const store::Store& store, const analysis::Summary& s) {
  std::string out = "<dl>";
  const auto row = [&](const char* name, const std::string& value) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>", name, escape_html(value));
  };
  row("model", fmt::format("{}, {} parameters", s.model, count_text(static_cast<double>(s.params))));
  row("training", fmt::format("{} on {} ranks", analysis::partitioning_name(s.kind, s.stage), s.world));
  row("device", s.device);
  row("step time",
      number(s.step_ms_median, "{:.2f}", " ms median") + ", " + number(s.step_ms_p95, "{:.2f}", " ms p95"));
  row("throughput", s.tokens_per_s ? count_text(*s.tokens_per_s) + " tokens/s" : "—");
  row("steps", fmt::format("{}, of which {} measured", s.steps, s.steps_measured));
  if (store.has_tables()) {
    row("hardware", store.tables().hardware);
    row("versions", store.tables().versions);
    row("run", store.tables().run_id);
  }
  row("events", count_text(static_cast<double>(s.events)));
  return out + "</dl>";
}

std::string findings_html(const std::vector<analysis::Finding>& findings) {
  if (findings.empty()) return "<p class=verdict>Nothing stands out in this run.</p>";
  std::string out;
  for (const analysis::Finding& finding : findings) {
    std::string more;
    if (finding.cost_ms) more += fmt::format("<br>Cost: {:.1f} ms of a step", *finding.cost_ms);
    if (finding.cost_once_ms) more += fmt::format("<br>Cost: {:.0f} ms once", *finding.cost_once_ms);
    for (const std::string& follower : finding.explains) more += "<br>Explains: " + escape_html(follower);
    std::string changes;
    for (const analysis::Change& change : finding.changes)
      changes += fmt::format("<br><code>{}={}</code>", escape_html(change.key), escape_html(change.value));
    out +=
        fmt::format("<div class=\"verdict {}\"><b>{}</b><br>{}{}<br><span class=lead>Next: {}</span>{}</div>",
                    store::name_of(finding.severity), escape_html(finding.title),
                    escape_html(finding.evidence), more, escape_html(finding.next_step), changes);
  }
  return out;
}

/// DeepSpeed's eight counters by rank; nothing where no fetches are counted.
std::string fetch_counters_html(const analysis::Summary& s) {
  const bool any = std::any_of(s.ranks.begin(), s.ranks.end(),
                               [](const auto& rank) { return rank.fetch_counters.has_value(); });
  if (!any)
    return s.stage == 3 && s.kind != analysis::Framework::fsdp2
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
  return out +
         "</table><p>What fetches counted, as DeepSpeed counts: elements of fetch_submit and fetch_wait are "
         "those of the "
         "rank's shards with padding, of prefetch_submit and all_gather those of whole parameters.</p>";
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
  out += "</table>";
  const auto covered = [&](std::uint32_t steps, std::uint32_t all) {
    const std::string text = analysis::coverage(s, steps, all);
    return text.empty() ? text : " (" + text + ")";
  };
  if (!s.ranks.empty())
    out += fmt::format("<p>Collectives of rank {}{}.</p>", s.ranks.front().rank,
                       covered(s.ops_steps, s.steps_measured));
  if (!s.elements_per_step && s.lacking_steps > 0)
    out += "<p class=missing>Elements per step are not known: " +
           analysis::missing_reason(s, "collectives", instrumentation::Detail::modules,
                                    instrumentation::Capability::collectives) +
           ".</p>";
  out += fmt::format("<p>{} elements per rank and step were communicated{}; {} says {}.",
                     s.elements_per_step ? count_text(*s.elements_per_step) : "—",
                     s.elements_per_step ? covered(s.elements_steps, s.steps_measured) : "",
                     escape_html(s.comm_expression), count_text(s.expected_elements_per_step));
  for (const analysis::VolumePart& part : s.volume_parts) {
    out += fmt::format("<br>{:+.0f} {}: {}", part.elements_per_step, analysis::name_of(part.cause),
                       analysis::explain(part.cause));
  }
  if (s.unexplained_elements_per_step)
    out += fmt::format("<br>{:.0f} unexplained", *s.unexplained_elements_per_step);
  out += "</p>";
  if (s.prefetch) {
    const analysis::Prefetch& p = *s.prefetch;
    out += fmt::format(
        "<p>Prefetches of all ranks, all steps{}: {} early, {} just in time, {} late ({} waited), {} "
        "mistargeted, {} unused. ",
        s.stage == 3 ? covered(s.prefetch_steps, s.steps) : "", p.early, p.just_in_time, p.late,
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

/// The GPU's streams, how long launches waited, and why streams stood still.
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
  return out + "</table>";
}

/// Totals of the two schedulers and the first boundaries at which they part.
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
  out += "</table><ul>";
  constexpr std::size_t kShown = 30;
  const auto& differences = scheduling.comparison.differences;
  for (std::size_t i = 0; i < std::min(kShown, differences.size()); ++i) {
    out += "<li>" + escape_html(differences[i].text) + "</li>";
  }
  out += "</ul>";
  if (differences.size() > kShown) {
    out += fmt::format("<p>{} more: summary --json has all.</p>", differences.size() - kShown);
  }
  if (!scheduling.caveat.empty()) out += "<p>" + escape_html(scheduling.caveat) + "</p>";
  return out;
}

std::string ranks_html(const store::Store& store, const analysis::Summary& s) {
  std::string out =
      "<table><tr><th>rank<th>host<th class=n>overlap<th class=n>fetch wait<th class=n>peak<th "
      "class=n>events<th "
      "class=n>dropped<th class=n>clock offset<th class=n>residual<th class=n>drift</tr>";
  for (const analysis::RankSummary& rank : s.ranks) {
    const auto at = std::find_if(store.ranks().begin(), store.ranks().end(),
                                 [&](const store::RankRow& row) { return row.rank == rank.rank; });
    const auto peak = rank.memory_peak.find(instrumentation::MemoryPool::device);
    out += fmt::format(
        "<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td "
        "class=n>{}<td "
        "class=n>±{}<td class=n>{}</tr>",
        rank.rank, escape_html(at->host), number(rank.time.overlap_pct(), "{:.1f}", " %"),
        rank.fetch_wait_ns ? time_text(*rank.fetch_wait_ns) : std::string("—"),
        peak == rank.memory_peak.end() ? "—" : bytes_text(peak->second.total()),
        count_text(static_cast<double>(at->events)), count_text(static_cast<double>(at->dropped)),
        time_text(rank.clock_offset_ns), time_text(rank.clock_residual_ns),
        rank.clock_drift ? analysis::ppm_text(*rank.clock_drift) + " ppm" : "—");
  }
  return out + "</table>";
}

std::string disclosures(const store::Store& store, const analysis::Summary& s,
                        const std::vector<std::string>& problems) {
  std::vector<std::string> lines;
  if (s.simulated) lines.emplace_back("This run was simulated: times are those of a cost model.");
  if (s.link_gbps > 0) {
    lines.push_back(
        fmt::format("Emulated link: every collective was held for at least {} µs + bytes at {} Gbit/s.",
                    s.link_latency_us, s.link_gbps));
  }
  lines.push_back(s.losses.any() ? "Events: " + store::text_of(s.losses) + "."
                                 : std::string("No event was dropped and no message lost."));
  std::size_t shown = 0;
  for (const store::Gap& gap : store.gaps()) {
    ++shown;
    lines.push_back(fmt::format("Rank {}: missing between {} and {}: {}.", gap.rank, time_text(gap.begin_ns),
                                time_text(gap.end_ns), store::what_is_missing(gap)));
    if (lines.size() > 24) {
      lines.push_back(fmt::format("... and {} gaps more.", store.gaps().size() - shown));
      break;
    }
  }
  for (const std::string& line : store::control_lines(store.messages()))
    lines.push_back("Control: " + line + ".");
  for (const store::Message& message : store.messages()) {
    if (instrumentation::is_about_profiling(message.text))
      lines.push_back(fmt::format("Rank {}, {}", message.rank, message.text));
  }
  for (const std::string& problem : problems) lines.push_back("Recording: " + problem);
  std::string out = "<ul>";
  for (const std::string& line : lines) out += "<li>" + escape_html(line) + "</li>";
  return out + "</ul>";
}

}  // namespace

std::string html_report(const store::Store& store, const analysis::Summary& s,
                        const std::vector<std::string>& problems) {
  const auto findings = analysis::find(store, s);
  const TypicalStep typical = typical_step(store);
  std::string page = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">"
      "<title>{0}, ZeRO-{1}, {2} ranks{6} - Shardscope</title><style>{3}</style>"
      "<svg width=0 height=0 style=\"position:absolute;min-width:0\"><defs><pattern id=wait width=5 height=5 "
      "patternUnits=userSpaceOnUse patternTransform=\"rotate(45)\"><rect width=5 height=5 fill=\"{4}\" "
      "opacity=.35 />"
      "<rect width=2.4 height=5 fill=\"{4}\"/></pattern><pattern id=pause width=8 height=8 "
      "patternUnits=userSpaceOnUse patternTransform=\"rotate(45)\"><rect width=8 height=8 fill=\"{7}\" "
      "opacity=.85 /><rect width=1.5 height=8 fill=\"#5A6575\"/></pattern><pattern id=unrecorded width=5 "
      "height=5 "
      "patternUnits=userSpaceOnUse patternTransform=\"rotate(45)\"><rect width=2 height=5 fill=\"#8B95A5\"/>"
      "</pattern></defs></svg>"
      "<main><h1>{0}, ZeRO-{1} on {2} ranks</h1><p class=lead>Shardscope run report{5}</p>",
      escape_html(s.model), s.stage, s.world, kStyle, colour::kWait,
      std::string(s.simulated ? " · simulated: no rank trained" : "") +
          (s.link_gbps > 0 ? " · emulated link" : ""),
      s.simulated ? " (simulated)" : "", colour::kIdle);
  page += section("Verdict", findings_html(findings));
  page += section("Run", identity(store, s));
  page +=
      section("Where the time goes", time_partition_svg(s),
              "total = compute + exposed communication + exposed copies + checkpoint + idle + unrecorded, "
              "unions of intervals over the measured steps, pauses cut out. Unrecorded: events are missing "
              "or were not emitted at the detail that was set; the other parts, overlap and fetch wait are "
              "of what was recorded. Exposed is not blocking: the fetch "
              "waits below say what compute waited for.");
  page += section("Ranks", ranks_html(store, s),
                  "overlap = 100 (1 - exposed communication / communication). ± is the largest bound on the "
                  "clock's error in the run.");
  page += section(fmt::format("Timeline of a typical step ({})", typical.step).c_str(),
                  timeline_svg(store, typical.begin_ns, typical.end_ns),
                  "The step with the median time. Blue: compute; teal: all-gather; orange: reduce; yellow: "
                  "optimizer; hatched "
                  "red: waiting; hatched grey: paused by the user, in no duration. Hover for names, bytes "
                  "and durations.");
  if (!s.loss.empty() && !s.simulated)
    page += section("Loss", loss_svg(s.loss), "Mean over ranks and micro-steps, by step.");
  page += section("Partition map", partition_svg(store),
                  "Elements in parameter order from left to right; each box is the part of one parameter "
                  "that the rank owns. Teal: persistent.");
  if (!s.ranks.empty()) {
    const auto worst = std::max_element(s.ranks.begin(), s.ranks.end(), [](const auto& a, const auto& b) {
      const auto total = [](const analysis::RankSummary& rank) {
        const auto at = rank.memory_peak.find(instrumentation::MemoryPool::device);
        return at == rank.memory_peak.end() ? std::int64_t{0} : at->second.total();
      };
      return total(a) < total(b);
    });
    std::string body = memory_svg(store, s, worst->rank);
    const analysis::MemoryModel& model = s.memory_model;
    body += fmt::format(
        "<p>Model states: {} = {} per rank expected, {} measured at their peak ({}).</p>",
        escape_html(model.expression), bytes_text(model.bytes_per_rank),
        model.measured_bytes_per_rank
            ? fmt::format("{} on rank {}", bytes_text(*model.measured_bytes_per_rank), model.measured_rank)
            : "—",
        number(model.excess_pct, "{:+.2f}", " %"));
    for (const analysis::MemoryPart& part : model.parts) {
      body += fmt::format("<p>{} of it are {}: {}.</p>", bytes_text(part.bytes),
                          analysis::name_of(part.cause), escape_html(analysis::explain(part.cause)));
    }
    if (model.unexplained_bytes)
      body += fmt::format("<p>{} bytes are unexplained.</p>", *model.unexplained_bytes);
    page += section(fmt::format("Memory of rank {}", worst->rank).c_str(), body,
                    "Device pool, as requested from the arenas; the rank with the largest peak.");
  }
  page += section(
      "Communication", communication_html(s),
      "bytes: full tensors (nccl-tests); algbw = bytes / time. Transfer alone: from the last arrival to "
      "the end, the least over ranks (from the begin where the last arrival was not recorded); with waiting: "
      "begin to end, mean over ranks, what the operation cost. busbw = algbw x "
      "2(n-1)/n for "
      "all-reduce, (n-1)/n for all-gather and reduce-scatter; GB = 10^9 bytes. The table is of one rank over "
      "the measured steps.");
  page +=
      section("Streams of the GPU", gpu_html(s),
              "From the driver's own records (CUPTI) over the measured steps that they cover. busy + idle = "
              "time of these steps. Host late: the host had not launched what came next; queued: launched, "
              "launch latency or a wait for another stream that is not recorded; nothing to do: computation "
              "went on or waited for another stream.");
  if (s.scheduling) {
    page +=
        section("Fetch decisions beside another scheduler's", scheduling_html(*s.scheduling),
                "Computed, not measured: an iteration of both in the recorded order of modules, with this "
                "run's limits and a complete trace.");
  }
  page += section("What to know about these figures", disclosures(store, s, problems));
  page += section("Configuration", "<pre>" + escape_html(s.config_json) + "</pre>");
  return page + "</main></html>\n";
}

void write_html_report(const std::string& path, const store::Store& store, const analysis::Summary& summary,
                       const std::vector<std::string>& problems) {
  OutputFile file(path);
  file.stream() << html_report(store, summary, problems);
  file.commit();
}

}  // namespace shardscope::exporter
