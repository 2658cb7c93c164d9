#include "app/cli/attached_what_if.h"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "app/analysis/attached/replay.h"
#include "app/analysis/attached/settings.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/framework.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/zero_settings.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "instrumentation/plain_text.h"

namespace shardscope::cli {
namespace {

using analysis::attached::AttachedRun;
using analysis::attached::ReplayOutcome;
using analysis::attached::ReplaySettings;

std::vector<analysis::Change> changes_of(const std::vector<std::string>& sets) {
  std::vector<analysis::Change> changes;
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format("--set {}: not KEY=VALUE", set), 2);
    changes.push_back({set.substr(0, equals), set.substr(equals + 1)});
  }
  return changes;
}

/// A figure of both plays: with the recorded and with the changed settings.
struct Row {
  const char* metric;
  const char* unit;
  double a = 0, b = 0;
  bool lower_is_better = true;
};

std::vector<Row> rows_of(const AttachedRun& run, const ReplayOutcome& a, const ReplayOutcome& b) {
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  std::vector<Row> rows;
  if (std::isfinite(a.step_ms)) {
    rows.push_back({"step time", "ms", a.step_ms, b.step_ms});
    rows.push_back({"waiting for communication", "ms per step and rank", a.waited_ms, b.waited_ms});
  }
  for (const Row& row : std::initializer_list<Row>{
           {"gathers", "per step", count(a.actions.gathers), count(b.actions.gathers)},
           {"gathered elements", "per step", count(a.actions.gathered_elems),
            count(b.actions.gathered_elems)},
           {"reduced buckets", "per step", count(a.actions.flushes), count(b.actions.flushes)},
           {"most gathered at a time", "bytes", count(run.gathered_bytes(a)), count(run.gathered_bytes(b))},
           {"peak of model states", "bytes", count(a.model_state_bytes), count(b.model_state_bytes)}})
    rows.push_back(row);
  // FSDP2 reduces each group as a whole.
  if (a.bucket_bytes > 0 || b.bucket_bytes > 0)
    rows.push_back({"buffers of buckets", "bytes", count(a.bucket_bytes), count(b.bucket_bytes)});
  return rows;
}

std::string number_text(const Row& row, double value) {
  return std::string(row.unit) == "bytes" ? analysis::bytes_text(static_cast<std::int64_t>(value))
                                          : fmt::format("{:.6g}", value);
}

constexpr const char* kHowSure =
    "docs/attach/what-if.md says how predictions compared with changed runs; `shardscope ab` measures yours.";

std::string verdict_of(const AttachedRun& run, double change_pct, const std::vector<std::string>& caveats) {
  if (const std::string& why = run.no_times(); !why.empty()) {
    std::string text =
        fmt::format("No time is predicted: {}. Gathers, buckets and memory follow from the settings.", why);
    for (const std::string& caveat : caveats) text += " " + caveat;
    return text;
  }
  const double error = std::abs(run.model_error_pct());
  std::string text =
      std::abs(change_pct) < 0.05
          ? std::string("Predicted within 0.05 % of the recorded step.")
          : fmt::format("Predicted {:.1f} % {}; a replay of the recorded settings is {:.1f} % off.",
                        std::abs(change_pct), change_pct < 0 ? "shorter" : "longer", error);
  for (const std::string& caveat : caveats) text += " " + caveat;
  return text + " " + kHowSure;
}

nlohmann::json link_json(const analysis::LinkPace& link) {
  if (link.gb_per_s <= 0) return nullptr;
  return {{"gb_per_s", link.gb_per_s},
          {"latency_us", link.latency_us},
          {"transfers", link.transfers},
          {"error_pct", link.error_pct}};
}

/// Null for a run on a GPU, whose spans have no times of collectives.
nlohmann::json fitted_json(const analysis::attached::RecordedCosts& costs) {
  if (!costs.no_times.empty()) return nullptr;
  return {{"gather", link_json(costs.gather)},
          {"reduce", link_json(costs.reduce)},
          {"gather_issue_us", costs.issue.mean_ns * 1e-3},
          {"gather_unpack_us", costs.unpack.mean_ns * 1e-3},
          {"bucket_us", costs.flush.mean_ns * 1e-3},
          {"fetch_hook_us", costs.fetch_ns * 1e-3},
          {"release_hook_us", costs.release_ns * 1e-3}};
}

std::string link_text(const analysis::LinkPace& link) {
  if (link.gb_per_s <= 0) return "-";
  // Faster than any host's memory: the measured times do not depend on the size.
  constexpr double kFastest = 10'000;
  if (link.gb_per_s > kFastest)
    return fmt::format("{:.3g} us each, whatever the size (±{:.0f} %)", link.latency_us, link.error_pct);
  return fmt::format("{:.3g} GB/s + {:.3g} us (±{:.0f} %)", link.gb_per_s, link.latency_us, link.error_pct);
}

}  // namespace

int attached_what_if(const store::Store& store, const AttachedQuestion& question) {
  const instrumentation::RunTables& tables = store.tables();
  if (const std::string why = analysis::attached::why_no_settings(tables); !why.empty()) {
    throw UserError(fmt::format(
        "{}: what-if is not possible for this run of {}: {}. `shardscope ab --command-a '...' --command-b "
        "'...'` runs both in turns",
        question.recording, tables.framework, why));
  }
  if (!question.other_options.empty()) {
    const char* option = question.other_options.front();
    throw UserError(fmt::format("{}: not for an attached run: {}", option,
                                analysis::attached::why_no_option(tables, option)),
                    2);
  }
  const std::vector<analysis::Change> changes = changes_of(question.sets);
  const bool deepspeed = analysis::framework_of(tables) == analysis::Framework::deepspeed;
  if (deepspeed && !analysis::names_zero_settings(tables.config_json))
    throw UserError(fmt::format("{}: the recording names no zero_optimization settings", question.recording));
  // First report settings that cannot be changed in any such run, whether this one can be replayed or not.
  try {
    ReplaySettings recorded;
    if (deepspeed) recorded.zero = analysis::zero_of(tables);
    static_cast<void>(analysis::attached::changed_settings(tables, recorded, changes));
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("--set {}", error.what()), 2);
  }
  const AttachedRun run(store);
  if (!run.missing().empty())
    throw UserError(fmt::format("{}: cannot be replayed: {}", question.recording, run.missing()));
  ReplayOutcome b;
  std::vector<std::string> caveats;
  try {
    const ReplaySettings settings =
        analysis::attached::changed_settings(tables, run.recorded_settings(), changes);
    b = run.play(settings);
    caveats = run.caveats(settings);
  } catch (const std::exception& error) {
    throw UserError(fmt::format("--set {}", error.what()), 2);
  }
  const ReplayOutcome& a = run.modelled();
  const auto& costs = run.costs();
  const double predicted = run.predicted_ms(b), change_pct = 100 * (predicted / costs.step_ms - 1);
  if (predicted <= 0) {
    throw UserError(
        fmt::format("{}: the replay takes {:.4g} ms off a step of {:.4g} ms: not for these settings",
                    question.recording, costs.step_ms - predicted, costs.step_ms));
  }
  const std::vector<Row> rows = rows_of(run, a, b);
  if (question.json) {
    nlohmann::json metrics = nlohmann::json::array();
    for (const Row& row : rows) {
      metrics.push_back({{"metric", row.metric},
                         {"unit", row.unit},
                         {"a", row.a},
                         {"b", row.b},
                         {"of_run", true},
                         {"differs", row.a != row.b},
                         {"lower_is_better", row.lower_is_better}});
    }
    nlohmann::json changed = nlohmann::json::array();
    for (const analysis::Change& change : changes) changed.push_back(change.key + " -> " + change.value);
    const nlohmann::json out{
        {"recording", question.recording},
        {"framework", tables.framework},
        {"recorded",
         {{"world", tables.world}, {"step_ms", costs.step_ms}, {"model_state_bytes", a.model_state_bytes}}},
        {"fitted", fitted_json(costs)},
        {"played_steps", costs.steps.size()},
        {"modelled_step_ms", a.step_ms},
        {"model_error_pct", run.model_error_pct()},
        {"changed", {{"world", tables.world}, {"step_ms", b.step_ms}}},
        {"predicted_step_ms", predicted},
        {"predicted_change_pct", change_pct},
        {"predicted_model_state_bytes", b.model_state_bytes},
        {"no_times", run.no_times()},
        {"caveats", caveats},
        {"comparison",
         {{"verdict", verdict_of(run, change_pct, caveats)},
          {"config_changes", changed},
          {"metrics", metrics}}}};
    say_text(stdout, instrumentation::plain_json(analysis::to_text(out, 2)) + "\n");
    return 0;
  }
  say("{:<11}{}: {}, {}, {} rank{}, {:.4g} ms per step\n", "recorded", question.recording, tables.model,
      deepspeed ? fmt::format("{} of {}", analysis::partitioning_name(tables), tables.framework)
                : tables.framework,
      tables.world, tables.world == 1 ? "" : "s", costs.step_ms);
  if (run.no_times().empty()) {
    say("{:<11}gathers {}, reductions {}; the host's part of a gather {:.3g} ms, of a bucket {:.3g} ms\n",
        "fitted", link_text(costs.gather), link_text(costs.reduce),
        (costs.issue.mean_ns + costs.unpack.mean_ns) * 1e-6, costs.flush.mean_ns * 1e-6);
    say("{:<11}{:.4g} ms per step for the recorded settings, {:+.1f} % beside the recording ({} steps "
        "replayed)\n",
        "modelled", a.step_ms, run.model_error_pct(), costs.steps.size());
    say("{:<11}{:.4g} ms per step, {:+.1f} %: the recorded time and what the replay changes by\n",
        "predicted", predicted, change_pct);
  }
  say("\nA  the recorded settings, replayed\nB  the changed settings, replayed\n\n{:<28}{:>14}{:>14}  {}\n",
      "", "A", "B", "unit");
  for (const Row& row : rows) {
    const bool bytes = std::string(row.unit) == "bytes";
    say("{:<28}{:>14}{:>14}  {}\n", row.metric, number_text(row, row.a), number_text(row, row.b),
        bytes ? "of a rank" : row.unit);
  }
  for (const analysis::Change& change : changes) say("  {} -> {}\n", change.key, change.value);
  say("\n{}\n", verdict_of(run, change_pct, caveats));
  return 0;
}

}  // namespace shardscope::cli
