// The verbs that read recordings: info, summary, findings, compare, report, export.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/advice.h"
#include "app/analysis/digest.h"
#include "app/analysis/distributions.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/framework.h"
#include "app/analysis/framework_json.h"
#include "app/analysis/kept.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/summary.h"
#include "app/analysis/sweep.h"
#include "app/analysis/unmatched_ends_json.h"
#include "app/cli/advice_player.h"
#include "app/cli/artifacts.h"
#include "app/cli/checks.h"
#include "app/cli/comparison_text.h"
#include "app/cli/live_look.h"
#include "app/cli/made_runs.h"
#include "app/cli/parts_text.h"
#include "app/cli/run_source.h"
#include "app/cli/say.h"
#include "app/cli/summary_text.h"
#include "app/cli/sweep_text.h"
#include "app/cli/verb.h"
#include "app/cli/verb_export.h"
#include "app/store/control_text.h"
#include "app/store/losses.h"
#include "app/store/rank_end.h"
#include "app/store/recording.h"
#include "instrumentation/emission_cost.h"

namespace shardscope::cli {
namespace {

struct Reading {
  std::string file, other;
  std::vector<std::string> others;  ///< of `compare`
  bool json = false, overwrite = false;
  std::string out, by, key;
  ExportChoice exported;
  std::size_t plays = kAdvicePlays;  ///< of `findings`
};

store::Store open(const std::string& path, store::RecordingInfo& info) {
  store::Store store = store::open_recording(path, &info);
  for (const std::string& problem : info.problems) say(stderr, "shardscope: {}: {}\n", path, problem);
  return store;
}

/// "rank 1 was killed by signal 9 (SIGKILL) at 1.234 s; rank 0 then failed: ..."; empty where none failed.
std::string failure_line(const store::Store& store) {
  const auto first = store::first_failure(store);
  if (!first) return {};
  const std::string words = store::words_on(store, *first);
  return store::text_of(*first) + " at " + store::seconds_text(first->at_ns) +
         (words.empty() ? "" : "; " + words);
}

std::string how_it_ended(const store::Store& store, const store::RankRow& row) {
  const store::RankEnd end = store::rank_end(store, row);
  if (row.finished) return fmt::format("ended with code {}", row.exit_code);
  return end.how == store::RankEnd::How::killed ? store::text_of(end).substr(store::text_of(end).find("was "))
                                                : std::string("did not say that it ended");
}

/// Complete, and nothing is damaged or missing: no event was dropped, lost in transit, or
/// deleted by a limit.
bool is_whole(const store::RecordingInfo& info, const store::Store& store, const store::Losses& losses) {
  return info.complete && info.problems.empty() && store.not_kept().events == 0 &&
         losses.dropped + losses.lost_messages + losses.damaged_events + losses.absent_events == 0;
}

/// The recorder's limits.
std::vector<std::string> limits_text(const store::Retention& limits) {
  std::vector<std::string> out;
  if (limits.max_age_ns > 0) out.push_back("limit: the last " + analysis::time_text(limits.max_age_ns));
  if (limits.max_bytes > 0) {
    out.push_back("limit: at most " + analysis::bytes_text(static_cast<std::int64_t>(limits.max_bytes)));
  }
  return out;
}

/// null: no limit.
template <typename T>
nlohmann::json limit(T value) {
  return value > 0 ? nlohmann::json(value) : nlohmann::json(nullptr);
}

int print_info(const Reading& reading) {
  store::RecordingInfo info;
  const store::Store store = store::open_recording(reading.file, &info);
  const store::Losses losses = store::losses_of(store);
  const std::optional<analysis::Kept> kept = analysis::kept_of(store);
  if (reading.json) {
    nlohmann::json out = {{"path", info.path},
                          {"format_version", info.format_version},
                          {"complete", is_whole(info, store, losses)},
                          {"chunks", info.chunks},
                          {"events", info.events},
                          {"file_bytes", info.file_bytes},
                          {"problems", info.problems}};
    out["kept"] = analysis::kept_json(kept);
    out["limits"] = {{"max_age_ns", limit(info.limits.max_age_ns)},
                     {"max_bytes", limit(info.limits.max_bytes)}};
    out["parts"] = parts_json(info.parts);
    out["dropped"] = losses.dropped;
    out["shed"] = losses.shed;
    out["lost_messages"] = losses.lost_messages;
    out["damaged_events"] = losses.damaged_events;
    out["absent_events"] = losses.absent_events;
    out["control"] = nlohmann::json::array();
    for (const store::Message& message : store.messages()) {
      if (store::is_about_control(message.text))
        out["control"].push_back({{"at_ns", message.at_ns}, {"text", message.text}});
    }
    out["detail_lowered"] = store::detail_was_lowered(store.messages());
    out["unmatched_ends"] = analysis::unmatched_ends_json(store.unmatched_ends());
    if (store.has_tables()) {
      const auto& t = store.tables();
      out["run"] = {{"id", t.run_id},
                    {"model", t.model},
                    {"world", t.world},
                    {"stage", t.stage},
                    {"params", t.elems},
                    {"device", t.device},
                    {"host", t.host},
                    {"hardware", t.hardware},
                    {"versions", t.versions},
                    {"simulated", t.simulated},
                    {"modules", t.modules.size()},
                    {"parameters", t.params.size()},
                    {"models", nlohmann::json::array()}};
      for (const auto& model : t.models)
        out["run"]["models"].push_back({{"name", model.name}, {"role", model.role}});
      analysis::add_framework(out["run"], t.framework, t.records, t.not_recorded);
    }
    const auto first = store::first_failure(store);
    out["first_failure"] =
        first
            ? nlohmann::json{{"rank", first->rank}, {"at_ns", first->at_ns}, {"text", store::text_of(*first)}}
            : nlohmann::json(nullptr);
    out["ranks"] = nlohmann::json::array();
    for (const store::RankRow& rank : store.ranks()) {
      const auto known = [&](double store::ClockDrift::*value) {
        return rank.clock_drift ? nlohmann::json(*rank.clock_drift.*value) : nlohmann::json(nullptr);
      };
      out["ranks"].push_back({{"rank", rank.rank},
                              {"host", rank.host},
                              {"pid", rank.pid},
                              {"events", rank.events},
                              {"dropped", rank.dropped},
                              {"lost_messages", rank.lost_messages},
                              {"clock_offset_ns", rank.clock_offset_ns},
                              {"clock_residual_ns", rank.largest_clock_residual_ns},
                              {"clock_drift_ppb", known(&store::ClockDrift::ppb)},
                              {"clock_drift_bound_ppb", known(&store::ClockDrift::bound_ppb)},
                              {"finished", rank.finished},
                              {"exit_code", rank.exit_code},
                              {"state", store::text_of(store::rank_end(store, rank))},
                              {"exit_message", rank.exit_message}});
    }
    say_text(stdout, instrumentation::plain_json(analysis::to_text(out, 2)) + "\n");
    return 0;
  }
  say("{:<12} {}\n", "recording", info.path);
  say("{:<12} version {}, {:.2f} MiB, {} chunks, {} events ({:.2f} bytes per event)\n", "file",
      info.format_version, static_cast<double>(info.file_bytes) / 1048576.0, info.chunks, info.events,
      info.events > 0 ? static_cast<double>(info.file_bytes) / static_cast<double>(info.events) : 0.0);
  say("{:<12} {}\n", "state",
      !info.complete                  ? "incomplete: the run was still going on or was cut off"
      : is_whole(info, store, losses) ? "complete"
      : kept                          ? "ended properly; what is not kept, damaged or missing follows"
                                      : "ended properly; what is damaged or missing follows");
  if (kept) {
    say("{:<12} {}\n", "kept", analysis::text_of(*kept));
    for (const std::string& limit : limits_text(info.limits)) say("{:<12} {}\n", "", limit);
    for (const store::Moment& moment : kept->moments)
      say_text(stdout, instrumentation::plain_line(
                           fmt::format("{:<12} {}", "kept moment", analysis::text_of(moment))) +
                           "\n");
  }
  if (const std::string parts = parts_in_short(info.parts); !parts.empty()) {
    say("{:<12} {}\n", "parts", parts);
    for (const std::string& line : parts_text(info.parts))
      say_text(stdout, instrumentation::plain_line(fmt::format("{:<12} {}", "", line)) + "\n");
  }
  if (store::detail_was_lowered(store.messages()))
    say("{:<12} lowered while the run went on: less was recorded from then on\n", "detail");
  for (const std::string& line : store::control_lines(store.messages())) say("{:<12} {}\n", "control", line);
  for (const std::string& problem : info.problems) say("{:<12} {}\n", "problem", problem);
  if (const std::string failure = failure_line(store); !failure.empty())
    say("{:<12} {}\n", "failed", failure);
  say("{:<12} {}{}\n", "events", store::text_of(losses),
      store.gaps().empty() ? "" : fmt::format("; {} gaps", store.gaps().size()));
  if (const std::string ends = store::unmatched_ends_by_rank(store.unmatched_ends()); !ends.empty())
    say("{:<12} unexplained unmatched ends: {}\n", "", ends);
  if (store.has_tables()) {
    const auto& t = store.tables();
    say("{:<12} {}\n", "run", t.run_id);
    say("{:<12} {}, {} parameters in {} tensors, {} modules\n", "model", t.model, t.elems, t.params.size(),
        t.modules.size());
    say("{:<12} {}, {} ranks, {}{}\n", "training", analysis::partitioning_name(t), t.world, t.device,
        t.simulated ? ", simulated" : "");
    say("{:<12} {}\n{:<12} {}\n", "hardware", t.hardware, "versions", t.versions);
    if (!t.framework.empty()) say("{:<12} {}\n", "framework", t.framework);
    for (const auto& lack : t.not_recorded) say("{:<12} {}\n", "not recorded", analysis::lack_text(lack));
  }
  for (const store::RankRow& rank : store.ranks()) {
    say("{:<12} {} (pid {}): {} events, {} dropped, {} messages lost, clock {} ± {}, drift {}, {}\n",
        fmt::format("rank {}", rank.rank), rank.host, rank.pid, rank.events, rank.dropped, rank.lost_messages,
        analysis::time_text(rank.clock_offset_ns), analysis::time_text(rank.largest_clock_residual_ns),
        rank.clock_drift ? analysis::ppm_text(*rank.clock_drift) + " ppm" : "—", how_it_ended(store, rank));
  }
  return 0;
}

int print_summary(const Reading& reading) {
  const RunSource run = open_run(reading.file, reading.key);
  const store::Store& store = run.store;
  const store::RecordingInfo& info = run.info;
  const analysis::Summary summary = analysis::whole_summary(store, info);
  if (reading.json) {
    say_text(stdout, instrumentation::plain_json(analysis::to_json(summary)) + "\n");
  } else {
    if (const std::string failure = failure_line(store); !failure.empty())
      say("{:<14} {}\n", "failed", failure);
    say_text(stdout, instrumentation::plain_lines(summary_text(summary)));
    if (const std::string parts = parts_in_short(info.parts); !parts.empty())
      say("{:<14} {}; `info` lists them\n", "parts", parts);
    say_text(stdout, instrumentation::plain_lines(analysis::text_of(summary.distributions)));
    for (const std::string& line : store::control_lines(store.messages()))
      say("{:<14} {}\n", "control", line);
    for (const store::Message& message : store.messages()) {
      if (instrumentation::is_about_profiling(message.text))
        say("{:<14} {}\n", fmt::format("rank {}", message.rank), message.text);
    }
  }
  return 0;
}

int print_findings(const Reading& reading) {
  const RunSource run = open_run(reading.file, reading.key);
  const store::Store& store = run.store;
  const analysis::Digest digest = analysis::digest_of(store);
  auto findings = analysis::find(store, analysis::summarize(store, run.info, digest), digest);
  std::optional<analysis::TriedAdvice> tried;
  if (reading.plays > 0)
    tried = analysis::try_advice(
        findings, run.live ? player_of_live_run() : player_of(reading.file, store, reading.plays));
  const bool simulated = store.tables().simulated;
  if (reading.json) {
    say_text(stdout, instrumentation::plain_json(tried ? analysis::findings_json(findings, simulated, *tried)
                                                       : analysis::findings_json(findings, simulated)));
  } else {
    say_text(stdout, instrumentation::plain_lines(findings_text(findings, simulated)));
  }
  return 0;
}

/// More than two: each compared with the first.
int print_sweep(const Reading& reading) {
  std::vector<std::string> files{reading.file};
  files.insert(files.end(), reading.others.begin(), reading.others.end());
  if (files.size() > kMostSides)
    throw UserError(fmt::format("{} recordings: more than {}; compare fewer", files.size(), kMostSides), 2);
  std::vector<store::Store> stores;
  std::vector<analysis::Digest> digests;
  std::vector<analysis::Summary> summaries;
  stores.reserve(files.size());  // sides have references to them
  digests.reserve(files.size());
  summaries.reserve(files.size());
  std::vector<analysis::SweepSide> sides;
  for (const std::string& file : files) {
    store::RecordingInfo info;
    stores.push_back(open(file, info));
    digests.push_back(analysis::digest_of(stores.back()));
    summaries.push_back(analysis::summarize(stores.back(), info, digests.back()));
    sides.push_back({side_letter(sides.size()), {{&stores.back(), &summaries.back(), &digests.back()}}});
  }
  const analysis::Sweep sweep = analysis::sweep(sides);
  if (reading.json) {
    say_text(stdout, instrumentation::plain_json(sweep_json(sweep, files)));
    return 0;
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    say("{}  {} ({} ranks, {} measured steps{})\n", side_letter(i), files[i], summaries[i].world,
        sweep.measured_steps[i], sweep.simulated[i] ? ", simulated" : "");
  say_text(stdout, instrumentation::plain_lines("\n" + sweep_text(sweep)));
  return 0;
}

/// Values of `compare --by`.
const std::map<std::string, analysis::CompareBy>& comparisons_by() {
  using By = analysis::CompareBy;
  static const std::map<std::string, By> kAll = {{"module", By::module},       {"kernel", By::kernel},
                                                 {"wait", By::wait},           {"collective", By::collective},
                                                 {"parameter", By::parameter}, {"rank", By::rank},
                                                 {"memory", By::memory}};
  return kAll;
}

int print_comparison(const Reading& reading) {
  if (reading.others.size() > 1) {
    if (!reading.by.empty()) throw UserError("--by: is of two recordings; compare one with another", 2);
    return print_sweep(reading);
  }
  const std::string& other = reading.others.front();
  store::RecordingInfo info_a, info_b;
  const store::Store a = open(reading.file, info_a), b = open(other, info_b);
  const analysis::Digest digest_a = analysis::digest_of(a), digest_b = analysis::digest_of(b);
  const analysis::Summary summary_a = analysis::summarize(a, info_a, digest_a),
                          summary_b = analysis::summarize(b, info_b, digest_b);
  const analysis::Run run_a{&a, &summary_a, &digest_a}, run_b{&b, &summary_b, &digest_b};
  const analysis::Comparison comparison = analysis::compare({run_a}, {run_b});
  if (!reading.json) say("A  {}\nB  {}\n\n", reading.file, other);
  const analysis::VerdictBasis basis = analysis::verdict_basis({run_a}, {run_b});
  std::string text = reading.json ? comparison_json(comparison, basis) : comparison_text(comparison);
  if (!reading.by.empty()) {
    const analysis::ComparedRows rows = analysis::compare_by(run_a, run_b, comparisons_by().at(reading.by));
    text = reading.json ? with_rows(text, rows) : text + compared_rows_text(rows);
  }
  say_text(stdout, reading.json ? instrumentation::plain_json(text) : instrumentation::plain_lines(text));
  return 0;
}

int report(const Reading& reading) {
  const bool live = is_endpoint(reading.file);
  if (live && reading.out.empty())
    throw UserError("report: -o FILE is missing: a live run has no file that a page could lie beside", 2);
  const std::string out = reading.out.empty()
                              ? std::filesystem::path(reading.file).replace_extension(".html").string()
                              : reading.out;
  if (!reading.overwrite) keep_written("-o", out, Written::file);
  write_report(open_run(reading.file, reading.key), reading.file, out, reading.other);
  say("{}\n", out);
  return 0;
}

}  // namespace

void add_reading_verbs(CLI::App& app, Action& action) {
  const auto add = [&](const char* name, const char* help, auto function) {
    auto reading = std::make_shared<Reading>();
    CLI::App* verb = app.add_subcommand(name, help);
    verb->add_option("recording", reading->file, "Recording (*.zscope)")->required();
    verb->callback(
        [reading, function, &action] { action = [reading, function] { return function(*reading); }; });
    return std::pair{verb, reading};
  };
  const auto with_json = [](auto pair) {
    pair.first->add_flag("--json", pair.second->json, "JSON for programs");
    return pair;
  };
  with_json(add("info", "What a recording holds and whether it is whole", print_info));
  const auto or_live = [](auto pair) {
    pair.first->get_option("recording")
        ->description("Recording (*.zscope) or endpoint of a live run (tcp://...)");
    pair.first->add_option("--key", pair.second->key, kKeyIfAskedText);
    return pair;
  };
  or_live(with_json(add("summary", "The numbers of a run; --json for programs", print_summary)));
  auto [finds, found] = or_live(with_json(
      add("findings", "What stands out in a run, with evidence and what to do next", print_findings)));
  finds
      ->add_option("--plays", found->plays,
                   "Most changes that what-if simulates to predict their gain; 0: none, no gain is predicted")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  auto [compare, compared] =
      with_json(add("compare", "Two runs or more: medians, spread, changed keys, verdict", print_comparison));
  compare
      ->add_option("other", compared->others,
                   "The recording to compare with; several: a table of each against the first")
      ->required();
  std::vector<std::string> tables;
  for (const auto& [name, by] : comparisons_by()) tables.push_back(name);
  compare->add_option("--by", compared->by, "Of two recordings: a table of the largest changes as well")
      ->check(CLI::IsMember(tables));
  auto [page, reported] = or_live(add("report", "One self-contained HTML page of a run", report));
  page->add_option("-o,--output", reported->out, "HTML file (default: beside the recording)");
  page->add_option("--baseline", reported->other, "Recording to set it beside: a section compares them");
  auto [out, exported] =
      or_live(add("export", "Write a recording in another tool's format", [](const Reading& reading) {
        RunSource run = open_run(reading.file, reading.key);
        if (run.live) run.info.problems.emplace_back("the run was going on when this was written");
        const bool folder = reading.exported.format == "csv" || reading.exported.format == "kineto";
        if (!reading.overwrite)
          keep_written("-o", reading.exported.out, folder ? Written::folder : Written::file);
        return export_recording(run.store, reading.file, run.info.problems, reading.exported);
      }));
  ExportChoice& choice = exported->exported;
  out->add_option("--format", choice.format,
                  "chrome and perfetto are for ui.perfetto.dev, kineto (PyTorch's profiler) for HTA and "
                  "TraceLens, otlp is OpenTelemetry's spans")
      ->check(CLI::IsMember(export_formats()))
      ->capture_default_str();
  out->add_option("-o,--output", choice.out, "File to write (csv, kineto: folder)")->required();
  constexpr const char* kOverwriteText = "Replace an existing file, or files in the folder";
  page->add_flag("--overwrite", reported->overwrite, kOverwriteText);
  out->add_flag("--overwrite", exported->overwrite, kOverwriteText);
  out->add_option("--ranks", choice.ranks, "Only these ranks, like 0,4-7");
  CLI::Option* steps =
      out->add_option("--steps", choice.steps,
                      "Only these steps, like 10-20 (default: all, kineto those that summary measures, "
                      "without warm-up)");
  out->add_option("--from", choice.from,
                  "Only what overlaps the time from 1.25s of the run on; spans whole (kineto, otlp: steps)")
      ->excludes(steps);
  out->add_option("--to", choice.to, "... and before this time")->excludes(steps);
  out->add_option("--detail", choice.detail,
                  "Not kineto: only what a run emits up to this level; figures of steps stay")
      ->check(CLI::IsMember(detail_names()));
}

}  // namespace shardscope::cli
