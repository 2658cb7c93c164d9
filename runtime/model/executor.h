// Runs a model tree forward and backward on a device, calling the hooks at each module boundary. It
// knows nothing of ZeRO: parameters and gradients are where the hooks say they are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/types.h"
#include "runtime/device/device.h"
#include "runtime/plan/fault.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::model {

/// Where a gradient goes and whether it joins what is there.
struct GradTarget {
  kernels::Ptr data;
  bool accumulate = false;
};

/// What the engine does at the boundaries. Called on the host thread, in the program order that is the
/// same on every rank. Work queued on the compute stream after pre_* runs after what the hook waited for.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual void pre_forward(plan::ModuleId module) = 0;
  virtual void post_forward(plan::ModuleId module) = 0;
  /// `recompute`: the forward of a checkpointed block runs again inside backward. pre/post_forward are
  /// then called as well, between begin_recompute and end_recompute of that block.
  virtual void begin_recompute(plan::ModuleId block) = 0;
  virtual void end_recompute(plan::ModuleId block) = 0;
  virtual void pre_backward(plan::ModuleId module) = 0;
  /// Not called for a module whose input needs no gradient (P12), as in PyTorch.
  virtual void post_backward(plan::ModuleId module) = 0;
  /// The weight of another module is read inside `module` (functional use, P10).
  virtual void use_external(plan::ParamId param, plan::ModuleId module) = 0;

  /// Address of the whole parameter; valid from the pre_* hook of its module to its post_* hook.
  [[nodiscard]] virtual kernels::ConstPtr param(plan::ParamId param) = 0;
  /// Asked once per use in backward, before the kernel that writes it is queued.
  [[nodiscard]] virtual GradTarget grad(plan::ParamId param) = 0;
  /// The last kernel that contributes to this gradient in this backward is queued. Order of calls for one
  /// module: autograd's (GradOrder in Linear, weight before bias in LayerNorm). A tied parameter is ready
  /// once, after its last contribution.
  virtual void grad_ready(plan::ParamId param) = 0;
};

/// Which gradient of a linear layer is ready first: the bias in PyTorch's own linear, the weight in the
/// memory-efficient one that DeepSpeed puts in its place in stage 3 (deepspeed/runtime/zero/linear.py).
enum class GradOrder : std::uint8_t { bias_first, weight_first };

/// One micro-batch of one rank, already on the device.
struct Batch {
  std::int64_t B = 0;
  std::int64_t T = 0;                     ///< 1 for vectors
  const std::int32_t* tokens = nullptr;   ///< [B,T]
  const std::int32_t* targets = nullptr;  ///< [B,T]; below 0: a position without a loss
  const float* inputs = nullptr;          ///< [B,input_width]
  const float* labels = nullptr;          ///< [B,output_width]
  /// [B,T]: the column of each; for models that look positions up.
  const std::int32_t* positions = nullptr;
  std::int64_t ignored = 0;  ///< positions without a loss
};

class Executor {
 public:
  /// `type`: storage of activations (and of the parameters the hooks give).
  Executor(const plan::ModelPlan& model, device::Device& device, kernels::DType type, Hooks& hooks,
           GradOrder linear_grads = GradOrder::bias_first);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Queues forward, loss and the gradient of the logits. `loss_scale` multiplies the gradient (loss
  /// scale / accumulation steps). The loss (mean over the positions that have one,
  /// unscaled, fp32) lands in `loss` (device memory).
  void forward(const Batch& batch, std::int64_t iteration, float loss_scale, float* loss);
  /// Queues the backward of the last forward. Throws std::logic_error where there was none in training mode:
  /// evaluate() and logits() keep nothing that a backward could use.
  void backward();
  /// Queues forward and loss as forward() does, without anything for a backward: activations are freed as
  /// soon as the next module has read them. `iteration` decides what conditional modules skip; modules emit
  /// no micro-step.
  void evaluate(const Batch& batch, std::int64_t iteration, float* loss);
  /// Forward only, logits kept, for tests: copies logits [B*T,V] fp32 to `logits`.
  void logits(const Batch& batch, std::span<float> logits);
  /// Forwards of these micro-steps skip a module, or run two in the other order; their backward follows. For
  /// runs that rehearse a hang: the other ranks do not.
  void inject_fault(const plan::ExecutorFault& fault);
  /// Gives kernel spans their names (Publisher::name_id); without it there are no kernel spans.
  void name_kernels(const std::function<std::uint32_t(const std::string&)>& id_of);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::model
