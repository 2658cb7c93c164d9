#include "app/analysis/missing_reason.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/store/names.h"

namespace shardscope::analysis {

std::string missing_reason(std::string_view what, ev::Detail from, std::optional<ev::Detail> recorded) {
  if (recorded && *recorded >= from) {
    return fmt::format("{} were not recorded, though the detail was {}", what, store::name_of(*recorded));
  }
  return fmt::format("{} are recorded from detail {} on, and nothing{} was recorded", what,
                     store::name_of(from),
                     recorded ? std::string(" above ") + store::name_of(*recorded) : "");
}

std::string missing_reason(const Summary& summary, std::string_view what, ev::Detail from,
                           ev::Capability capability) {
  if (const auto why =
          ev::why_not_recorded(summary.framework, summary.records, summary.not_recorded, capability)) {
    return *why;
  }
  if (capability == ev::Capability::modules && has_times_of_host(summary.kind, summary.device))
    return "spans are of the host, which queues the GPU's work; --detail kernels records the GPU";
  const bool deepspeed = summary.kind == Framework::deepspeed;
  const bool never = (capability == ev::Capability::memory && summary.kind != Framework::zero) ||
                     (capability == ev::Capability::modules && deepspeed && summary.stage < 3) ||
                     (capability == ev::Capability::collective_parts && deepspeed && summary.stage == 0) ||
                     summary.kind == Framework::ddp;
  if (never && summary.records == 0)
    return fmt::format("of {} no {} are recorded", partitioning_name(summary.kind, summary.stage), what);
  if (summary.kept && summary.kept->whole_steps == 0)
    return fmt::format("no completed step was kept at full detail: {} are not here", what);
  if (summary.lacking_steps == 0) return missing_reason(what, from, summary.recorded_detail);
  return fmt::format("events are missing in {} of {} steps: {}", summary.lacking_steps, summary.steps,
                     store::text_of(summary.losses));
}

bool records(const Summary& summary, ev::Capability capability) {
  return !ev::why_not_recorded(summary.framework, summary.records, summary.not_recorded, capability);
}

bool exposure_known(const Summary& summary) {
  return records(summary, ev::Capability::collectives) || has_times_of_host(summary.kind, summary.device);
}

std::string missing_model_states(const Summary& summary) {
  return std::ranges::any_of(summary.ranks, &RankSummary::model_states_in_part)
             ? "part of them was allocated or freed where events are missing or less detail was recorded"
             : missing_reason(summary, "memory events", ev::Detail::params, ev::Capability::memory);
}

std::string coverage(const Summary& summary, std::uint32_t steps, std::uint32_t all) {
  if (steps >= all) return {};
  return fmt::format("over {} of {} steps; the others {}", steps, all,
                     summary.lacking_steps > 0 ? "lack events"
                     : summary.kept            ? "were not kept at full detail"
                                               : "were recorded at less detail");
}

}  // namespace shardscope::analysis
