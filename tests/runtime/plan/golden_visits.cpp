#include "tests/runtime/plan/golden_visits.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>

#include "tests/runtime/plan/golden.h"

namespace shardscope::golden {
namespace {

using plan::ModuleId;
using plan::raw;
using plan::VisitKind;

bool mentions(const std::string& text, const char* word) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower.find(word) != std::string::npos;
}

std::optional<ModuleId> block_list(const plan::ModelPlan& model) {
  for (const plan::ModulePlan& module : model.modules) {
    if (module.type == "ModuleList") return module.id;
  }
  return std::nullopt;
}

/// The order in which the blocks run: given with the case, or by the model's definition in the legend.
plan::VisitOptions options_of(const plan::ModelPlan& model, const Json& definition, const Json& given,
                              std::size_t iteration) {
  plan::VisitOptions options;
  options.iteration = static_cast<std::int64_t>(iteration);
  options.deepspeed_hooks = true;
  const auto list = block_list(model);
  if (!list) return options;
  const auto use = [&](const Json& order) {
    options.list_order[*list] = order.get<std::vector<std::uint32_t>>();
  };
  for (const Json* holder : {&given, &definition}) {
    if (holder->contains("block_visit_per_iteration")) {
      const Json& orders = holder->at("block_visit_per_iteration");
      use(orders.at(std::min(iteration, orders.size() - 1)));
      return options;
    }
    for (const char* key : {"block_visit", "block_visit_order", "visit"}) {
      if (holder->contains(key) && holder->at(key).is_array()) {
        use(holder->at(key));
        return options;
      }
    }
  }
  if (definition.contains("tree")) return options;
  if (mentions(model.spec.name, "reuse") || mentions(model.modules.front().type, "reuse")) {
    std::size_t blocks = 0;
    for (const plan::ModulePlan& module : model.modules) blocks += module.parent == *list ? 1 : 0;
    Json order = Json::array();
    for (std::size_t i = 0; i < blocks; ++i) order.push_back(i);
    order.push_back(0);
    use(order);
  }
  return options;
}

/// What a fetch or a release visits. Throws where it names no module.
plan::Visit visit_of(const Json& event, const plan::ModelPlan& model) {
  const auto module = event.at("module").get<std::uint32_t>();
  if (module >= model.modules.size()) {
    throw std::invalid_argument("events: module " + std::to_string(module) + " of " +
                                std::to_string(model.modules.size()));
  }
  const bool fetch = event.at("ev") == "fetch";
  const VisitKind kind = event.at("dir") == "fwd"
                             ? (fetch ? VisitKind::pre_forward : VisitKind::post_forward)
                             : (fetch ? VisitKind::pre_backward : VisitKind::post_backward);
  return {kind, ModuleId{module}};
}

bool in_forward(const plan::Visit& visit) {
  return visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::post_forward;
}

using VisitList = std::vector<plan::Visit>;

/// What the events visit; nothing where they do not say in which direction. Throws where one names no module.
std::optional<VisitList> recorded_visits(const Json& events, const plan::ModelPlan& model) {
  VisitList visits;
  for (const Json& event : events) {
    const auto kind = event.at("ev").get<std::string>();
    if (kind != "fetch" && kind != "release") continue;
    if (!event.contains("dir")) return std::nullopt;
    visits.push_back(visit_of(event, model));
  }
  return visits;
}

/// Modules begun and ended in forward, without the reads of weights in between.
VisitList forward_of(const VisitList& visits) {
  VisitList forward;
  std::copy_if(visits.begin(), visits.end(), std::back_inserter(forward), in_forward);
  return forward;
}

/// An iteration as hooks would report it: forward visits nested in the modules above them, then in backward
/// each as often as in forward. A recording that lost an event is none.
bool whole_iteration(const VisitList& visits, const plan::ModelPlan& model) {
  std::vector<ModuleId> running;
  std::vector<int> balance(model.modules.size(), 0);
  bool backward = false;
  for (const plan::Visit& visit : visits) {
    const bool forward = in_forward(visit);
    if (forward && backward) return false;
    backward |= !forward;
    if (visit.kind == VisitKind::pre_forward) {
      const bool root = raw(visit.module) == 0;
      if (root != running.empty()) return false;
      running.push_back(visit.module);
      ++balance[raw(visit.module)];
    } else if (visit.kind == VisitKind::post_forward) {
      if (running.empty() || running.back() != visit.module) return false;
      running.pop_back();
    } else if (visit.kind == VisitKind::pre_backward) {
      --balance[raw(visit.module)];
    }
  }
  return running.empty() && std::all_of(balance.begin(), balance.end(), [](int count) { return count == 0; });
}

/// With the reads of weights that a module does not own, which no event shows.
VisitList with_external(const VisitList& visits, const Json& external) {
  VisitList all;
  for (const plan::Visit& visit : visits) {
    const std::string module = std::to_string(raw(visit.module));
    if (visit.kind == VisitKind::post_forward && external.contains(module)) {
      for (const Json& id : external[module]) {
        all.push_back({VisitKind::use_external, visit.module, plan::ParamId{id.get<std::uint32_t>()}});
      }
    }
    all.push_back(visit);
  }
  return all;
}

}  // namespace

Visits visits_of(const plan::ModelPlan& model, const Json& definition, const Json& run, std::size_t iteration,
                 const Json& events, const Json* other_events) {
  const auto recorded = recorded_visits(events, model);
  const bool whole = recorded && whole_iteration(*recorded, model) &&
                     (other_events == nullptr || recorded_visits(*other_events, model) == recorded);
  if (has_tree(model)) {
    Visits visits{plan::visit_order(model, options_of(model, definition, run, iteration)), false};
    if (!whole || forward_of(visits.order) == forward_of(*recorded)) return visits;
  } else if (!whole) {
    throw std::invalid_argument("model \"" + model.spec.name +
                                "\" is none of the legend's, and the events recorded are no whole iteration");
  }
  return {with_external(*recorded, run.value("external_params", Json::object())), true};
}

}  // namespace shardscope::golden
