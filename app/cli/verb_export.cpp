// `export`: a recording in the formats of other tools.
#include "app/cli/verb_export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/rank_list.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/export/chrome.h"
#include "app/export/csv.h"
#include "app/export/kineto.h"
#include "app/export/otlp.h"
#include "app/export/part.h"
#include "app/export/perfetto.h"
#include "app/export/span_walk.h"
#include "app/export/sqlite.h"
#include "app/store/wall_clock.h"
#include "runtime/base/build_facts.h"

namespace shardscope::cli {
namespace {

/// A progress line on a terminal; nothing elsewhere.
class ExportProgress {
 public:
  explicit ExportProgress(std::string out) : out_(std::move(out)), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~ExportProgress() {
    if (drawn_) say(stderr, "\r\x1b[K");
  }
  ExportProgress(const ExportProgress&) = delete;
  ExportProgress& operator=(const ExportProgress&) = delete;
  void at(double share) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
    last_ = now;
    drawn_ = true;
    say(stderr, "\r\x1b[K{}", export_progress_line(out_, share));
    std::fflush(stderr);
  }

 private:
  std::string out_;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

exporter::TimeRange range_of(const store::Store& store, const ExportChoice& choice,
                             exporter::TimeRange range = {}) {
  if (!choice.from.empty()) range.from_ns = time_of("--from", choice.from);
  if (!choice.to.empty()) range.to_ns = time_of("--to", choice.to);
  if (range.to_ns <= 0) throw UserError(fmt::format("--to {}: nothing lies before it", choice.to), 2);
  if (range.from_ns >= range.to_ns)
    throw UserError(fmt::format("--from {} --to {}: nothing lies between", choice.from, choice.to), 2);
  if (range.from_ns != store::Store::kBegin && range.from_ns > store.end_ns())
    throw UserError(fmt::format("--from {}: the recording ends at {} s", choice.from,
                                static_cast<double>(store.end_ns()) / 1e9));
  return range;
}

instrumentation::Detail detail_of(const ExportChoice& choice) {
  const std::vector<std::string> levels = detail_names();
  if (choice.detail.empty()) return instrumentation::Detail::kernels;
  return static_cast<instrumentation::Detail>(std::ranges::find(levels, choice.detail) - levels.begin());
}

void write_otlp(const store::Store& store, const std::string& recording,
                const std::vector<std::string>& problems, const ExportChoice& choice,
                const std::function<void(double)>& progress) {
  const exporter::OtlpOptions options{.ranks = ranks_of(store, choice.ranks),
                                      .steps = steps_of(choice.steps),
                                      .range = range_of(store, choice),
                                      .detail = detail_of(choice),
                                      .progress = progress,
                                      .unix_offset_ns = store::unix_offset_ns(recording),
                                      .version = base::version(),
                                      .problems = problems};
  exporter::write_otlp(choice.out, store, options);
  if (!options.unix_offset_ns)
    say(stderr, "shardscope: {}: when the run was is not recorded; its times are from 1970-01-01 on\n",
        recording);
}

exporter::ExportPart part_of(const store::Store& store, const ExportChoice& choice) {
  exporter::ExportPart part;
  part.ranks = ranks_of(store, choice.ranks);
  const auto steps = steps_of(choice.steps);
  if (steps && !exporter::choose_steps(store, steps->first, steps->second, part))
    throw UserError(
        fmt::format("--steps {}-{}: none of them is in the recording", steps->first, steps->second));
  part.range = range_of(store, choice, part.range);
  part.detail = detail_of(choice);
  return part;
}

/// Adds messages for readers who only have the export: problems of the recording, and whether this is a part
/// of it. `ranks`: those whose messages they become; a file of one rank has only that rank's.
void add_export_notes(store::Store& store, const std::vector<std::string>& problems,
                      const ExportChoice& choice, const exporter::ExportPart& part,
                      const std::vector<std::uint32_t>& ranks) {
  std::string of_part;
  if (!part.whole()) {
    of_part = "export: a part of the recording:";
    for (const auto& [name, value] :
         {std::pair("ranks", choice.ranks), std::pair("steps", choice.steps), std::pair("from", choice.from),
          std::pair("to", choice.to), std::pair("detail", choice.detail)}) {
      if (!value.empty()) of_part += fmt::format(" --{} {}", name, value);
    }
  }
  for (const std::uint32_t rank : ranks) {
    const exporter::TimeRange range = part.of(rank);
    store::Message message{
        .at_ns = range.from_ns != store::Store::kBegin ? range.from_ns
                 : range.to_ns != store::Store::kEnd   ? 0
                                                       : store.end_ns(),
        .rank = rank,
        .severity = instrumentation::Severity::error,
        .text = {},
    };
    for (const std::string& problem : problems) {
      message.text = "recording: " + problem;
      store.add_message(message);
    }
    if (of_part.empty()) continue;
    message.severity = instrumentation::Severity::info;
    message.text = of_part;
    store.add_message(message);
  }
}

/// The ranks that get messages about the export: one in it, or each where each has a file.
std::vector<std::uint32_t> speakers(const store::Store& store, const ExportChoice& choice) {
  std::vector<std::uint32_t> ranks = ranks_of(store, choice.ranks);
  if (choice.format != "kineto") return {ranks.empty() ? 0 : ranks.front()};
  if (ranks.empty()) {
    for (const store::RankRow& rank : store.ranks()) ranks.push_back(rank.rank);
  }
  return ranks;
}

}  // namespace

std::string export_progress_line(const std::string& out, double share) {
  return fmt::format("writing {}  {:.0f} %", out, 100 * std::clamp(share, 0.0, 1.0));
}

const std::vector<std::string>& export_formats() {
  static const std::vector<std::string> kFormats{"chrome", "perfetto", "kineto", "csv", "sqlite", "otlp"};
  return kFormats;
}

int export_recording(store::Store& store, const std::string& recording,
                     const std::vector<std::string>& problems, const ExportChoice& choice) {
  const bool of_steps = choice.format == "kineto" || choice.format == "otlp";
  if (choice.format == "kineto" && !choice.detail.empty())
    throw UserError(
        "--detail does not apply to --format kineto, whose figures need every kernel: its parts are "
        "--ranks, --steps, --from and --to",
        2);
  const exporter::ExportPart part = of_steps ? exporter::ExportPart() : part_of(store, choice);
  add_export_notes(store, problems, choice, part, speakers(store, choice));
  std::vector<std::string> written{choice.out};
  auto shown = std::make_unique<ExportProgress>(choice.out);
  const std::function<void(double)> progress = [&](double share) { shown->at(share); };
  auto walks = of_steps ? nullptr : std::make_unique<exporter::WalkProgress>(store, progress);
  if (choice.format == "chrome") {
    exporter::write_chrome(choice.out, store, part);
  } else if (choice.format == "perfetto") {
    exporter::write_perfetto(choice.out, store, part);
  } else if (choice.format == "sqlite") {
    exporter::write_sqlite(choice.out, store, part);
  } else if (choice.format == "csv") {
    written = exporter::write_csv(choice.out, store, part);
  } else if (choice.format == "otlp") {
    write_otlp(store, recording, problems, choice, progress);
  } else {
    written = exporter::write_kineto(choice.out, store,
                                     {.ranks = ranks_of(store, choice.ranks),
                                      .steps = steps_of(choice.steps),
                                      .range = range_of(store, choice),
                                      .progress = progress});
  }
  walks.reset();
  shown.reset();
  for (const std::string& path : written) say("{}\n", path);
  return 0;
}

}  // namespace shardscope::cli
