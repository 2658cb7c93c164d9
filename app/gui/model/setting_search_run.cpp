#include "app/gui/model/setting_search_run.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>

#include "app/analysis/foreign_json.h"
#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

template <typename T>
T value_of(const nlohmann::json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->get<std::string>() : otherwise;
  } else if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->get<bool>() : otherwise;
  } else {
    return found->is_number() ? found->get<T>() : otherwise;
  }
}

}  // namespace

std::vector<std::string> search_arguments(const std::string& program, const std::string& recording,
                                          double memory_gib) {
  std::vector<std::string> argv{program, "what-if", recording, "--search", "--json", "--best", "10"};
  if (memory_gib > 0)
    argv.insert(argv.end(),
                {"--memory-limit",
                 std::to_string(static_cast<std::int64_t>(std::llround(memory_gib * 0x1p30))) + "B"});
  return argv;
}

std::pair<std::optional<SearchOutcome>, std::string> read_search(const std::string& text) {
  const nlohmann::json json = analysis::parse_foreign(text);
  if (!json.is_object() || !json.contains("best") || !json["best"].is_array() || !json.contains("recorded") ||
      !json["recorded"].is_object())
    return {std::nullopt, "the search gave no figures"};
  SearchOutcome out;
  out.recorded_ms = value_of(json["recorded"], "step_ms", std::nan(""));
  out.recorded_peak_bytes = value_of(json["recorded"], "peak_memory_bytes", std::int64_t{0});
  out.error_pct = value_of(json, "error_pct", 0.0);
  out.played = value_of(json, "played", std::uint64_t{0});
  out.combinations = value_of(json, "combinations", std::uint64_t{0});
  out.verdict = value_of(json, "verdict", std::string());
  out.error_on = value_of(json, "measured_error_on", std::string());
  out.not_measured = value_of(json, "error_not_measured", std::string());
  for (const nlohmann::json& one : json["best"]) {
    if (!one.is_object()) continue;
    FoundSettings found;
    found.step_ms = value_of(one, "predicted_step_ms", std::nan(""));
    found.change_pct = value_of(one, "predicted_change_pct", std::nan(""));
    found.peak_bytes = value_of(one, "peak_memory_bytes", std::int64_t{0});
    found.beyond_error = value_of(one, "beyond_error", false);
    if (const auto settings = one.find("settings"); settings != one.end() && settings->is_object()) {
      for (const auto& [key, value] : settings->items())
        if (value.is_string()) found.changes.push_back({key, value.get<std::string>()});
    }
    out.best.push_back(std::move(found));
  }
  return {std::move(out), ""};
}

std::string error_text(const SearchOutcome& outcome) {
  return "Predictions are off by up to " + decimal(outcome.error_pct, 1) + " %" +
         (outcome.error_on.empty() ? "" : " (measured: " + outcome.error_on + ")") +
         (outcome.not_measured.empty() ? "" : "; " + outcome.not_measured + " this was not measured") + ".";
}

Table search_table(const SearchOutcome& outcome) {
  Table table;
  table.columns = {{.name = "settings", .weight = 3, .smallest = 160},
                   {"step time", 0.6F, true,
                    "Predicted: recorded time + (modelled time with the changes - modelled time now)"},
                   {"change", 0.6F, true, "Pale: smaller than the error of predictions"},
                   {"peak", 0.6F, true, "Of a rank's device memory, the largest over ranks"}};
  for (const FoundSettings& found : outcome.best) {
    std::string sets;
    for (const analysis::Change& change : found.changes)
      sets += (sets.empty() ? "" : "  ") + change.key.substr(change.key.rfind('.') + 1) + "=" + change.value;
    std::string whole;
    for (const analysis::Change& change : found.changes)
      whole += (whole.empty() ? "" : "\n") + change.key + "=" + change.value;
    const std::string sign = found.change_pct > 0 ? "+" : found.change_pct < 0 ? "\u2212" : "";
    Cell change = number_cell(found.change_pct, sign + decimal(std::fabs(found.change_pct), 1) + " %");
    change.tone = !found.beyond_error ? Tone::muted : found.change_pct < 0 ? Tone::good : Tone::bad;
    table.add({{sets.empty() ? "as recorded" : sets, {}, Tone::normal, {}, whole},
               number_cell(found.step_ms, milliseconds(found.step_ms).text()),
               change,
               number_cell(static_cast<double>(found.peak_bytes), bytes(found.peak_bytes).text())});
  }
  return table;
}

void SettingSearchRun::forget() {
  command_ = std::make_unique<CommandRun>();  // ends a running command; its outcome is dropped below
  const std::lock_guard lock(mutex_);
  ended_.reset();
}

void SettingSearchRun::start(std::vector<std::string> argv) {
  forget();
  command_->start(std::move(argv), [this](CommandRun::Ended run) {
    auto ended = std::make_shared<Ended>();
    ended->problem = std::move(run.problem);
    if (ended->problem.empty()) std::tie(ended->outcome, ended->problem) = read_search(run.out);
    const std::lock_guard lock(mutex_);
    ended_ = std::move(ended);
  });
}

std::shared_ptr<const SettingSearchRun::Ended> SettingSearchRun::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace shardscope::gui
