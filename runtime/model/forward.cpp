// The forward pass: one visit per node, hooks at module boundaries, a frame per visit if a backward follows.
#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/model/executor_state.h"

namespace shardscope::model {

using instrumentation::EventKind;
using instrumentation::MemoryCategory;
using kernels::ConstPtr;
using kernels::Exec;
using kernels::Ptr;
using plan::kNone;
using plan::NodeKind;
using plan::ParamId;

namespace {

bool is_linear(const Node& node) {
  return node.kind == NodeKind::linear || node.kind == NodeKind::functional_linear;
}

/// Whether the last kernel of a node is a product, which can add to its result.
bool ends_in_linear(const Node& node) {
  if (node.kind != NodeKind::sequential) return is_linear(node);
  return !node.children.empty() && ends_in_linear(node.children.back());
}

/// Whether a linear layer also computes the GELU after it, in a forward that is followed by a backward. A
/// checkpointed node needs its own input.
bool gelu_within_linear(const Node& linear, const Node& next, const Frame* tape) {
  return is_linear(linear) && next.kind == NodeKind::gelu && tape != nullptr && !linear.checkpoint &&
         !next.checkpoint;
}

}  // namespace

/// Whether the injected fault applies to this node. A recomputation repeats its forward.
bool Executor::State::detours(const Node& node) const {
  return fault && mode != Mode::evaluate && node.module == fault->module && fault->in(iteration);
}

/// The child that runs at position `place`.
const Node& Executor::State::child_at(const Node& node, std::size_t place) const {
  const std::vector<Node>& children = node.children;
  const auto swapped = [&](const Node& child) { return fault && fault->swaps && detours(child); };
  if (place + 1 < children.size() && swapped(children[place])) return children[place + 1];
  if (place > 0 && swapped(children[place - 1])) return children[place - 1];
  return children[place];
}

Value Executor::State::visit(const Node& node, Value x, Frame* tape_of_parent, ForwardAround* around) {
  if (fault && !fault->swaps && detours(node)) return x;
  switch (node.kind) {
    case NodeKind::reuse:
      return visit(*node.target, std::move(x), tape_of_parent);
    case NodeKind::conditional: {
      const auto& skip = node.spec->skip_iterations;
      if (std::find(skip.begin(), skip.end(), iteration) != skip.end()) return x;
      return run_children(node, std::move(x), tape_of_parent);
    }
    case NodeKind::list:
      return run_children(node, std::move(x), tape_of_parent);
    default:
      break;
  }

  Frame* frame = nullptr;
  if (tape_of_parent != nullptr) {
    frame = tape_of_parent->children.emplace_back(std::make_unique<Frame>()).get();
    frame->node = &node;
    frame->input_grad = x.needs_grad();
  }
  if (node.hooks) hooks.pre_forward(node.module);
  emit_module(EventKind::module_begin, node, forward_pass());
  Value y;
  if (node.checkpoint && frame != nullptr) {
    frame->checkpointed = true;
    frame->x = x;
    y = compute(node, std::move(x), nullptr, around);
  } else {
    y = compute(node, std::move(x), frame, around);
  }
  if (frame != nullptr) settle(*frame, y.needs_grad());
  emit_module(EventKind::module_end, node, forward_pass());
  if (node.hooks) hooks.post_forward(node.module);
  return y;
}

/// If nothing in the frame is trained there is no backward: frees the data kept for it.
void Executor::State::settle(Frame& frame, bool output_grad) {
  frame.output_grad = output_grad;
  if (output_grad) return;
  frame.checkpointed = false;
  frame.x.reset();
  frame.y.reset();
  frame.stats.reset();
  frame.children.clear();
}

/// A linear layer at the end adds `onto`; see residual. `unread`: the result is not read.
Value Executor::State::run_children(const Node& node, Value x, Frame* tape_of_children, const Value& onto,
                                    bool unread) {
  ForwardAround around;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const Node& child = child_at(node, i);
    const Node* const next = i + 1 < node.children.size() ? &child_at(node, i + 1) : nullptr;
    const bool has_gelu = next != nullptr && gelu_within_linear(child, *next, tape_of_children);
    around.gelu = has_gelu ? next : nullptr;
    if (next == nullptr) {
      around.onto = onto;
      around.unread = unread;
    }
    x = visit(child, std::move(x), tape_of_children, &around);
  }
  return x;
}

Value Executor::State::compute(const Node& node, Value x, Frame* frame, ForwardAround* around) {
  switch (node.kind) {
    case NodeKind::sequential:
    case NodeKind::list:
    case NodeKind::conditional:
      return run_children(node, std::move(x), frame, around != nullptr ? around->onto : Value(),
                          around != nullptr && around->unread);
    case NodeKind::linear:
      return linear(node, std::move(x), frame, around);
    case NodeKind::functional_linear:
      return functional_linear(node, std::move(x), frame, around);
    case NodeKind::layer_norm:
      return layer_norm(node, std::move(x), frame);
    case NodeKind::gelu:
    case NodeKind::relu:
      return activation(node, std::move(x), frame, around);
    case NodeKind::residual:
      return residual(node, std::move(x), frame, around);
    case NodeKind::attention:
      return attention(node, std::move(x), frame);
    case NodeKind::embedding:
      return embedding(node, Value(), frame);
    case NodeKind::embedding_sum:
      return embedding_sum(node, frame);
    case NodeKind::reuse:
      return visit(*node.target, std::move(x), frame);
  }
  return x;
}

/// Counted in the first forward only: a recomputation contributes no further gradient.
void Executor::State::count_use(ParamId param) {
  if (mode == Mode::train && trains(param)) ++uses[plan::raw(param)];
}

Value Executor::State::linear(const Node& node, Value x, Frame* frame, ForwardAround* around) {
  count_use(node.weight);
  count_use(node.bias);
  const ConstPtr bias = node.bias == kNone<ParamId> ? ConstPtr() : hooks.param(node.bias);
  return linear_with(node, std::move(x), hooks.param(node.weight), bias, frame, around);
}

Value Executor::State::functional_linear(const Node& node, Value x, Frame* frame, ForwardAround* around) {
  count_use(node.weight);
  hooks.use_external(node.weight, node.enclosing);
  return linear_with(node, std::move(x), hooks.param(node.weight), ConstPtr(), frame, around);
}

Value Executor::State::linear_with(const Node& node, Value x, ConstPtr weight, ConstPtr bias, Frame* frame,
                                   ForwardAround* around) {
  const bool onto_grad = around != nullptr && around->onto.needs_grad();
  const bool grad = x.needs_grad() || learns(node) || onto_grad;
  if (around != nullptr && around->unread) {
    if (frame != nullptr && trains(node.weight)) frame->x = std::move(x);
    return {kernels::Ptr{nullptr, type}, node.out, grad};
  }
  Value y = allocate(node, node.out, grad);
  if (around != nullptr && around->gelu != nullptr) {
    around->activated = allocate(*around->gelu, node.out, grad);
    launch(Kernel::linear_gelu_forward, node,
           [y = around->activated.ptr(), kept = y.ptr(), x = x.ptr(), weight, bias, n = N, in = node.in,
            out = node.out](const Exec& e) {
             kernels::linear_gelu_forward(e, y, kept, x, weight, bias, n, in, out);
           });
  } else {
    const ConstPtr onto = around != nullptr ? ConstPtr(around->onto.ptr()) : ConstPtr();
    launch(Kernel::linear_forward, node,
           [y = y.ptr(), x = x.ptr(), weight, bias, n = N, in = node.in, out = node.out,
            onto](const Exec& e) { kernels::linear_forward(e, y, x, weight, bias, n, in, out, onto); });
  }
  if (frame != nullptr && trains(node.weight)) frame->x = std::move(x);  // only its gradient needs it
  return y;
}

Value Executor::State::layer_norm(const Node& node, Value x, Frame* frame) {
  count_use(node.weight);
  count_use(node.bias);
  Value y = allocate(node, node.out, x.needs_grad() || learns(node));
  device::Buffer stats =
      allocate_bytes(node, 2 * static_cast<std::size_t>(N) * sizeof(float), MemoryCategory::activation);
  auto* const mean = static_cast<float*>(stats.data());
  launch(Kernel::layer_norm_forward, node,
         [y = y.ptr(), mean, x = x.ptr(), weight = hooks.param(node.weight), bias = hooks.param(node.bias),
          n = N, width = node.out, epsilon = static_cast<float>(node.spec->epsilon)](const Exec& e) {
           kernels::layer_norm_forward(e, y, mean, mean + n, x, weight, bias, n, width, epsilon);
         });
  if (frame != nullptr) {
    frame->x = std::move(x);
    frame->stats = std::move(stats);
  }
  return y;
}

Value Executor::State::activation(const Node& node, Value x, Frame* frame, ForwardAround* around) {
  if (around != nullptr && around->activated) {  // by the linear layer before
    frame->x = std::move(x);
    frame->gelu = Frame::Gelu::kept;
    return std::exchange(around->activated, Value());
  }
  // Element-wise kernels may write where they read, so nothing is allocated if the input is not needed again.
  const bool in_place = frame == nullptr && x.sole_owner();
  Value y = in_place ? x : allocate(node, x.width(), x.needs_grad());
  const std::int64_t n = N * x.width();
  if (node.kind == NodeKind::gelu) {
    launch(Kernel::gelu_forward, node,
           [y = y.ptr(), x = x.ptr(), n](const Exec& e) { kernels::gelu_forward(e, y, x, n); });
  } else {
    launch(Kernel::relu_forward, node,
           [y = y.ptr(), x = x.ptr(), n](const Exec& e) { kernels::relu_forward(e, y, x, n); });
  }
  if (frame != nullptr) frame->x = std::move(x);
  return y;
}

Value Executor::State::residual(const Node& node, Value x, Frame* frame, const ForwardAround* around) {
  // See [Note: within the kernels around].
  const bool within = !node.children.empty() && ends_in_linear(node.children.back());
  Value branch =
      run_children(node, x, frame, within ? x : Value(), within && around != nullptr && around->unread);
  if (within) return branch;
  const std::int64_t n = N * x.width();
  Value y = branch.sole_owner() ? branch : allocate(node, x.width(), branch.needs_grad());
  if (x.needs_grad()) y.need_grad();
  launch(Kernel::add, node, [y = y.ptr(), x = x.ptr(), branch = branch.ptr(), n](const Exec& e) {
    kernels::add(e, y, x, branch, n);
  });
  return y;
}

Value Executor::State::attention(const Node& node, Value x, Frame* frame) {
  const std::int64_t width = x.width() / 3;
  const std::int64_t heads = node.spec->heads;
  Value y = allocate(node, width, x.needs_grad());
  device::Buffer sums = allocate_bytes(
      node, static_cast<std::size_t>(batch.B * heads * batch.T) * sizeof(float), MemoryCategory::activation);
  const device::Buffer scratch =
      allocate_bytes(node, kernels::attention_scratch_bytes(exec, type, batch.B, batch.T, width, heads),
                     MemoryCategory::temporary);
  launch(Kernel::attention_forward, node,
         [y = y.ptr(), sums = static_cast<float*>(sums.data()), x = x.ptr(), b = batch.B, t = batch.T, width,
          heads, scratch = scratch.data()](const Exec& e) {
           kernels::attention_forward(e, y, sums, x, b, t, width, heads, scratch);
         });
  if (frame != nullptr) {
    frame->x = std::move(x);
    frame->y = y;
    frame->stats = std::move(sums);
  }
  return y;
}

/// Writes a new value, or adds to `onto`.
Value Executor::State::embedding(const Node& node, Value onto, Frame* frame) {
  count_use(node.weight);
  const auto write = onto ? kernels::Write::add : kernels::Write::set;
  Value y = onto ? std::move(onto) : allocate(node, node.out, false);
  if (learns(node)) y.need_grad();
  launch(Kernel::embedding_forward, node,
         [y = y.ptr(), table = hooks.param(node.weight), index = lookup(node), n = N, width = node.out,
          write](const Exec& e) { kernels::embedding_forward(e, y, table, index, n, width, write); });
  if (frame != nullptr) frame->output_grad = learns(node);
  return y;
}

Value Executor::State::embedding_sum(const Node& node, Frame* frame) {
  Value sum;
  for (const Node& child : node.children) {
    Frame* child_frame = nullptr;
    if (frame != nullptr) {
      child_frame = frame->children.emplace_back(std::make_unique<Frame>()).get();
      child_frame->node = &child;
    }
    if (child.hooks) hooks.pre_forward(child.module);
    emit_module(EventKind::module_begin, child, forward_pass());
    sum = embedding(child, std::move(sum), child_frame);
    emit_module(EventKind::module_end, child, forward_pass());
    if (child.hooks) hooks.post_forward(child.module);
  }
  return sum;
}

const std::int32_t* Executor::State::lookup(const Node& node) const {
  if (node.spec->lookup == plan::Lookup::tokens) return batch.tokens;
  if (batch.positions == nullptr) {
    throw std::invalid_argument("executor: the model looks positions up, and the batch has none");
  }
  return batch.positions;
}

void Executor::State::start_batch(const Batch& next, std::int64_t next_iteration, Mode next_mode) {
  batch = next;
  N = batch.B * batch.T;
  iteration = next_iteration;
  mode = next_mode;
  tape.children.clear();
  output_grad.reset();
  std::fill(uses.begin(), uses.end(), 0U);
}

Value Executor::State::network_input() {
  if (plan.spec.input == plan::InputKind::tokens) return {};
  const std::int64_t width = plan.spec.input_width;
  // The const_cast is safe: no kernel writes an input.
  const Ptr raw{const_cast<float*>(batch.inputs), kernels::DType::f32};
  if (type == kernels::DType::f32) return {raw, width, false};
  Value x = allocate(program.root(), width, false);
  launch(Kernel::cast, program.root(),
         [x = x.ptr(), raw, n = N * width](const Exec& e) { kernels::cast(e, x, raw, n); });
  return x;
}

void Executor::State::loss_and_gradient(const Node& node, Value output, float loss_scale, float* loss) {
  if (plan.spec.loss == plan::LossKind::cross_entropy) {
    output_grad = make_writable(node, std::move(output));
    launch(Kernel::cross_entropy, node,
           [loss, logits = output_grad.ptr(), targets = batch.targets, n = N, width = output_grad.width(),
            loss_scale, ignored = batch.ignored](const Exec& e) {
             kernels::cross_entropy(e, loss, logits, targets, n, width, loss_scale, ignored);
           });
    return;
  }
  const std::int64_t n = N * output.width();
  output_grad = allocate(node, output.width(), output.needs_grad());
  launch(Kernel::mse, node,
         [loss, dx = output_grad.ptr(), x = output.ptr(), labels = batch.labels, n,
          loss_scale](const Exec& e) { kernels::mse(e, loss, dx, x, labels, n, loss_scale); });
}

void Executor::State::forward(const Batch& next, std::int64_t next_iteration, float loss_scale, float* loss) {
  start_batch(next, next_iteration, Mode::train);
  Frame* const frame = tape.children.emplace_back(std::make_unique<Frame>()).get();
  frame->node = &program.root();
  run_root(frame, loss_scale, loss);
}

void Executor::State::evaluate(const Batch& next, std::int64_t next_iteration, float* loss) {
  start_batch(next, next_iteration, Mode::evaluate);
  run_root(nullptr, 0.0F, loss);
}

/// The root is handled separately: the loss belongs to its forward. Without a frame no backward follows.
void Executor::State::run_root(Frame* frame, float loss_scale, float* loss) {
  const Node& root = program.root();
  if (root.hooks) hooks.pre_forward(root.module);
  emit_module(EventKind::module_begin, root, forward_pass());
  Value output = compute(root, network_input(), frame);
  if (frame != nullptr) frame->output_grad = output.needs_grad();
  loss_and_gradient(root, std::move(output), loss_scale, loss);
  if (frame == nullptr) output_grad.reset();  // the loss kernel's by-product
  emit_module(EventKind::module_end, root, forward_pass());
  if (root.hooks) hooks.post_forward(root.module);
}

void Executor::State::logits(const Batch& next, std::span<float> out) {
  start_batch(next, iteration, Mode::evaluate);
  const Node& root = program.root();
  const Value output = visit(root, network_input(), nullptr);
  const std::int64_t n = N * output.width();
  if (static_cast<std::int64_t>(out.size()) != n) {
    throw std::invalid_argument("logits: the buffer holds " + std::to_string(out.size()) +
                                " values, but the model gives " + std::to_string(n));
  }
  device::Buffer staging = allocate_bytes(root, out.size_bytes(), MemoryCategory::temporary);
  const Ptr full{staging.data(), kernels::DType::f32};
  launch(Kernel::cast, root,
         [full, from = output.ptr(), n](const Exec& e) { kernels::cast(e, full, from, n); });
  device.copy_async(out.data(), staging.data(), out.size_bytes(), stream);
  stream.synchronize();
}

}  // namespace shardscope::model
