#include "app/gui/model/advice_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/analysis/attached/settings.h"
#include "app/analysis/foreign_json.h"
#include "app/store/names.h"

namespace shardscope::gui {
namespace {

using nlohmann::json;

ev::Severity severity_of(const std::string& name) {
  for (const ev::Severity severity : {ev::Severity::info, ev::Severity::warning, ev::Severity::error}) {
    if (name == store::name_of(severity)) return severity;
  }
  return ev::Severity::info;
}

template <class T>
std::optional<T> maybe(const json& object, const char* key) {
  const json& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

analysis::Finding finding_of(const json& object) {
  analysis::Finding out;
  out.severity = severity_of(object.at("severity"));
  object.at("title").get_to(out.title);
  object.at("evidence").get_to(out.evidence);
  object.at("next_step").get_to(out.next_step);
  object.at("at_ns").get_to(out.at_ns);
  object.at("until_ns").get_to(out.until_ns);
  out.rank = maybe<std::uint32_t>(object, "rank").value_or(ev::kNoId);
  object.at("id").get_to(out.id);
  object.at("page").get_to(out.page);
  object.at("panel").get_to(out.panel);
  out.cost_ms = maybe<double>(object, "cost_ms");
  out.cost_once_ms = maybe<double>(object, "cost_once_ms");
  out.cost_bytes = maybe<std::int64_t>(object, "cost_bytes");
  if (maybe<std::string>(object, "cost_bytes_of") == "communication")
    out.bytes_of = analysis::BytesOf::communication;
  for (const json& change : object.at("changes"))
    out.changes.push_back({change.at("key").get<std::string>(), change.at("value").get<std::string>()});
  out.gain_ms = maybe<double>(object, "gain_ms");
  out.gain_bytes = maybe<std::int64_t>(object, "gain_bytes");
  object.at("gain_basis").get_to(out.gain_basis);
  object.at("explains").get_to(out.explains);
  return out;
}

}  // namespace

std::pair<std::vector<analysis::Finding>, std::string> read_findings(const std::string& text) {
  std::vector<analysis::Finding> findings;
  try {
    const json list = analysis::parse_foreign(text);
    if (!list.is_array()) return {{}, "`shardscope findings` printed no list of findings"};
    for (const json& object : list) findings.push_back(finding_of(object));
  } catch (const json::exception& error) {
    return {{}, std::string("`shardscope findings` printed something else: ") + error.what()};
  }
  return {findings, {}};
}

std::string why_not_simulated(const store::Store& store) {
  if (!store.has_tables()) return "the recording does not describe the run";
  std::string why = analysis::attached::why_no_settings(store.tables());
  return why.empty() ? analysis::attached::why_no_times(store.tables()) : why;
}

bool can_be_played(const store::Store& store, const std::vector<analysis::Finding>& findings) {
  return why_not_simulated(store).empty() &&
         std::ranges::any_of(findings, [](const auto& finding) { return !finding.options.empty(); });
}

void AdviceRun::ask(const std::string& recording) {
  command_ = std::make_unique<CommandRun>();
  state_ = State::asking;
  problem_.clear();
  command_->start({shardscope_program(), "findings", recording, "--json"},
                  [this](CommandRun::Ended ended) { ended_ = std::move(ended); });
}

std::optional<std::vector<analysis::Finding>> AdviceRun::take() {
  if (state_ != State::asking || command_->running()) return std::nullopt;
  command_.reset();  // joins its thread, which has written ended_
  problem_ = ended_.problem;
  std::vector<analysis::Finding> findings;
  if (problem_.empty()) std::tie(findings, problem_) = read_findings(ended_.out);
  ended_ = {};
  state_ = problem_.empty() ? State::answered : State::failed;
  if (state_ == State::failed) return std::nullopt;
  return findings;
}

}  // namespace shardscope::gui
