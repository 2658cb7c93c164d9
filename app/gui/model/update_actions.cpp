#include "app/gui/model/update_actions.h"

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"

namespace shardscope::gui {
std::optional<SchedulerAction> update_action(const store::Store& store, const ev::Event& event,
                                             const analysis::DecisionLimits& limits) {
  SchedulerAction action;
  action.at_ns = static_cast<std::int64_t>(event.ticks);
  action.reason = analysis::reason_of(store, event, limits);
  switch (event.kind) {
    case ev::EventKind::micro_batch: {
      const auto fields = ev::as<ev::EventKind::micro_batch>(event);
      const std::int64_t positions = fields.tokens + fields.padding;
      if (fields.samples == 0 || fields.samples == ev::kNoId) return std::nullopt;
      action.text = "Micro-batch of " + std::to_string(fields.samples) + " x " +
                    std::to_string(positions / fields.samples);
      if (fields.padding > 0)
        action.reason = grouped(fields.padding) + " of " + grouped(positions) + " positions are padding";
      return action;
    }
    case ev::EventKind::clip_factor: {
      const auto fields = ev::as<ev::EventKind::clip_factor>(event);
      const auto factor = fields.value;
      if (factor == 1) return std::nullopt;  // norm within the limit: not clipped
      action.text = "Gradients clipped: multiplied by " + decimal(factor, 4);
      return action;
    }
    case ev::EventKind::columns_selected: {
      const auto fields = ev::as<ev::EventKind::columns_selected>(event);
      action.param = fields.param;
      action.text =
          "Columns chosen: " + std::to_string(fields.columns) + " of " + short_param(store, fields.param);
      return action;
    }
    case ev::EventKind::deferred_update: {
      const auto fields = ev::as<ev::EventKind::deferred_update>(event);
      if (fields.state == ev::DeferredState::published) {
        action.text = "Deferred update published";
        return action;
      }
      action.text = "Deferred update begins: gradients of " + std::to_string(fields.steps_summed) +
                    (fields.steps_summed == 1 ? " step" : " steps");
      return action;
    }
    case ev::EventKind::update_votes: {
      const auto fields = ev::as<ev::EventKind::update_votes>(event);
      action.text = "Votes for a deferred update: " + std::to_string(fields.votes) + " of " +
                    std::to_string(fields.matrices) + " matrices, " + std::to_string(fields.votes_needed) +
                    " are needed";
      const auto share = fields.mass_chosen;
      if (share == share)
        action.reason = percent(100 * share).text() + " of the gradients' mass is in chosen columns";
      return action;
    }
    case ev::EventKind::feedback_reset: {
      const auto fields = ev::as<ev::EventKind::feedback_reset>(event);
      action.text = "Error feedback reset: " + std::to_string(fields.params) + " parameters, " +
                    count(static_cast<double>(fields.elems)).text() + " elements";
      return action;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace shardscope::gui
