#include "app/cli/what_if_search.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/foreign_json.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/search_space.h"
#include "app/analysis/setting_search.h"
#include "app/analysis/summary.h"
#include "app/cli/process.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

using analysis::Choice;
using analysis::Played;
using analysis::PlayOutcome;
using analysis::SearchResult;
using analysis::SearchSetting;

/// Nine of ten step times in docs/what-if-pairs.md, measured after one change, were this close to
/// their prediction. what_if_test.py compares it with that page.
constexpr double kMeasuredErrorPct = 7.1;
constexpr const char* kMeasuredOn = "a GPT of 10.9 M parameters, one or two ranks on two CPU cores";

constexpr const char* kStage = "zero_optimization.stage";

/// The recorded value of KEY as JSON; "null" where it has none.
std::string recorded_value(const nlohmann::json& config, const std::string& key) {
  const nlohmann::json* at = &config;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    const auto found = at->is_object() ? at->find(key.substr(begin, end - begin)) : at->end();
    if (!at->is_object() || found == at->end()) return "null";
    at = &*found;
    begin = end + 1;
  }
  return at->dump();
}

std::vector<SearchSetting> given_space(const ReplayedRun& run, const std::vector<std::string>& over,
                                       const std::vector<std::string>& given) {
  const nlohmann::json config = analysis::parse_foreign(run.recorded().tables().config_json);
  std::vector<SearchSetting> space;
  for (const std::string& text : over) {
    const std::string key = text.substr(0, text.find('='));
    for (const char* type : {"bf16", "fp16", "data_types"}) {
      if (key.rfind(type, 0) != 0) continue;
      throw UserError(
          fmt::format("--over {}: how fast another data type computes is in no recording; give it "
                      "with --set and --matrix-tflops or --trial",
                      text),
          2);
    }
    if (std::ranges::find(given, key) != given.end()) {
      throw UserError(fmt::format("--over {}: --set gives this key already; leave one of the two out", text),
                      2);
    }
    try {
      space.push_back(analysis::setting_from(text, recorded_value(config, key)));
    } catch (const std::invalid_argument& error) {
      throw UserError(fmt::format("--over {}", error.what()), 2);
    }
    if (std::ranges::count(space, key, &SearchSetting::name) > 1)
      throw UserError(fmt::format("--over {}: the key is given twice; give all its values at once", text), 2);
    // A misspelt key is an error, not a refused run.
    static_cast<void>(run.changed(space.back().values.back().sets));
  }
  std::stable_partition(space.begin(), space.end(),
                        [](const SearchSetting& setting) { return setting.name == kStage; });
  // Defaults depend on the stage only: where it stays, no recorded value need be held.
  if (space.front().name != kStage) {
    for (SearchSetting& setting : space) setting.held.clear();
  }
  return space;
}

/// Keys that --set gives.
std::vector<std::string> keys_of(const std::vector<std::string>& sets) {
  std::vector<std::string> keys;
  for (const std::string& set : sets) keys.push_back(set.substr(0, set.find('=')));
  return keys;
}

struct Search {
  ReplayedRun run;
  std::vector<SearchSetting> space;
  analysis::SearchBounds bounds;
  SearchResult result;
  std::int64_t recorded_peak = 0;

  [[nodiscard]] std::size_t over_limit() const {
    return static_cast<std::size_t>(std::ranges::count_if(result.played, [&](const Played& played) {
      return played.outcome.refused.empty() && bounds.memory_bytes > 0 &&
             played.outcome.peak_bytes > bounds.memory_bytes;
    }));
  }
  [[nodiscard]] std::vector<const Played*> refused() const {
    std::vector<const Played*> all;
    for (const Played& played : result.played)
      if (!played.outcome.refused.empty()) all.push_back(&played);
    return all;
  }
  [[nodiscard]] double predicted_ms(std::size_t index) const {
    return run.predicted_ms(result.played[index].outcome.step_ms);
  }
  [[nodiscard]] double change_pct(std::size_t index) const {
    return 100 * (predicted_ms(index) / run.pace().step_ms - 1);
  }
  /// Expected error of a prediction: the larger of that of the measured pairs and that of the model for this
  /// recording.
  [[nodiscard]] double error_pct() const {
    return std::max(kMeasuredErrorPct, std::abs(run.model_error_pct()));
  }
  /// Where predictions may be off by another amount.
  [[nodiscard]] std::string unmeasured() const { return analysis::unmeasured_of(run.recorded().tables()); }
  [[nodiscard]] std::vector<std::string> sets(std::size_t index) const {
    return analysis::sets_of(space, result.played[index].choice);
  }
};

void search(Search& search) {
  const bool watched = ::isatty(STDERR_FILENO) == 1;
  std::size_t plays = 0;
  search.result = analysis::search_settings(search.space, search.bounds, [&](const Choice& choice) {
    PlayOutcome outcome = search.run.outcome_of(analysis::sets_of(search.space, choice));
    if (++plays % 10 == 0 && watched) say(stderr, "shardscope: {} settings played\n", plays);
    return outcome;
  });
}

std::string joined(const std::vector<std::string>& sets) {
  return sets.empty() ? "as recorded" : fmt::format("{}", fmt::join(sets, " "));
}

/// The model plays every product at the recorded rate; products of a smaller micro-batch are slower.
bool has_smaller_micro_batch(const Search& search, std::size_t index) {
  const std::string key = "train_micro_batch_size_per_gpu=";
  return std::ranges::any_of(search.sets(index), [&](const std::string& set) {
    return set.rfind(key, 0) == 0 && std::strtoll(set.c_str() + key.size(), nullptr, 10) <
                                         search.run.recorded_config().batch.micro_batch_size;
  });
}

/// Conclusion from the figures, in one or two sentences.
std::string verdict(const Search& search, const std::vector<std::size_t>& best) {
  if (best.empty()) {
    const std::size_t smallest = analysis::smallest_played(search.result);
    if (smallest == search.result.played.size())
      return "None of the settings can be run: " + search.refused().front()->outcome.refused;
    return fmt::format("Nothing that was played fits {}. The least memory, {}, takes {}.",
                       analysis::bytes_text(search.bounds.memory_bytes),
                       analysis::bytes_text(search.result.played[smallest].outcome.peak_bytes),
                       joined(search.sets(smallest)));
  }
  const double change = search.change_pct(best.front());
  if (search.sets(best.front()).empty() && std::abs(change) <= search.error_pct()) {
    return fmt::format(
        "None of the settings played is predicted faster than the recorded ones; a gain of less "
        "than {:.1f} % would not be seen.",
        search.error_pct());
  }
  if (has_smaller_micro_batch(search, best.front()))
    return "The first has a smaller micro-batch. Its products are slower by an amount that is not known, and "
           "that the "
           "error of predictions does not cover. `shardscope ab` measures both.";
  const std::string beside = fmt::format("predicted {:.1f} % {} than the recording", std::abs(change),
                                         change < 0 ? "faster" : "slower");
  if (std::abs(change) > search.error_pct() && !search.unmeasured().empty())
    return fmt::format(
        "The first is {}. How far predictions are off {} was not measured: `shardscope ab` measures both.",
        beside, search.unmeasured());
  if (std::abs(change) > search.error_pct())
    return fmt::format("The first is {}, more than predictions are off.", beside);
  return fmt::format(
      "The first is {}, which is within that error: it cannot be distinguished from the recorded settings. "
      "`shardscope ab` measures both.",
      beside);
}

/// Null: not known. Below the measured error no gain is claimed anywhere.
nlohmann::json beyond_error(const Search& search, std::size_t index) {
  const bool beyond = std::abs(search.change_pct(index)) > search.error_pct();
  if (has_smaller_micro_batch(search, index) || (beyond && !search.unmeasured().empty())) return nullptr;
  return beyond;
}

nlohmann::json entry_json(const Search& search, std::size_t index) {
  const double change = search.change_pct(index);
  nlohmann::json settings = nlohmann::json::object();
  for (const std::string& set : search.sets(index)) {
    const std::size_t equals = set.find('=');
    settings[set.substr(0, equals)] = set.substr(equals + 1);
  }
  return {{"settings", std::move(settings)},
          {"predicted_step_ms", search.predicted_ms(index)},
          {"predicted_change_pct", change},
          {"peak_memory_bytes", search.result.played[index].outcome.peak_bytes},
          {"smaller_micro_batch", has_smaller_micro_batch(search, index)},
          {"beyond_error", beyond_error(search, index)}};
}

nlohmann::json outcome_json(const Search& search, const std::vector<std::size_t>& best) {
  nlohmann::json settings = nlohmann::json::array();
  for (const SearchSetting& setting : search.space) {
    nlohmann::json values = nlohmann::json::array();
    for (const analysis::SettingValue& value : setting.values) values.push_back(value.text);
    settings.push_back({{"name", setting.name}, {"values", std::move(values)}});
  }
  nlohmann::json refused = nlohmann::json::array();
  for (const Played* played : search.refused()) {
    refused.push_back(
        {{"settings", analysis::sets_of(search.space, played->choice)}, {"why", played->outcome.refused}});
  }
  nlohmann::json found = nlohmann::json::array();
  for (const std::size_t index : best) found.push_back(entry_json(search, index));
  const std::size_t smallest = analysis::smallest_played(search.result);
  return {
      {"recorded",
       {{"step_ms", search.run.pace().step_ms},
        {"peak_memory_bytes", search.recorded_peak},
        {"world", search.run.recorded().tables().world}}},
      {"modelled_step_ms", search.run.modelled().pace.step_ms},
      {"model_error_pct", search.run.model_error_pct()},
      {"measured_error_pct", kMeasuredErrorPct},
      {"measured_error_on", kMeasuredOn},
      {"error_not_measured",
       search.unmeasured().empty() ? nlohmann::json() : nlohmann::json(search.unmeasured())},
      {"error_pct", search.error_pct()},
      {"memory_limit_bytes",
       search.bounds.memory_bytes > 0 ? nlohmann::json(search.bounds.memory_bytes) : nlohmann::json()},
      {"searched", std::move(settings)},
      {"combinations", search.result.choices},
      {"played", search.result.played.size()},
      {"complete", search.result.complete},
      {"cut_short", search.result.cut_short},
      {"over_limit", search.over_limit()},
      {"refused", std::move(refused)},
      {"best", std::move(found)},
      {"smallest", smallest < search.result.played.size() ? entry_json(search, smallest) : nlohmann::json()},
      {"verdict", verdict(search, best)}};
}

void say_outcome(const Search& search, const std::vector<std::size_t>& best) {
  const instrumentation::RunTables& tables = search.run.recorded().tables();
  say("{:<11}{}, ZeRO-{}, {} rank{}, {:.4g} ms per step, peak {}{}\n", "recorded", tables.model, tables.stage,
      tables.world, tables.world == 1 ? "" : "s", search.run.pace().step_ms,
      analysis::bytes_text(search.recorded_peak), tables.simulated ? " (itself simulated)" : "");
  say("{:<11}{} settings, {} combinations; {}\n", "searched", search.space.size(), search.result.choices,
      search.result.complete ? std::string("all of them played")
      : search.result.cut_short
          ? fmt::format("{} played, the limit that --plays sets; not all that the search "
                        "would have tried",
                        search.result.played.size())
          : fmt::format("{} played, one setting after the other from several beginnings",
                        search.result.played.size()));
  if (search.bounds.memory_bytes > 0) {
    say("{:<11}{} of a rank's device; {} of those played need more and are left out\n", "limit",
        analysis::bytes_text(search.bounds.memory_bytes), search.over_limit());
  }
  const std::vector<const Played*> refused = search.refused();
  if (!refused.empty())
    say("{:<11}{} cannot be run; the first: {}\n", "refused", refused.size(),
        refused.front()->outcome.refused);
  if (!best.empty()) say("\n   predicted    change         peak  settings\n");
  for (std::size_t i = 0; i < best.size(); ++i) {
    const std::size_t index = best[i];
    say("{:>2} {:>9.4g} ms {:>+6.1f} %{} {:>11}  {}\n", i + 1, search.predicted_ms(index),
        search.change_pct(index), has_smaller_micro_batch(search, index) ? '*' : ' ',
        analysis::bytes_text(search.result.played[index].outcome.peak_bytes), joined(search.sets(index)));
  }
  if (std::ranges::any_of(best, [&](std::size_t index) { return has_smaller_micro_batch(search, index); })) {
    say("\n* A smaller micro-batch is played at the recorded rate of products. Smaller products are slower, "
        "by how much "
        "is not known: the error below does not cover these.\n");
  }
  say("\n{:<11}{}; nine of ten changed runs were within {:.1f} % of their prediction: {} "
      "(docs/what-if-pairs.md)\n",
      "how sure", model_error_text(search.run.model_error_pct()), kMeasuredErrorPct, kMeasuredOn);
  if (const std::string unmeasured = search.unmeasured(); !unmeasured.empty())
    say("{:<11}{} that error was not measured\n", "", unmeasured);
  say("{:<11}{}\n", "", verdict(search, best));
}

}  // namespace

int search_settings_of(const SearchOptions& options) {
  analysis::SearchBounds bounds;
  bounds.memory_bytes = options.memory_limit;
  bounds.plays = options.plays;
  Search found{ReplayedRun(options.replay), {}, bounds, {}, 0};
  const ReplayedRun& run = found.run;
  found.recorded_peak = device_peak(run.recorded());
  const std::vector<std::string> given = keys_of(options.replay.set);
  if (options.over.empty()) {
    const bool host = run.pace().host.has_value() || !options.replay.host_link.empty();
    // With --set the given values take the place of the recorded ones.
    found.space = analysis::usual_space(run.changed_config(), run.recorded().tables(),
                                        host ? analysis::HostKnown::yes : analysis::HostKnown::no);
    analysis::leave_out(found.space, given);
  } else {
    found.space = given_space(run, options.over, given);
  }
  found.run.set_machine(run.changed());
  search(found);
  const std::vector<std::size_t> best = analysis::best_played(found.result, found.bounds, options.show);
  if (options.json) {
    say_text(stdout, instrumentation::plain_json(analysis::to_text(outcome_json(found, best), 2)) + "\n");
  } else {
    say_outcome(found, best);
  }
  return 0;
}

}  // namespace shardscope::cli
