// Storage of the parameters: resident and flat (stages 0 to 2) or partitioned one by one (stage 3). The
// engine calls these functions at module boundaries; the optimizer sees the owned range only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/types.h"
#include "runtime/execution/context.h"
#include "runtime/execution/event_pool.h"
#include "runtime/execution/events.h"
#include "runtime/optim/param_sink.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/model_mode.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::engine {

/// What happened to the weights: the optimizer updated the owned range, skipped it (non-finite gradients), or
/// all were set by the caller, frozen ones too, `initial` before the first step.
enum class Update : std::uint8_t { applied, skipped, replaced, initial };
[[nodiscard]] constexpr plan::WeightChange weight_change(Update update) noexcept {
  switch (update) {
    case Update::applied:
      return plan::WeightChange::trainable;
    case Update::skipped:
      return plan::WeightChange::none;
    case Update::replaced:
    case Update::initial:
      break;
  }
  return plan::WeightChange::all;
}

class Parameters {
 public:
  Parameters() = default;
  virtual ~Parameters() = default;
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  /// Root forward of a micro-step, or of an evaluation batch, which has no micro-step number.
  virtual void begin_iteration(plan::ModelMode mode, std::uint32_t micro_step, std::uint32_t step) = 0;
  /// Before a module runs: its parameters are whole for compute-stream work queued afterwards.
  virtual void acquire(plan::ModuleId module, ev::Pass pass) = 0;
  /// `param` of another module is read inside `module`.
  virtual void acquire_external(plan::ParamId param, plan::ModuleId module) = 0;
  /// The forward of `module` ends and returns `param` (plan::FetchScheduler::return_param). Does nothing if
  /// parameters are always whole.
  virtual void return_param(plan::ParamId, plan::ModuleId, std::span<const plan::ModuleId>) {}
  /// Registers or unregisters `param` as an external parameter of `module`, between two steps
  /// (plan::FetchScheduler). Does nothing if parameters are always whole.
  virtual void register_external(plan::ParamId, plan::ModuleId) {}
  virtual void unregister_external(plan::ParamId, plan::ModuleId) {}
  /// After a module's work is queued.
  virtual void release(plan::ModuleId module, ev::Pass pass) = 0;
  virtual void end_backward() = 0;
  /// The optimizer is next on the compute stream: only the owned range is needed from here on.
  virtual void before_update() = 0;
  /// The optimizer is queued: sends the new values of the owned range to the other ranks.
  virtual void after_update(Update update) = 0;

  /// The whole parameter, between acquire and release of a module that uses it.
  [[nodiscard]] virtual kernels::ConstPtr get(plan::ParamId param) const = 0;
  /// How parameters on NVMe are read and written, for the log; empty if there are none.
  [[nodiscard]] virtual std::string describe_swap() const { return {}; }
  /// Receives the optimizer's new values of this rank's owned range.
  [[nodiscard]] virtual optim::ParamSink& sink() = 0;
  /// The elements of a frozen parameter that this rank owns (plan::Ownership), in storage type, between
  /// two steps, for work on the part's stream. One at a time; close_frozen() is called when that work is
  /// queued.
  [[nodiscard]] virtual optim::StoredPart open_frozen(plan::ParamId param) = 0;
  virtual void close_frozen(plan::ParamId param, optim::PartUse use) = 0;
};

/// Stages 0, 1 and 2. All arguments must outlive the result.
[[nodiscard]] std::unique_ptr<Parameters> make_flat_parameters(const execution::Context& context,
                                                               execution::EventPool& events,
                                                               const plan::Ownership& ownership);
/// Stage 3.
[[nodiscard]] std::unique_ptr<Parameters> make_partitioned_parameters(const execution::Context& context,
                                                                      execution::EventPool& events,
                                                                      const plan::Ownership& ownership);

}  // namespace shardscope::engine
