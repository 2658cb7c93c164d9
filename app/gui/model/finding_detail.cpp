#include "app/gui/model/finding_detail.h"

#include <nlohmann/json.hpp>

#include "app/analysis/advice.h"
#include "app/analysis/foreign_json.h"
#include "app/gui/model/advice_run.h"
#include "app/gui/model/format.h"
#include "app/gui/model/what_if.h"

namespace shardscope::gui {

std::string plain_value(const std::string& json) {
  const nlohmann::json value = analysis::parse_foreign(json);
  return value.is_string() ? value.get<std::string>() : json;
}

std::string cost_text(const analysis::Finding& finding) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (finding.cost_ms) add(milliseconds(*finding.cost_ms).text() + " of a step");
  if (finding.cost_once_ms) add(milliseconds(*finding.cost_once_ms).text() + " once");
  if (finding.cost_bytes) add(analysis::bytes_cost_text(finding));
  return out;
}

FindingDetail detail_of(const store::Store& store, const analysis::Finding& finding) {
  FindingDetail out;
  out.cost = cost_text(finding);
  for (const analysis::Change& change : finding.changes) {
    const std::string now =
        store.has_tables() ? setting_value(store.tables().config_json, change.key) : std::string();
    const char* const unset = store.has_tables() ? unset_text(store.tables()) : "default";
    out.changes.push_back(
        {change.key, now.empty() ? unset : now, plain_value(change.value), change.key + "=" + change.value});
  }
  out.gain = analysis::gain_text(finding);
  out.explains = finding.explains;
  out.page = finding.page;
  return out;
}

std::string advice_words(const Session& run) {
  if (!run.recorded()) return "not predicted: what-if needs a recording of the run";
  if (const std::string why = why_not_simulated(run.store()); !why.empty()) return "not predicted: " + why;
  switch (run.advice().state()) {
    case AdviceRun::State::asking:
      return "simulating the suggested changes";
    case AdviceRun::State::failed:
      return "not predicted: " + run.advice().problem();
    case AdviceRun::State::not_asked:
      return "not predicted yet: the gain is computed while a window shows the recording's findings, and by "
             "`shardscope findings`";
    case AdviceRun::State::answered:
      break;
  }
  return {};
}

std::string findings_looked_for(std::optional<ev::Detail> detail) {
  const auto none_above = [&] {
    return detail ? "; nothing above " + std::string(ev::name_of(*detail)) + " was recorded." : ".";
  };
  if (!detail || *detail < ev::Detail::modules)
    return "Drops would be listed here. Stragglers and exposed communication need detail modules, late "
           "prefetches "
           "and memory detail params" +
           none_above();
  if (*detail < ev::Detail::params)
    return "Stragglers, exposed communication and drops would be listed here. Late prefetches and memory "
           "above "
           "the expression need detail params" +
           none_above();
  return "Late prefetches, exposed communication, stragglers, memory above the expression and drops would be "
         "listed here.";
}

}  // namespace shardscope::gui
