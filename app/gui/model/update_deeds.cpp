#include "app/gui/model/update_deeds.h"

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "runtime/plan/zenflow.h"

namespace shardscope::gui {
namespace {

const char* sentence(plan::SelectionCause cause) noexcept {
  switch (cause) {
    case plan::SelectionCause::not_told:
      return "";
    case plan::SelectionCause::first:
      return "the warm-up is over";
    case plan::SelectionCause::interval:
      return "select_interval is over";
  }
  return "";
}

const char* sentence(plan::UpdateCause cause) noexcept {
  switch (cause) {
    case plan::UpdateCause::warm_up:
      return "warm-up: nothing is chosen yet";
    case plan::UpdateCause::interval:
      return "update_interval is over";
    case plan::UpdateCause::votes:
      return "enough matrices voted for it in the step before";
    case plan::UpdateCause::before_selection:
      return "the next step chooses columns anew";
  }
  return "";
}

}  // namespace

std::optional<Deed> update_deed(const store::Store& store, const ev::Event& event) {
  Deed deed;
  deed.at_ns = static_cast<std::int64_t>(event.ticks);
  switch (event.kind) {
    case ev::EventKind::clip_factor: {
      const auto fields = ev::as<ev::EventKind::clip_factor>(event);
      const auto factor = fields.value;
      if (factor == 1) return std::nullopt;  // the norm was within the limit
      deed.text = "Gradients clipped: multiplied by " + decimal(factor, 4);
      return deed;
    }
    case ev::EventKind::columns_selected: {
      const auto fields = ev::as<ev::EventKind::columns_selected>(event);
      deed.param = fields.param;
      deed.text = "Columns chosen: " + std::to_string(fields.columns) + " of " +
                  std::string(tail_path(param_name(store, fields.param)));
      deed.reason = sentence(fields.cause);
      return deed;
    }
    case ev::EventKind::deferred_update: {
      const auto fields = ev::as<ev::EventKind::deferred_update>(event);
      if (fields.state == ev::DeferredState::published) {
        deed.text = "Deferred update published";
        return deed;
      }
      deed.text = "Deferred update begins: gradients of " + std::to_string(fields.steps_summed) +
                  (fields.steps_summed == 1 ? " step" : " steps");
      if (fields.cause) deed.reason = sentence(*fields.cause);
      return deed;
    }
    case ev::EventKind::update_votes: {
      const auto fields = ev::as<ev::EventKind::update_votes>(event);
      deed.text = "Votes for a deferred update: " + std::to_string(fields.votes) + " of " +
                  std::to_string(fields.matrices) + " matrices, " + std::to_string(fields.votes_needed) +
                  " are needed";
      const auto share = fields.mass_chosen;
      if (share == share)
        deed.reason = percent(100 * share).text() + " of the gradients' mass is in chosen columns";
      return deed;
    }
    case ev::EventKind::feedback_reset: {
      const auto fields = ev::as<ev::EventKind::feedback_reset>(event);
      deed.text = "Error feedback forgotten: " + std::to_string(fields.params) + " parameters, " +
                  count(static_cast<double>(fields.elems)).text() + " elements";
      deed.reason = "reset_T steps are over";
      return deed;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace shardscope::gui
