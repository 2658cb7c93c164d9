// `why --json`: the fields of metrics.md 2.14.
#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "app/analysis/hang/hang.h"

namespace shardscope::analysis {

std::string hang_json(const Hang& hang) {
  const auto collective = [](const std::optional<NamedCollective>& one) -> nlohmann::json {
    if (!one) return nullptr;
    return {{"op", instrumentation::name_of(one->op)},
            {"sequence", one->sequence},
            {"group", one->group},
            {"elements", one->elems},
            {"bytes", one->bytes},
            {"module", one->module},
            {"more_params", one->more_params}};
  };
  const auto how = [](RankState::How of) {
    constexpr const char* kNames[] = {"in_collective", "working", "waiting", "paused",
                                      "stopped",       "between", "ended",   "gone"};
    return kNames[static_cast<std::size_t>(of)];
  };
  nlohmann::json out{{"hung", hang.hung},
                     {"text", hang.text},
                     {"since_ns", hang.since_ns},
                     {"culprit", hang.culprit == instrumentation::kNoId ? nlohmann::json(nullptr)
                                                                        : nlohmann::json(hang.culprit)},
                     {"ranks", nlohmann::json::array()},
                     {"stops", nlohmann::json::array()},
                     {"difference", nullptr}};
  for (const RankState& one : hang.ranks) {
    out["ranks"].push_back({{"rank", one.rank},
                            {"state", how(one.how)},
                            {"collective", collective(one.collective)},
                            {"doing", one.doing},
                            {"gate", one.gate},
                            {"exit_message", one.exit_message},
                            {"since_ns", one.since_ns},
                            {"last_event_ns", one.last_event_ns},
                            {"waits_for", one.waits_for}});
  }
  for (const store::Silence& stop : hang.stops) {
    out["stops"].push_back({{"rank", stop.rank},
                            {"begin_ns", stop.begin_ns},
                            {"end_ns", stop.lasts() ? nlohmann::json(nullptr) : nlohmann::json(stop.end_ns)},
                            {"seen", stop.stopped}});
  }
  if (hang.difference) {
    out["difference"] = {{"what", hang.difference->what}, {"sides", nlohmann::json::array()}};
    for (const IssueDifference::Side& side : hang.difference->sides) {
      out["difference"]["sides"].push_back(
          {{"ranks", side.ranks}, {"collective", collective(side.collective)}, {"module", side.module}});
    }
  }
  return to_text(out, 2) + "\n";
}

}  // namespace shardscope::analysis
