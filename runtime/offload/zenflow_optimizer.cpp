#include "runtime/offload/zenflow_optimizer.h"

#include <cstring>
#include <utility>

#include "runtime/execution/event_pool.h"
#include "runtime/execution/events.h"
#include "runtime/offload/zenflow_chosen.h"
#include "runtime/offload/zenflow_host.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;
using base::StateKind;

class ZenFlowOptimizer final : public optim::OptimizerState {
 public:
  explicit ZenFlowOptimizer(ZenFlowInput input)
      : in_(std::move(input)),
        schedule_(in_.settings, in_.matrices),
        events_(in_.device),
        // Before chosen_, which keeps pointers to its states.
        host_(in_, events_),
        chosen_(in_, events_,
                {host_.states(StateKind::master), host_.states(StateKind::momentum),
                 host_.states(StateKind::variance)}) {}

  void begin_update() override {}
  /// All sub-groups are updated together, in finish_update().
  void update(std::uint32_t, std::uint32_t step, const kernels::AdamW& settings) override {
    step_ = step;
    settings_ = settings;
  }

  // Order of a step: select columns when due, add this step's gradients to the sum, begin or continue the
  // host's update, update the chosen elements. The chosen ones come last, so that they overwrite the values
  // of a publication.
  void finish_update() override {
    const plan::ZenFlowSchedule::Step now = schedule_.begin_step();
    // During warm-up every step updates at once: there is no interval to hide an update in.
    const bool deferred = in_.settings.overlap_step && !now.warm_up;
    // Before this step's gradient is summed: the states of columns no longer chosen must be in host memory
    // before the host's update.
    if (now.select) select(now.select_cause);
    if (schedule_.observes() && !now.warm_up) observe(now.select);
    host_.add_to_sum(now.steps_in_sum, settings_);
    if (now.update) {
      // The previous interval's update must be in the parameters and its sum free before the next one begins.
      if (deferred) host_.publish(step_);
      host_.begin(now.steps_in_sum, now.update_cause, step_, settings_,
                  deferred ? ZenFlowHost::Run::beside : ZenFlowHost::Run::at_once);
      if (!deferred) host_.publish(step_);
    }
    // The pieces due by the next step of the interval: queued one step ahead of the sum.
    if (deferred) host_.advance(now.update ? 1 : now.steps_in_sum + 1, step_);
    if (chosen_.any()) chosen_.step(step_, settings_);
    // The next backward overwrites the gradients.
    events_.order(in_.device.copy(), in_.device.compute());
  }

  void publish_params() override {
    host_.settle(step_);
    // After a restore host memory is newer, otherwise the device.
    if (std::exchange(loading_, false)) {
      if (chosen_.any()) chosen_.take_out();
    } else {
      chosen_.bring_back();
    }
    host_.publish_states();
  }

  // What a checkpoint needs in addition to the states: a pending sum, and parameters older than the states.
  [[nodiscard]] std::vector<StateKind> kinds() const override {
    std::vector<StateKind> kinds(base::kStateKinds.begin(), base::kStateKinds.end());
    if (schedule_.save().in_sum > 0) kinds.push_back(StateKind::waiting_sum);
    if (host_.unpublished()) kinds.push_back(StateKind::published);
    return kinds;
  }

  void read(StateKind kind, plan::Range range, float* to) override {
    host_.settle(step_);
    if (kind == StateKind::waiting_sum) return host_.read_sum(range, to);
    if (kind == StateKind::published) return host_.read_published(range, to);
    chosen_.bring_back();
    std::memcpy(to, host_.states(kind) + range.begin, floats(range));
  }
  void write(StateKind kind, plan::Range range, const float* from) override {
    host_.settle(step_);
    if (kind == StateKind::waiting_sum) return host_.write_sum(range, from);
    if (kind == StateKind::published) return host_.write_published(range, from);
    // A partial write of the states: the others must be current before they are packed again.
    if (!loading_) chosen_.bring_back();
    std::memcpy(host_.states(kind) + range.begin, from, floats(range));
    if (!loading_ && chosen_.any()) chosen_.take_out();
  }

  [[nodiscard]] std::optional<plan::ZenFlowProgress> zenflow() const override {
    plan::ZenFlowProgress progress = schedule_.save();
    progress.chosen = chosen_.any();
    progress.unpublished = host_.unpublished();
    return progress;
  }
  [[nodiscard]] std::vector<std::int32_t> chosen_columns() const override { return chosen_.columns(); }
  void continue_zenflow(const plan::ZenFlowProgress& progress,
                        const std::vector<std::int32_t>& columns) override {
    schedule_.restore(progress);
    loading_ = true;
    // Columns only; their states are packed once all have been written to host memory (publish_params()).
    if (progress.chosen && !columns.empty()) chosen_.set_columns(columns);
    if (progress.unpublished && in_.settings.overlap_step) host_.continue_unpublished();
  }

 private:
  [[nodiscard]] static std::size_t floats(plan::Range range) noexcept {
    return static_cast<std::size_t>(range.size()) * sizeof(float);
  }

  // The host's update in flight ends first: it updates all elements, but must not update the states brought
  // back.
  void select(plan::SelectionCause cause) {
    host_.settle(step_);
    // Brought back first, so that the publication includes them.
    chosen_.bring_back();
    host_.publish(step_);
    chosen_.score();
    chosen_.choose(step_, cause);
    chosen_.take_out();
  }

  /// Computes the masses that vote. `scored`: this step's scores are already computed.
  void observe(bool scored) {
    if (!scored) chosen_.score();
    const std::vector<double> sums = chosen_.masses();
    std::vector<plan::GradientMass> masses;
    plan::GradientMass total;
    for (std::size_t i = 0; i < in_.matrices; ++i) {
      // Scores are computed from raw gradients, masses from unscaled and clipped ones.
      const auto factor = static_cast<double>(settings_.grad_scale);
      masses.push_back({sums[2 * i] * factor, sums[2 * i + 1] * factor});
      total.selected += masses.back().selected;
      total.all += masses.back().all;
    }
    schedule_.observe(masses);
    execution::emit_host<ev::EventKind::update_votes>(
        {.step = step_,
         .votes = static_cast<std::uint32_t>(schedule_.votes()),
         .votes_needed = static_cast<std::uint32_t>(schedule_.votes_needed()),
         .mass_chosen = total.selected / total.all,
         .matrices = static_cast<std::int64_t>(in_.matrices)});
  }

  const ZenFlowInput in_;
  plan::ZenFlowSchedule schedule_;
  execution::EventPool events_;
  ZenFlowHost host_;
  ZenFlowChosen chosen_;
  kernels::AdamW settings_;  ///< of this step
  std::uint32_t step_ = 0;
  bool loading_ = false;  ///< states of chosen elements are being written to host memory, the device has none
};

}  // namespace

std::unique_ptr<optim::OptimizerState> make_zenflow_optimizer(ZenFlowInput input) {
  return std::make_unique<ZenFlowOptimizer>(std::move(input));
}

}  // namespace shardscope::offload
