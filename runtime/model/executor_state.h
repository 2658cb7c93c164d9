// The executor's state: one class, with forward, backward and infrastructure in separate files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "kernels/ops.h"
#include "runtime/model/executor.h"
#include "runtime/model/program.h"
#include "runtime/model/value.h"

namespace shardscope::model {

// [Note: within the kernels around]
// Each additional pass over an activation costs memory bandwidth: a residual sum and a GELU are fused into
// the adjacent matrix product or layer norm where possible. They keep their position in the order of modules
// and hooks; they only have no kernel, and the timeline shows the time in the fused one. Values are bitwise
// equal in fp32; 16-bit sums are rounded once less.

/// Work fused into a node's kernel for adjacent nodes, in forward.
struct ForwardAround {
  Value onto;                  ///< a linear layer adds its result to this
  const Node* gelu = nullptr;  ///< the next node: a linear layer computes its result too
  Value activated;             ///< that result, for the next node to take
  bool unread = false;         ///< the result is not read: the last product of a recomputation is omitted
};
/// The same in backward.
struct BackwardAround {
  Value* onto =
      nullptr;  ///< a layer norm adds its gradient to this if it is the last reader, and owns it then
  Frame* before = nullptr;  ///< the next frame in backward: a linear layer goes back through its GELU too
};

struct Executor::State {
  State(const plan::ModelPlan& plan, device::Device& device, kernels::DType type, Hooks& hooks,
        GradOrder linear_grads);

  // ---- forward.cpp ------------------------------------------------------------------------------
  /// Runs a node; with `tape` its frame is appended to tape->children. `around`: work fused into its kernel
  /// for adjacent nodes.
  Value visit(const Node& node, Value x, Frame* tape, ForwardAround* around = nullptr);
  void forward(const Batch& batch, std::int64_t iteration, float loss_scale, float* loss);
  void evaluate(const Batch& batch, std::int64_t iteration, float* loss);
  void logits(const Batch& batch, std::span<float> out);

  // ---- backward.cpp -----------------------------------------------------------------------------
  /// The gradient of the input of a visit, from that of its output; empty if the input needs none. `around`
  /// as in visit.
  Value visit_backward(Frame& frame, Value dy, const BackwardAround& around = {});
  void backward();

  // ---- executor.cpp: memory, events, launches ------------------------------------------------------
  [[nodiscard]] Value allocate(const Node& node, std::int64_t width, bool needs_grad);
  [[nodiscard]] device::Buffer allocate_bytes(const Node& node, std::size_t bytes,
                                              instrumentation::MemoryCategory category);
  /// Returns `value`, or a copy if it is shared.
  [[nodiscard]] Value make_writable(const Node& node, Value value);
  void emit_module(instrumentation::EventKind kind, const Node& node, instrumentation::Pass pass);
  [[nodiscard]] instrumentation::Pass forward_pass() const noexcept;

  enum class Kernel : std::uint8_t {
    linear_forward,
    linear_backward_input,
    linear_backward_weight,
    linear_gelu_forward,
    linear_gelu_backward_input,
    layer_norm_forward,
    layer_norm_backward,
    gelu_forward,
    gelu_backward,
    relu_forward,
    relu_backward,
    add,
    embedding_forward,
    embedding_backward,
    attention_forward,
    attention_backward,
    cross_entropy,
    mse,
    cast,
    fill_zero,  // fill_zero stays last
  };
  static constexpr std::size_t kKernelCount = static_cast<std::size_t>(Kernel::fill_zero) + 1;
  [[nodiscard]] static const char* name_of(Kernel kernel) noexcept;

  /// Queues `work` on the compute stream, with a span at the detail level `kernels`.
  template <typename Work>
  void launch(Kernel kernel, const Node& node, Work&& work) {
    const bool span = !kernel_names.empty() && instrumentation::enabled(instrumentation::Detail::kernels);
    if (span) emit_kernel(instrumentation::EventKind::kernel_begin, kernel, node);
    stream.run(std::forward<Work>(work));
    if (span) emit_kernel(instrumentation::EventKind::kernel_end, kernel, node);
  }
  void emit_kernel(instrumentation::EventKind kind, Kernel kernel, const Node& node);

  const plan::ModelPlan& plan;
  device::Device& device;
  device::Stream& stream;
  kernels::DType type;
  Hooks& hooks;
  const GradOrder linear_grads;
  Program program;
  kernels::Exec exec;  ///< from the compute stream; on the host only its size queries are used
  std::vector<std::uint32_t> kernel_names;  ///< by Kernel; empty: no kernel spans

  // The micro-batch in progress.
  Batch batch;
  std::int64_t N = 0;  ///< rows: B*T
  std::int64_t iteration = 0;
  enum class Mode : std::uint8_t { train, recompute, evaluate } mode = Mode::train;
  std::optional<plan::ExecutorFault> fault;  ///< injected fault of this rank
  Frame tape;                                ///< its one child is the root's frame
  Value output_grad;                         ///< gradient of the logits or predictions
  std::vector<std::uint32_t> uses;  ///< by ParamId: gradient contributions still to come in this backward

 private:
  // forward.cpp
  Value run_children(const Node& node, Value x, Frame* tape_of_children, const Value& onto = {},
                     bool unread = false);
  [[nodiscard]] bool detours(const Node& node) const;
  [[nodiscard]] const Node& child_at(const Node& node, std::size_t place) const;
  Value compute(const Node& node, Value x, Frame* frame, ForwardAround* around = nullptr);
  Value linear(const Node& node, Value x, Frame* frame, ForwardAround* around);
  Value functional_linear(const Node& node, Value x, Frame* frame, ForwardAround* around);
  Value linear_with(const Node& node, Value x, kernels::ConstPtr weight, kernels::ConstPtr bias, Frame* frame,
                    ForwardAround* around);
  Value layer_norm(const Node& node, Value x, Frame* frame);
  Value activation(const Node& node, Value x, Frame* frame, ForwardAround* around);
  Value residual(const Node& node, Value x, Frame* frame, const ForwardAround* around);
  Value attention(const Node& node, Value x, Frame* frame);
  Value embedding(const Node& node, Value onto, Frame* frame);
  Value embedding_sum(const Node& node, Frame* frame);
  static void settle(Frame& frame, bool output_grad);
  void count_use(plan::ParamId param);
  [[nodiscard]] bool trains(plan::ParamId param) const {
    return param != plan::kNone<plan::ParamId> && plan.params[plan::raw(param)].trainable;
  }
  /// Whether a parameter of this node is trained; a frozen one is only read in backward.
  [[nodiscard]] bool learns(const Node& node) const { return trains(node.weight) || trains(node.bias); }
  [[nodiscard]] const std::int32_t* lookup(const Node& node) const;
  void start_batch(const Batch& next, std::int64_t next_iteration, Mode next_mode);
  [[nodiscard]] Value network_input();
  void run_root(Frame* frame, float loss_scale, float* loss);
  void loss_and_gradient(const Node& node, Value output, float loss_scale, float* loss);

  // backward.cpp
  void recompute(Frame& frame);
  Value compute_backward(Frame& frame, Value dy, const BackwardAround& around);
  Value children_backward(Frame& frame, Value dy, Value* onto = nullptr);
  Value linear_backward(Frame& frame, Value dy, Frame* before);
  Value layer_norm_backward(Frame& frame, Value dy, Value* onto);
  Value activation_backward(Frame& frame, Value dy);
  Value residual_backward(Frame& frame, Value dy);
  Value attention_backward(Frame& frame, Value dy);
  void embedding_backward(Frame& frame, const Value& dy);
  /// The target of a contribution; `write` says how the kernel writes both targets of a pair.
  struct Targets {
    kernels::Ptr first, second;
    kernels::Write write = kernels::Write::set;
  };
  Targets grad_targets(const Node& node, plan::ParamId first, plan::ParamId second);
  void contributed(plan::ParamId param);
};

}  // namespace shardscope::model
