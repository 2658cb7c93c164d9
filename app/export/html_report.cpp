#include "app/export/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "app/analysis/advice.h"
#include "app/analysis/digest.h"
#include "app/analysis/framework.h"
#include "app/analysis/memory.h"
#include "app/export/html_parts.h"
#include "app/export/html_template.h"
#include "app/export/output_file.h"
#include "app/store/control_text.h"
#include "app/store/gap_text.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "assets/assets.h"
#include "instrumentation/emission_cost.h"

namespace shardscope::exporter {
namespace {

constexpr std::size_t kMostLines = 24;  ///< lines of one kind among the disclosures

/// The figures that users look for first.
std::string key_figures_html(const analysis::Summary& s, const std::optional<analysis::DevicePeak>& largest) {
  std::string out = "<dl class=key>";
  const auto figure = [&](const char* name, const std::string& value, const std::string& more) {
    out += fmt::format("<div><dt>{}</dt><dd>{}{}</dd></div>", name, value,
                       more.empty() ? "" : "<small>" + more + "</small>");
  };
  figure("step time", number(s.step_ms_median, "{:.2f}", " ms"), number(s.step_ms_p95, "{:.2f}", " ms p95"));
  figure("throughput", s.tokens_per_s ? count_text(*s.tokens_per_s) : "—", "tokens/s");
  analysis::TimePartition all;
  for (const analysis::RankSummary& rank : s.ranks) {
    if (rank.time.known()) all.add(rank.time);
  }
  const bool known = all.known() && all.total_ns > 0;
  const auto share = [&](std::int64_t part) {
    return known
               ? fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(all.total_ns))
               : "—";
  };
  figure("exposed communication", share(all.exposed_comm_ns), "of the time, all ranks");
  figure("overlap", number(known ? all.overlap_pct() : std::nullopt, "{:.1f}", " %"), "of communication");
  figure("peak memory", largest ? bytes_text(largest->sample->total()) : "—",
         largest ? fmt::format("rank {}", largest->rank->rank) : "");
  if (s.efficiency && s.efficiency->mfu_pct)
    figure("MFU", fmt::format("{:.1f} %", *s.efficiency->mfu_pct),
           number(s.efficiency->tflops_per_rank, "{:.3g}", " TFLOP/s"));
  if (s.energy && s.energy->tokens_per_joule)
    figure("tokens per joule", fmt::format("{:.3g}", *s.energy->tokens_per_joule),
           fmt::format("at {:.0f} W of all GPUs", s.energy->watts));
  return out + "</dl>";
}

/// "Seen at 1.234 s, in step 12, on rank 3.": where to look in the window, and in the timeline below if it
/// has the step.
std::string place_html(const store::Store& store, const analysis::Finding& finding) {
  std::string out;
  if (finding.at_ns > 0) {
    out = "Seen at " + store::seconds_text(finding.at_ns);
    const auto steps = store.steps();
    const auto after = std::ranges::upper_bound(steps, finding.at_ns, {}, &store::StepRow::begin_ns);
    if (after != steps.begin() && std::prev(after)->end_ns > finding.at_ns)
      out += fmt::format(", in step {}", std::prev(after)->step);
  }
  if (finding.rank != instrumentation::kNoId)
    out += fmt::format("{}on rank {}", out.empty() ? "Seen " : ", ", finding.rank);
  return out.empty() ? out : "<br>" + out + ".";
}

std::string findings_html(const store::Store& store, const std::vector<analysis::Finding>& findings) {
  if (findings.empty()) return "<p class=verdict>Nothing stands out in this run.</p>";
  std::string out;
  for (const analysis::Finding& finding : findings) {
    std::string cost;
    if (finding.cost_ms) cost += fmt::format("<span>{:.1f} ms of a step</span>", *finding.cost_ms);
    if (finding.cost_once_ms) cost += fmt::format("<span>{:.0f} ms once</span>", *finding.cost_once_ms);
    if (finding.cost_bytes) cost += fmt::format("<span>{}</span>", analysis::bytes_cost_text(finding));
    if (!cost.empty()) cost = "<p class=cost>Cost: " + cost + "</p>";
    std::string more = place_html(store, finding);
    for (const std::string& follower : finding.explains) more += "<br>Explains: " + escape_html(follower);
    std::string changes;
    for (const analysis::Change& change : finding.changes)
      changes += fmt::format("<br><code>{}={}</code>", escape_html(change.key), escape_html(change.value));
    if (const std::string gain = analysis::gain_text(finding); !gain.empty())
      changes += "<br>Gain: " + escape_html(gain);
    out += fmt::format(
        "<div class=\"verdict {}\"><h3><span class=severity>{}</span> {}</h3>{}<p>{}{}</p><p "
        "class=lead>Next: {}{}</p></div>",
        store::name_of(finding.severity), store::name_of(finding.severity), escape_html(finding.title), cost,
        escape_html(finding.evidence), more, escape_html(finding.next_step), changes);
  }
  return out;
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
    if (lines.size() > kMostLines) {
      lines.push_back(fmt::format("... and {} gaps more.", store.gaps().size() - shown));
      break;
    }
  }
  std::vector<std::string> control, profiling, recording;
  for (const std::string& line : store::control_lines(store.messages()))
    control.push_back("Control: " + line + ".");
  for (const store::Message& message : store.messages()) {
    if (instrumentation::is_about_profiling(message.text))
      profiling.push_back(fmt::format("Rank {}, {}", message.rank, message.text));
  }
  for (const std::string& problem : problems) recording.push_back("Recording: " + problem);
  for (const auto& [what, found] : {std::pair{"lines about control", &control},
                                    std::pair{"ranks' lines about the cost of profiling", &profiling},
                                    std::pair{"problems of the recording", &recording}}) {
    const std::size_t most = std::min(found->size(), kMostLines);
    lines.insert(lines.end(), found->begin(), found->begin() + static_cast<std::ptrdiff_t>(most));
    if (found->size() > most)
      lines.push_back(fmt::format("... and {} {} more: `info` has them.", found->size() - most, what));
  }
  std::string out = "<ul>";
  for (const std::string& line : lines) out += "<li>" + escape_html(line) + "</li>";
  return out + "</ul>";
}

}  // namespace

std::string html_report(const store::Store& store, const analysis::Summary& s,
                        const std::vector<std::string>& problems,
                        const std::optional<ReportComparison>& comparison, const std::vector<Note>& notes,
                        const ReportFindings* findings, const analysis::Digest* given) {
  const std::string model = escape_html(s.model);
  const std::string partitioning = analysis::partitioning_name(s.kind, s.stage);
  const auto largest = analysis::largest_device_peak(s);
  const analysis::RankSummary* const shown = largest           ? largest->rank
                                             : s.ranks.empty() ? nullptr
                                                               : &s.ranks.front();
  const analysis::Digest made = given == nullptr ? analysis::digest_of(store) : analysis::Digest();
  const analysis::Digest& digest = given != nullptr ? *given : made;
  const std::vector<analysis::Finding> found =
      findings == nullptr ? analysis::find(store, s, digest) : std::vector<analysis::Finding>();
  const std::vector<analysis::Finding>& of_run = findings != nullptr ? findings->findings : found;
  return fill_template(
      assets::report_page,
      {{"title",
        fmt::format("{}, {}, {} ranks{}", model, partitioning, s.world, s.simulated ? " (simulated)" : "")},
       {"style", std::string(assets::report_style)},
       {"script", std::string(assets::report_script)},
       {"heading", fmt::format("{}, {} on {} ranks", model, partitioning, s.world)},
       {"kind_of_run", std::string(s.simulated ? " · simulated: no rank trained" : "") +
                           (s.link_gbps > 0 ? " · emulated link" : "")},
       {"key_figures", key_figures_html(s, largest)},
       {"findings", findings_html(store, of_run)},
       {"what_if", findings != nullptr ? what_if_html(findings->tried, of_run) : ""},
       {"notes", notes_html(store, notes)},
       {"comparison", comparison ? comparison_html(comparison->figures, comparison->a, comparison->b) : ""},
       {"identity", identity_html(store, s)},
       {"time_partition", time_partition_html(s)},
       {"timeline", timeline_html(store, s, digest)},
       {"critical_path", critical_path_html(s)},
       {"stragglers", stragglers_html(s)},
       {"ranks", ranks_html(store, s)},
       {"loss", s.simulated || s.loss.empty() ? "" : loss_html(s.loss, s.eval_loss)},
       {"partition", partition_html(store)},
       {"memory_rank", shown != nullptr ? std::to_string(shown->rank) : ""},
       {"memory", shown != nullptr ? memory_html(store, s, shown->rank) : ""},
       {"communication", communication_html(s) + links_html(s)},
       {"distributions", distributions_html(s)},
       {"prefetch", prefetch_html(s)},
       {"gpu", gpu_html(s)},
       {"scheduling", s.scheduling ? scheduling_html(*s.scheduling) : ""},
       {"disclosures", disclosures(store, s, problems)},
       {"configuration", escape_html(s.config_json)}});
}

void write_html_report(const std::string& path, const store::Store& store, const analysis::Summary& summary,
                       const std::vector<std::string>& problems,
                       const std::optional<ReportComparison>& comparison, const std::vector<Note>& notes,
                       const ReportFindings* findings, const analysis::Digest* digest) {
  OutputFile file(path);
  file.stream() << html_report(store, summary, problems, comparison, notes, findings, digest);
  file.commit();
}

}  // namespace shardscope::exporter
