// Options of findings: sets of changes that what-if tries (advice.h).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/analysis/findings/findings.h"
#include "app/analysis/foreign_json.h"

namespace shardscope::analysis::findings {

Advice setting(std::vector<Change> changes, const std::string& more) {
  std::string text = "Set ";
  for (std::size_t i = 0; i < changes.size(); ++i) {
    text += fmt::format("{}{} to {}",
                        i == 0                    ? ""
                        : i + 1 == changes.size() ? " and "
                                                  : ", ",
                        changes[i].key, changes[i].value);
  }
  return {std::move(changes), text + "." + (more.empty() ? "" : " " + more)};
}

std::vector<Advice> gather_options(const Facts& facts) {
  const auto elems = static_cast<double>(facts.summary.params);
  const std::int64_t live = facts.zero.max_live_parameters, half = round_elems(elems / 2);
  const auto with_live = [&](std::vector<Change> changes) {
    if (live < half)
      changes.push_back({"zero_optimization.stage3_max_live_parameters", std::to_string(half)});
    return changes;
  };
  std::vector<Advice> out;
  for (const double part : {64.0, 16.0, 4.0}) {
    const std::int64_t size = round_elems(elems / part);
    if (size == facts.zero.prefetch_bucket_size) continue;
    out.push_back(
        setting(with_live({{"zero_optimization.stage3_prefetch_bucket_size", std::to_string(size)}})));
  }
  if (live < half) out.push_back(setting(with_live({})));
  // Gathers once per step instead of once per pass.
  const auto whole = facts.summary.params;
  if (live < whole || facts.zero.max_reuse_distance < whole) {
    out.push_back(
        setting({{"zero_optimization.stage3_max_live_parameters", std::to_string(std::max(live, whole))},
                 {"zero_optimization.stage3_max_reuse_distance", std::to_string(whole)}},
                "Parameters stay gathered from the forward to the backward, which takes memory."));
  }
  return out;
}

std::vector<Advice> micro_batch_options(const Facts& facts) {
  const nlohmann::json config = parse_foreign(facts.summary.config_json);
  const nlohmann::json::json_pointer key("/train_micro_batch_size_per_gpu"),
      packing("/shardscope/micro_batches/packing");
  if (!config.is_object() || !config.contains(key) || !config[key].is_number_integer() ||
      (config.contains(packing) && config[packing] != "fixed"))
    return {};
  const auto micro = config[key].get<std::int64_t>();
  std::vector<Advice> out;
  for (std::int64_t factor = 2; factor <= facts.micro_steps && micro > 0; ++factor) {
    if (facts.micro_steps % factor != 0) continue;
    out.push_back(setting({{"train_micro_batch_size_per_gpu", std::to_string(micro * factor)},
                           {"gradient_accumulation_steps", std::to_string(facts.micro_steps / factor)}},
                          "The global batch is the same; activations take more memory."));
  }
  return out;
}

std::optional<LinkPace> link_of(const Facts& facts) {
  constexpr std::size_t kSteps = 3;  // similar steps: more add nothing
  std::vector<const StepDigest*> steps;
  for (std::size_t i = facts.typical.size(); i-- > 0 && steps.size() < kSteps;)
    steps.push_back(&facts.digest.steps()[facts.typical[i]]);
  return measure_link(facts.store, steps);
}

}  // namespace shardscope::analysis::findings
