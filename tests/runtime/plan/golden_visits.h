// Which modules run in an iteration of a recorded case, and in which order. That is the model's doing, not
// the coordinator's: it is input of a check, as the order in which gradients arrive is.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/plan/visit_order.h"

namespace shardscope::golden {

struct Visits {
  std::vector<plan::Visit> order;
  bool as_recorded = false;  ///< by the recording: the model's tree does not say it
};

/// The visits of iteration `iteration` (from 0) of `run`, by the tree of `model` in the order that the case
/// or the model's `definition` gives. Where the forward recorded in `events` visits other modules (a module
/// used twice under a name that the legend does not know, a model without a tree), that iteration is followed
/// if it is whole and, where `other_events` of another iteration of the same modules are given, visits as
/// these do, so that no lost event passes for a model's doing. A weight of "external_params" is then read at
/// the end of its module's forward. Throws std::invalid_argument where neither shows it.
[[nodiscard]] Visits visits_of(const plan::ModelPlan& model, const nlohmann::json& definition,
                               const nlohmann::json& run, std::size_t iteration, const nlohmann::json& events,
                               const nlohmann::json* other_events = nullptr);

}  // namespace shardscope::golden
