#include "app/export/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "app/analysis/memory.h"
#include "app/analysis/missing_reason.h"
#include "app/export/html_parts.h"
#include "app/export/html_template.h"
#include "app/export/output_file.h"
#include "app/store/control_text.h"
#include "app/store/gap_text.h"
#include "app/store/names.h"
#include "app/store/span_time.h"
#include "assets/assets.h"
#include "instrumentation/emission_cost.h"

namespace shardscope::exporter {
namespace {

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

/// The rank whose device memory had the largest peak; null where there is no rank.
const analysis::RankSummary* largest_peak(const analysis::Summary& s) {
  const auto total = [](const analysis::RankSummary& rank) {
    const auto at = rank.memory_peak.find(instrumentation::MemoryPool::device);
    return at == rank.memory_peak.end() ? std::int64_t{0} : at->second.total();
  };
  const auto largest = std::max_element(s.ranks.begin(), s.ranks.end(),
                                        [&](const auto& a, const auto& b) { return total(a) < total(b); });
  return largest == s.ranks.end() ? nullptr : &*largest;
}

std::string memory_html(const store::Store& store, const analysis::Summary& s, std::uint32_t rank) {
  std::string body = memory_svg(store, s, rank);
  const analysis::MemoryModel& model = s.memory_model;
  body += fmt::format(
      "<p>Model states: {} = {} per rank expected, {} measured at their peak ({}).</p>",
      escape_html(model.expression), bytes_text(model.bytes_per_rank),
      model.measured_bytes_per_rank
          ? fmt::format("{} on rank {}", bytes_text(*model.measured_bytes_per_rank), model.measured_rank)
          : "—",
      number(model.excess_pct, "{:+.2f}", " %"));
  for (const analysis::MemoryPart& part : model.parts) {
    body += fmt::format("<p>{} of it are {}: {}.</p>", bytes_text(part.bytes), analysis::name_of(part.cause),
                        escape_html(analysis::explain(part.cause)));
  }
  if (model.unexplained_bytes)
    body += fmt::format("<p>{} bytes are unexplained.</p>", *model.unexplained_bytes);
  return body;
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
  const TypicalStep typical = typical_step(store);
  const std::string model = escape_html(s.model);
  const analysis::RankSummary* largest = largest_peak(s);
  return fill_template(assets::report_page,
                       {{"title", fmt::format("{}, ZeRO-{}, {} ranks{}", model, s.stage, s.world,
                                              s.simulated ? " (simulated)" : "")},
                        {"style", std::string(assets::report_style)},
                        {"wait_colour", colour::kWait},
                        {"idle_colour", colour::kIdle},
                        {"heading", fmt::format("{}, ZeRO-{} on {} ranks", model, s.stage, s.world)},
                        {"kind_of_run", std::string(s.simulated ? " · simulated: no rank trained" : "") +
                                            (s.link_gbps > 0 ? " · emulated link" : "")},
                        {"findings", findings_html(analysis::find(store, s))},
                        {"identity", identity(store, s)},
                        {"time_partition", time_partition_svg(s)},
                        {"ranks", ranks_html(store, s)},
                        {"typical_step", std::to_string(typical.step)},
                        {"timeline", timeline_svg(store, typical.begin_ns, typical.end_ns)},
                        {"loss", s.simulated || s.loss.empty() ? "" : loss_svg(s.loss)},
                        {"partition", partition_svg(store)},
                        {"memory_rank", largest != nullptr ? std::to_string(largest->rank) : ""},
                        {"memory", largest != nullptr ? memory_html(store, s, largest->rank) : ""},
                        {"communication", communication_html(s)},
                        {"gpu", gpu_html(s)},
                        {"scheduling", s.scheduling ? scheduling_html(*s.scheduling) : ""},
                        {"disclosures", disclosures(store, s, problems)},
                        {"configuration", escape_html(s.config_json)}});
}

void write_html_report(const std::string& path, const store::Store& store, const analysis::Summary& summary,
                       const std::vector<std::string>& problems) {
  OutputFile file(path);
  file.stream() << html_report(store, summary, problems);
  file.commit();
}

}  // namespace shardscope::exporter
