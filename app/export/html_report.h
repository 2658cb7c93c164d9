// One self-contained HTML page of a run: verdict and findings, partition of time, a typical and the longest
// step as an interactive timeline, critical path, stragglers, memory, communication, partition map,
// disclosures. The size of the page is bounded for any number of ranks and steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/analysis/advice.h"
#include "app/analysis/summary.h"
#include "app/export/notes.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// A section of the page: the run compared with another one.
struct ReportComparison {
  analysis::Comparison figures;
  std::string a, b;  ///< the two runs as the reader knows them: "this run", "base.zscope, the baseline"
};

/// Findings after analysis::try_advice(), and what became of their options.
struct ReportFindings {
  std::vector<analysis::Finding> findings;
  analysis::TriedAdvice tried;
};

/// The page as text. `problems`: what is missing or damaged in the recording. `notes`: the user's notes.
/// `findings` (without a prediction) and `digest` (of all steps) are computed here unless the caller passes
/// them.
[[nodiscard]] std::string html_report(const store::Store& store, const analysis::Summary& summary,
                                      const std::vector<std::string>& problems,
                                      const std::optional<ReportComparison>& comparison = std::nullopt,
                                      const std::vector<Note>& notes = {},
                                      const ReportFindings* findings = nullptr,
                                      const analysis::Digest* digest = nullptr);

/// Writes it, whole or not at all (temporary file, then rename). Throws std::runtime_error: path, reason.
void write_html_report(const std::string& path, const store::Store& store, const analysis::Summary& summary,
                       const std::vector<std::string>& problems,
                       const std::optional<ReportComparison>& comparison = std::nullopt,
                       const std::vector<Note>& notes = {}, const ReportFindings* findings = nullptr,
                       const analysis::Digest* digest = nullptr);

}  // namespace shardscope::exporter
