// Chooses steps and ranks of a Kineto export and writes its files.
#include "app/export/kineto.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <stdexcept>

#include "app/analysis/digest.h"
#include "app/export/kineto_rank.h"
#include "app/export/output_file.h"
#include "instrumentation/event_fields.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using analysis::StepWindow;
using ev::EventKind;
using ev::StreamId;
using store::Store;

using Steps = std::vector<StepWindow>;

/// The selected steps of a rank; by default those that the digest measures, as in the summary: the same steps
/// on every rank, and a step whose end was lost extends to the latest possible end.
Steps chosen_steps(const Store& store, std::uint32_t rank, const KinetoOptions& options,
                   const analysis::Digest& digest) {
  Steps out;
  if (!options.steps && options.range == TimeRange()) {
    for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
      const analysis::StepDigest& step = digest.steps()[i];
      for (auto of = std::ranges::lower_bound(step.ranks, rank, {}, &analysis::RankStep::rank);
           of != step.ranks.end() && of->rank == rank; ++of)
        out.push_back({step.step, of->begin_ns, of->end_ns});
    }
    return out;
  }
  store.for_each_span({rank, StreamId::host}, 0, Store::kBegin, Store::kEnd, [&](const store::Span& span) {
    if (span.kind != EventKind::step_begin || span.end_ns == store::kOpen) return;
    const StepWindow window{ev::as<EventKind::step_begin>(span).step, span.begin_ns, span.end_ns};
    const bool in_steps =
        !options.steps || (window.step >= options.steps->first && window.step <= options.steps->second);
    if (in_steps && options.range.overlaps(window.begin_ns, window.end_ns)) out.push_back(window);
  });
  return out;
}

analysis::Digest digest_for(const Store& store, const KinetoOptions& options) {
  analysis::Digest digest;
  if (!options.steps && options.range == TimeRange()) (void)digest.update(store);
  return digest;
}

struct RankFile {
  std::uint32_t rank = 0;
  Steps steps;
  [[nodiscard]] std::string name() const { return "rank_" + std::to_string(rank) + ".json"; }
};

std::string no_such_steps(const Store& store, const std::pair<std::uint32_t, std::uint32_t>& steps) {
  std::string text = "steps " + std::to_string(steps.first) + "-" + std::to_string(steps.second) +
                     ": none of them was recorded to its end";
  if (!store.steps().empty()) {
    const auto [first, last] = std::ranges::minmax(store.steps(), {}, &store::StepRow::step);
    text += "; the recording has " + std::to_string(first.step) + "-" + std::to_string(last.step);
  }
  return text;
}

/// HTA reads every rank file in a folder: files of an earlier export would be attributed to this run.
void refuse_other_ranks(const std::string& folder, const std::vector<RankFile>& files) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool other = name.starts_with("rank_") && name.ends_with(".json") &&
                       std::ranges::none_of(files, [&](const RankFile& file) { return file.name() == name; });
    if (other)
      throw std::runtime_error(
          folder + ": holds " + name +
          " of another export, which tools would read with this one: remove it or choose "
          "another folder");
  }
}

}  // namespace

void write_kineto(std::ostream& out, const Store& store, std::uint32_t rank, const KinetoOptions& options) {
  write_kineto_steps(out, store, rank, chosen_steps(store, rank, options, digest_for(store, options)));
}

std::vector<std::string> write_kineto(const std::string& folder, const Store& store,
                                      const KinetoOptions& options) {
  for (const std::uint32_t rank : options.ranks) {
    const bool known = std::ranges::any_of(store.ranks(), [&](const auto& row) { return row.rank == rank; });
    if (!known) throw std::runtime_error("rank " + std::to_string(rank) + ": is not in the recording");
  }
  const analysis::Digest digest = digest_for(store, options);
  std::vector<RankFile> files;
  for (const store::RankRow& row : store.ranks()) {
    const bool chosen =
        options.ranks.empty() || std::ranges::find(options.ranks, row.rank) != options.ranks.end();
    if (chosen) files.push_back({row.rank, chosen_steps(store, row.rank, options, digest)});
  }
  const bool none = std::ranges::all_of(files, [](const RankFile& file) { return file.steps.empty(); });
  if (none && options.range != TimeRange())
    throw std::runtime_error("no step that was recorded to its end overlaps the chosen range of time");
  if (none && options.steps) throw std::runtime_error(no_such_steps(store, *options.steps));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error(folder + ": cannot make the folder: " + error.message());
  refuse_other_ranks(folder, files);
  std::vector<std::string> written;
  for (const RankFile& of : files) {
    if (options.progress)
      options.progress(static_cast<double>(written.size()) / static_cast<double>(files.size()));
    written.push_back((std::filesystem::path(folder) / of.name()).string());
    OutputFile file(written.back());
    file.write([&](std::ostream& out) { write_kineto_steps(out, store, of.rank, of.steps); });
    file.commit();
  }
  return written;
}

}  // namespace shardscope::exporter
