#include "runtime/plan/trace_agreement.h"

#include <algorithm>

namespace shardscope::plan {
namespace {

/// FNV-1a over the ids.
std::uint32_t hash_of(const std::vector<ParamId>& params) {
  std::uint32_t hash = 2166136261U;
  for (const ParamId id : params) {
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (raw(id) >> shift & 0xFFU)) * 16777619U;
  }
  return hash;
}

std::string in_words(const RankVisit& rank, const ModelPlan& model) {
  std::string text = "rank " + std::to_string(rank.rank);
  if (!rank.visit) return text + " ran no further module";
  const std::uint32_t id = rank.visit->module;
  const bool known = id < model.modules.size();
  const std::string path = known ? model.modules[id].path : std::string();
  return text + " ran " + (known && path.empty() ? "the root" : path) + " (module " + std::to_string(id) +
         ")";
}

}  // namespace

std::vector<TracedVisit> traced_visits(const FetchScheduler& scheduler) {
  std::vector<TracedVisit> visits;
  for (const ModuleId module : scheduler.trace()) {
    visits.push_back({raw(module), hash_of(scheduler.params_of(module))});
  }
  return visits;
}

std::optional<std::size_t> first_difference(const std::vector<TracedVisit>& a,
                                            const std::vector<TracedVisit>& b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (in_a == a.end() && in_b == b.end()) return std::nullopt;
  return static_cast<std::size_t>(in_a - a.begin());
}

std::string describe_difference(std::size_t step, const RankVisit& a, const RankVisit& b,
                                const ModelPlan& model) {
  std::string text = "the ranks recorded different traces: at step " + std::to_string(step) + " " +
                     in_words(a, model) + ", " + in_words(b, model);
  if (a.visit && b.visit && a.visit->module == b.visit->module) text += " with other parameters";
  return text +
         "; every rank must run the same modules in the same order and read the same parameters in them: "
         "make "
         "what chooses them the same on all ranks, or mark the module around it as a leaf module";
}

}  // namespace shardscope::plan
