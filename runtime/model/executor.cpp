#include "runtime/model/executor.h"

#include <array>

#include "runtime/model/executor_state.h"

namespace shardscope::model {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::MemoryCategory;
using instrumentation::Pass;
using instrumentation::StreamId;

Executor::State::State(const plan::ModelPlan& model, device::Device& on, kernels::DType storage,
                       Hooks& engine, GradOrder order)
    : plan(model),
      device(on),
      stream(on.compute()),
      type(storage),
      hooks(engine),
      linear_grads(order),
      program(model),
      uses(model.params.size(), 0) {
  stream.run([this](const kernels::Exec& e) { exec = e; });
  stream.synchronize();
}

Value Executor::State::allocate(const Node& node, std::int64_t width, bool needs_grad) {
  const auto bytes = static_cast<std::size_t>(N * width) * kernels::size_of(type);
  return {allocate_bytes(node, bytes, MemoryCategory::activation), type, width, needs_grad};
}

device::Buffer Executor::State::allocate_bytes(const Node& node, std::size_t bytes, MemoryCategory category) {
  if (bytes == 0) return {};
  return device.memory().allocate(bytes, {category, plan::raw(node.enclosing)}, stream);
}

Value Executor::State::make_writable(const Node& node, Value value) {
  if (value.sole_owner()) return value;
  Value copy = allocate(node, value.width(), value.needs_grad());
  launch(Kernel::cast, node,
         [to = copy.ptr(), from = value.ptr(), n = N * value.width()](const kernels::Exec& e) {
           kernels::cast(e, to, from, n);
         });
  return copy;
}

Pass Executor::State::forward_pass() const noexcept {
  return mode == Mode::recompute ? Pass::recompute : Pass::forward;
}

void Executor::State::emit_module(EventKind kind, const Node& node, Pass pass) {
  if (!node.is_module()) return;
  const std::uint32_t micro_step =
      mode == Mode::evaluate ? instrumentation::kNoId : static_cast<std::uint32_t>(iteration);
  Event event = instrumentation::make<EventKind::module_begin>(
      {.pass = pass, .module = plan::raw(node.module), .micro_step = micro_step});
  event.kind = kind;
  stream.emit(event);
}

void Executor::State::emit_kernel(EventKind kind, Kernel kernel, const Node& node) {
  Event event = instrumentation::make<EventKind::kernel_begin>(
      {.name = kernel_names[static_cast<std::size_t>(kernel)],
       .module = plan::raw(node.is_module() ? node.module : node.enclosing)});
  event.kind = kind;
  stream.emit(event);
}

const char* Executor::State::name_of(Kernel kernel) noexcept {
  switch (kernel) {
    case Kernel::linear_forward:
      return "linear_forward";
    case Kernel::linear_backward_input:
      return "linear_backward_input";
    case Kernel::linear_backward_weight:
      return "linear_backward_weight";
    case Kernel::linear_gelu_forward:
      return "linear_gelu_forward";
    case Kernel::linear_gelu_backward_input:
      return "linear_gelu_backward_input";
    case Kernel::layer_norm_forward:
      return "layer_norm_forward";
    case Kernel::layer_norm_backward:
      return "layer_norm_backward";
    case Kernel::gelu_forward:
      return "gelu_forward";
    case Kernel::gelu_backward:
      return "gelu_backward";
    case Kernel::relu_forward:
      return "relu_forward";
    case Kernel::relu_backward:
      return "relu_backward";
    case Kernel::add:
      return "add";
    case Kernel::embedding_forward:
      return "embedding_forward";
    case Kernel::embedding_backward:
      return "embedding_backward";
    case Kernel::attention_forward:
      return "attention_forward";
    case Kernel::attention_backward:
      return "attention_backward";
    case Kernel::cross_entropy:
      return "cross_entropy";
    case Kernel::mse:
      return "mse";
    case Kernel::cast:
      return "cast";
    case Kernel::fill_zero:
      return "fill_zero";
  }
  return "?";
}

Executor::Executor(const plan::ModelPlan& model, device::Device& device, kernels::DType type, Hooks& hooks,
                   GradOrder linear_grads)
    : state_(std::make_unique<State>(model, device, type, hooks, linear_grads)) {}

// The stream may still run work that reads the activations, so wait before they are freed.
Executor::~Executor() {
  try {
    state_->stream.synchronize();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the waiter has reported the failure
  }
}

void Executor::forward(const Batch& batch, std::int64_t iteration, float loss_scale, float* loss) {
  state_->forward(batch, iteration, loss_scale, loss);
}

void Executor::evaluate(const Batch& batch, std::int64_t iteration, float* loss) {
  state_->evaluate(batch, iteration, loss);
}

void Executor::backward() { state_->backward(); }

void Executor::inject_fault(const plan::ExecutorFault& fault) { state_->fault = fault; }

void Executor::logits(const Batch& batch, std::span<float> logits) { state_->logits(batch, logits); }

void Executor::name_kernels(const std::function<std::uint32_t(const std::string&)>& id_of) {
  std::vector<std::uint32_t> names;
  for (std::size_t i = 0; i < State::kKernelCount; ++i) {
    names.push_back(id_of(State::name_of(static_cast<State::Kernel>(i))));
  }
  state_->kernel_names = std::move(names);
}

}  // namespace shardscope::model
