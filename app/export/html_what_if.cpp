// The report's table of what-if: the options of findings, played as `findings` plays them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/export/html_parts.h"

namespace shardscope::exporter {
namespace {

using analysis::PlayOutcome;
using analysis::TriedAdvice;
using analysis::TriedOption;

std::string sets_html(const std::vector<analysis::Change>& changes) {
  std::string out;
  for (const analysis::Change& change : changes)
    out += fmt::format("{}<code>{}={}</code>", out.empty() ? "" : "<br>", escape_html(change.key),
                       escape_html(change.value));
  return out;
}

/// Of the device, or of what a replay knows of it.
std::int64_t bytes_of(const PlayOutcome& one) { return one.peak_bytes > 0 ? one.peak_bytes : one.held_bytes; }

std::string memory_cell(const PlayOutcome& one) {
  return bytes_of(one) > 0 ? bytes_text(bytes_of(one)) : std::string("\u2014");
}

std::string title_of(const std::vector<analysis::Finding>& findings, const std::string& id) {
  const auto at = std::ranges::find(findings, id, &analysis::Finding::id);
  return at != findings.end() ? at->title : id;
}

/// Step, its change and memory; dashes where nothing is predicted.
std::string figures_html(const PlayOutcome& recorded, const PlayOutcome& one) {
  if (!one.refused.empty()) return "<td class=n>\u2014<td class=n>\u2014<td class=n>\u2014";
  const double change = recorded.step_ms > 0 ? 100 * (one.step_ms / recorded.step_ms - 1) : 0;
  // Added to 0, so that nothing is not "-0.0".
  return fmt::format("<td class=n>{:.2f} ms<td class=n>{:+.1f} %<td class=n>{}", one.step_ms,
                     std::round(10 * change) / 10 + 0.0, memory_cell(one));
}

std::string option_html(const TriedAdvice& tried, const TriedOption& option) {
  std::string out =
      "<tr>" + figures_html(tried.recorded, option.outcome) + "<td>" + sets_html(option.changes);
  if (option.advised) out += "<br><b>advised</b>";
  if (!option.outcome.refused.empty())
    out += "<br><span class=missing>not predicted: " + escape_html(option.outcome.refused) + "</span>";
  return out + "</tr>";
}

/// What the figures are of, and how sure they are.
std::string basis_html(const TriedAdvice& tried) {
  const PlayOutcome& recorded = tried.recorded;
  if (!recorded.refused.empty()) return {};
  std::string out = fmt::format("<p>The recorded settings: a step of {:.2f} ms", recorded.step_ms);
  if (bytes_of(recorded) > 0) out += fmt::format(", {}", bytes_text(bytes_of(recorded)));
  if (recorded.peak_bytes > 0) out += " at the peak of a rank's device, which is the column memory";
  if (recorded.peak_bytes <= 0 && recorded.held_bytes > 0)
    out +=
        " of model states and gathered parameters of a rank, which are the column memory: the device's peak "
        "is "
        "not predicted";
  if (recorded.model_error_pct)
    out += fmt::format(
        ". The model's error: played with the recorded settings a step is {:+.1f} % off the "
        "recorded one",
        *recorded.model_error_pct);
  return out + ".</p>";
}

}  // namespace

std::string what_if_html(const TriedAdvice& tried, const std::vector<analysis::Finding>& findings) {
  if (tried.options.empty()) return {};
  std::string table =
      "<table class=options><tr><th class=n>step<th class=n>change<th class=n>memory<th>settings</tr>";
  std::string last;
  for (const TriedOption& option : tried.options) {
    if (option.finding != last)
      table += "<tr><th class=group colspan=4 scope=rowgroup>" +
               escape_html(title_of(findings, option.finding)) + "</tr>";
    table += option_html(tried, option);
    last = option.finding;
  }
  return basis_html(tried) + folded(scrolling(table + "</table>", "what-if of the findings' options"),
                                    tried.options.size(),
                                    fmt::format("All {} options of the findings", tried.options.size()));
}

}  // namespace shardscope::exporter
