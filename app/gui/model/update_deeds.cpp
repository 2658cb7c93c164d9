#include "app/gui/model/update_deeds.h"

#include <bit>

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
      const auto factor = std::bit_cast<double>(event.v0);
      if (factor == 1) return std::nullopt;  // the norm was within the limit
      deed.text = "Gradients clipped: multiplied by " + decimal(factor, 4);
      return deed;
    }
    case ev::EventKind::columns_selected:
      deed.param = event.a;
      deed.text = "Columns chosen: " + std::to_string(event.c) + " of " +
                  std::string(tail_path(param_name(store, event.a)));
      deed.reason = sentence(static_cast<plan::SelectionCause>(event.code));
      return deed;
    case ev::EventKind::deferred_update:
      if (static_cast<ev::DeferredState>(event.code) == ev::DeferredState::published) {
        deed.text = "Deferred update published";
        return deed;
      }
      deed.text = "Deferred update begins: gradients of " + std::to_string(event.c) +
                  (event.c == 1 ? " step" : " steps");
      if (event.a != ev::kNoId)
        deed.reason = sentence(static_cast<plan::UpdateCause>(static_cast<std::uint8_t>(event.a)));
      return deed;
    case ev::EventKind::update_votes: {
      deed.text = "Votes for a deferred update: " + std::to_string(event.b) + " of " +
                  std::to_string(event.v1) + " matrices, " + std::to_string(event.c) + " are needed";
      const auto share = std::bit_cast<double>(event.v0);
      if (share == share)
        deed.reason = percent(100 * share).text() + " of the gradients' mass is in chosen columns";
      return deed;
    }
    case ev::EventKind::feedback_reset:
      deed.text = "Error feedback forgotten: " + std::to_string(event.b) + " parameters, " +
                  count(static_cast<double>(event.v0)).text() + " elements";
      deed.reason = "reset_T steps are over";
      return deed;
    default:
      return std::nullopt;
  }
}

}  // namespace shardscope::gui
