// Chooses the steps and ranks of the page's timeline, and writes the HTML around it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/export/html_parts.h"
#include "app/store/span_time.h"

namespace shardscope::exporter {
namespace {

constexpr std::size_t kMostRanks = 8;

const analysis::StepDigest* digest_of(const analysis::Digest& digest, std::uint32_t step) {
  for (const analysis::StepDigest& one : digest.steps()) {
    if (one.step == step) return &one;
  }
  return nullptr;
}

}  // namespace

std::vector<ShownStep> shown_steps(const store::Store& store, const analysis::Digest& digest) {
  std::vector<ShownStep> steps;
  for (const store::StepRow& row : store.steps()) {
    if (row.end_ns != store::kOpen && row.end_ns > row.begin_ns)
      steps.push_back(
          {"", row.step, row.begin_ns, row.end_ns, store::time_of(store, row).running_ns, nullptr});
  }
  if (steps.size() > 1) steps.erase(steps.begin());  // warm-up
  if (steps.empty()) return {};
  std::sort(steps.begin(), steps.end(),
            [](const ShownStep& a, const ShownStep& b) { return a.running_ns < b.running_ns; });
  std::vector<ShownStep> shown{steps[steps.size() / 2]};
  shown.front().label = "typical";
  if (steps.back().step != shown.front().step) {
    shown.push_back(steps.back());
    shown.back().label = "longest";
  }
  for (ShownStep& step : shown) step.digest = digest_of(digest, step.step);
  return shown;
}

std::vector<ShownRank> shown_ranks(const analysis::Summary& summary) {
  const auto& ranks = summary.ranks;
  std::map<std::uint32_t, std::string> chosen;
  if (ranks.size() > kMostRanks) {
    const auto add_most = [&](const char* why, auto figure) {
      const auto most = std::max_element(ranks.begin(), ranks.end(),
                                         [&](const auto& a, const auto& b) { return figure(a) < figure(b); });
      const auto least = std::min_element(
          ranks.begin(), ranks.end(), [&](const auto& a, const auto& b) { return figure(a) < figure(b); });
      // Ranks that differ by less than 1 % are not named.
      if (figure(*most) > figure(*least) + figure(*least) / 100) chosen.try_emplace(most->rank, why);
    };
    add_most("others wait for it most", [](const auto& rank) { return rank.others_waited_ns; });
    add_most("computes most", [](const auto& rank) { return rank.time.compute_ns; });
    add_most("most exposed communication", [](const auto& rank) { return rank.time.exposed_comm_ns; });
  }
  // The remaining ones are an even sample that includes the first and the last rank.
  const std::size_t spread = std::min(ranks.size(), kMostRanks - chosen.size());
  for (std::size_t i = 0; i < spread; ++i)
    chosen.try_emplace(ranks[spread > 1 ? i * (ranks.size() - 1) / (spread - 1) : 0].rank, "");
  std::vector<ShownRank> out;
  for (const auto& [rank, why] : chosen)
    out.push_back({rank, fmt::format("rank {}{}{}", rank, why.empty() ? "" : ": ", why)});
  return out;
}

std::string timeline_html(const store::Store& store, const analysis::Summary& summary,
                          const analysis::Digest& digest) {
  const std::vector<ShownStep> steps = shown_steps(store, digest);
  if (!store.has_tables() || steps.empty()) return "<p class=missing>No completed step was recorded.</p>";
  const std::vector<ShownRank> ranks = shown_ranks(summary);
  std::string buttons;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    buttons +=
        fmt::format("<button data-step={} aria-pressed={}>{}: step {}, {}</button>", i,
                    i == 0 ? "true" : "false", steps[i].label, steps[i].step, time_text(steps[i].running_ns));
  }
  std::string out = fmt::format(
      "<div class=tools><span role=group aria-label=\"step\">{}</span><span role=group aria-label=\"zoom\">"
      "<button data-zoom=in aria-label=\"zoom in\">+</button><button data-zoom=out aria-label=\"zoom "
      "out\">−</button>"
      "<button data-zoom=all>whole step</button></span></div>",
      buttons);
  out += fmt::format(
      "<div class=timeline><canvas tabindex=0 role=application aria-label=\"timeline of a step: what the "
      "streams of {} "
      "ranks did. Plus and minus zoom, arrows move, n and p go from span to span, which are read "
      "out.\"></canvas>"
      "<div class=tip hidden></div></div><p class=said aria-live=polite></p>"
      "<noscript><p class=missing>The timeline is drawn by a script of this page, which did not run. Where "
      "the time "
      "goes, the critical path and the ranks are above and below in figures.</p></noscript>",
      ranks.size());
  if (ranks.size() < summary.ranks.size())
    out += fmt::format("<p>{} of the {} ranks: the extremes and an even sample.</p>", ranks.size(),
                       summary.ranks.size());
  return out + "<script type=\"application/json\" id=timeline-data>" + timeline_data(store, steps, ranks) +
         "</script>";
}

}  // namespace shardscope::exporter
