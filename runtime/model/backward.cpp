// The backward pass, over the frames of the forward in reverse. Each frame is freed after its visit, so
// memory falls as backward proceeds.
//
// [Note: order of hooks and gradients]
// As in PyTorch's autograd under DeepSpeed: pre_backward of a module, its gradients (each as soon as the
// kernel that completes it is queued), then post_backward, unless the module's input needs no gradient. A
// parameter that is used several times is ready once, at its last contribution.
#include <stdexcept>
#include <utility>

#include "runtime/model/executor_state.h"

namespace shardscope::model {

using instrumentation::EventKind;
using instrumentation::MemoryCategory;
using instrumentation::Pass;
using kernels::Exec;
using kernels::Ptr;
using kernels::Write;
using plan::kNone;
using plan::NodeKind;
using plan::ParamId;

void Executor::State::backward() {
  if (mode == Mode::evaluate) {
    throw std::logic_error(
        "backward: the last forward was in evaluation mode, which keeps nothing to go back through; run a "
        "forward in training mode first");
  }
  if (tape.children.empty()) throw std::logic_error("backward: there is no forward to go back through");
  Value dy = std::move(output_grad);
  output_grad.reset();
  if (tape.children.back()->output_grad) visit_backward(*tape.children.back(), std::move(dy));
  tape.children.clear();
}

Value Executor::State::visit_backward(Frame& frame, Value dy, const BackwardAround& around) {
  const Node& node = *frame.node;
  if (frame.checkpointed) recompute(frame);
  if (node.hooks) hooks.pre_backward(node.module);
  emit_module(EventKind::module_begin, node, Pass::backward);
  Value dx = compute_backward(frame, std::move(dy), around);
  emit_module(EventKind::module_end, node, Pass::backward);
  if (node.hooks && frame.input_grad) hooks.post_backward(node.module);
  return dx;
}

/// Runs the forward of a checkpointed block again, this time keeping the data for backward. Its result is not
/// read: PyTorch's non-reentrant checkpointing stops when all data for backward is there, the reentrant one
/// does not. Here only the product of a linear layer at the block's end can be omitted.
void Executor::State::recompute(Frame& frame) {
  const Node& node = *frame.node;
  mode = Mode::recompute;
  frame.checkpointed = false;
  hooks.begin_recompute(node.module);
  if (node.hooks) hooks.pre_forward(node.module);
  emit_module(EventKind::module_begin, node, Pass::recompute);
  ForwardAround around;
  around.unread = plan.spec.checkpoint_early_stop;
  const Value y = compute(node, std::move(frame.x), &frame, &around);
  emit_module(EventKind::module_end, node, Pass::recompute);
  if (node.hooks) hooks.post_forward(node.module);
  hooks.end_recompute(node.module);
  mode = Mode::train;
}

Value Executor::State::compute_backward(Frame& frame, Value dy, const BackwardAround& around) {
  switch (frame.node->kind) {
    case NodeKind::sequential:
      return children_backward(frame, std::move(dy));
    case NodeKind::linear:
    case NodeKind::functional_linear:
      return linear_backward(frame, std::move(dy), around.before);
    case NodeKind::layer_norm:
      return layer_norm_backward(frame, std::move(dy), around.onto);
    case NodeKind::gelu:
    case NodeKind::relu:
      return activation_backward(frame, std::move(dy));
    case NodeKind::residual:
      return residual_backward(frame, std::move(dy));
    case NodeKind::attention:
      return attention_backward(frame, std::move(dy));
    case NodeKind::embedding:
      embedding_backward(frame, dy);
      return {};
    case NodeKind::embedding_sum:
      while (!frame.children.empty()) {
        if (frame.children.back()->output_grad) visit_backward(*frame.children.back(), dy);
        frame.children.pop_back();
      }
      return {};
    // These have no frame: their children's frames belong to the enclosing node.
    case NodeKind::list:
    case NodeKind::conditional:
    case NodeKind::reuse:
      break;
  }
  throw std::logic_error("backward: a node without a frame was recorded");
}

Value Executor::State::children_backward(Frame& frame, Value dy, Value* onto) {
  while (!frame.children.empty()) {
    if (!frame.children.back()->output_grad) {  // nothing before this point is trained
      frame.children.clear();
      return {};
    }
    const std::size_t left = frame.children.size();
    const BackwardAround around{left == 1 ? onto : nullptr,
                                left > 1 ? frame.children[left - 2].get() : nullptr};
    dy = visit_backward(*frame.children.back(), std::move(dy), around);
    frame.children.pop_back();
  }
  return dy;
}

/// No target for a missing or frozen parameter.
Executor::State::Targets Executor::State::grad_targets(const Node& node, ParamId first, ParamId second) {
  const GradTarget a = trains(first) ? hooks.grad(first) : GradTarget();
  const GradTarget b = trains(second) ? hooks.grad(second) : GradTarget();
  if (!trains(second)) return {a.data, {}, a.accumulate ? Write::add : Write::set};
  if (!trains(first)) return {{}, b.data, b.accumulate ? Write::add : Write::set};
  Targets targets{a.data, b.data, a.accumulate ? Write::add : Write::set};
  if (a.accumulate == b.accumulate) return targets;
  // One kernel writes both in a single mode: clear the one that would be set, then add to both.
  const ParamId cleared = a.accumulate ? second : first;
  const Ptr data = a.accumulate ? b.data : a.data;
  const auto bytes =
      static_cast<std::size_t>(plan.params[plan::raw(cleared)].elems) * kernels::size_of(data.type);
  launch(Kernel::fill_zero, node, [data, bytes](const Exec& e) { kernels::fill_zero(e, data.data, bytes); });
  targets.write = Write::add;
  return targets;
}

void Executor::State::contributed(ParamId param) {
  if (!trains(param)) return;
  if (--uses[plan::raw(param)] == 0) hooks.grad_ready(param);
}

Value Executor::State::linear_backward(Frame& frame, Value dy, Frame* before) {
  const Node& node = *frame.node;
  // The weight's gradient first: its reduction may then overlap the computation of the input's, and the input
  // is freed before its gradient is allocated.
  if (learns(node)) {
    const Targets grads = grad_targets(node, node.weight, node.bias);
    launch(Kernel::linear_backward_weight, node,
           [grads, dy = dy.ptr(), x = frame.x.ptr(), n = N, in = node.in, out = node.out](const Exec& e) {
             kernels::linear_backward_weight(e, grads.first, grads.second, dy, x, n, in, out, grads.write);
           });
  }
  if (linear_grads == GradOrder::weight_first) {
    contributed(node.weight);
    contributed(node.bias);
  } else {
    contributed(node.bias);
    contributed(node.weight);
  }
  frame.x.reset();
  if (!frame.input_grad) return {};
  Value dx = allocate(node, node.in, true);
  if (before != nullptr && before->gelu == Frame::Gelu::kept) {
    before->gelu = Frame::Gelu::done;
    launch(Kernel::linear_gelu_backward_input, node,
           [dx = dx.ptr(), dy = dy.ptr(), weight = hooks.param(node.weight), kept = before->x.ptr(), n = N,
            in = node.in, out = node.out](const Exec& e) {
             kernels::linear_gelu_backward_input(e, dx, dy, weight, kept, n, in, out);
           });
    return dx;
  }
  launch(
      Kernel::linear_backward_input, node,
      [dx = dx.ptr(), dy = dy.ptr(), weight = hooks.param(node.weight), n = N, in = node.in, out = node.out](
          const Exec& e) { kernels::linear_backward_input(e, dx, dy, weight, n, in, out, Write::set); });
  return dx;
}

Value Executor::State::layer_norm_backward(Frame& frame, Value dy, Value* onto) {
  const Node& node = *frame.node;
  const Targets grads = grad_targets(node, node.weight, node.bias);
  const bool adds = frame.input_grad && onto != nullptr && onto->sole_owner();
  Value dx = adds ? std::exchange(*onto, Value()) : allocate(node, node.out, true);
  auto* const mean = static_cast<float*>(frame.stats.data());
  launch(Kernel::layer_norm_backward, node,
         [dx = dx.ptr(), grads, dy = dy.ptr(), x = frame.x.ptr(), weight = hooks.param(node.weight), mean,
          n = N, width = node.out, write = adds ? Write::add : Write::set](const Exec& e) {
           kernels::layer_norm_backward(e, dx, grads.first, grads.second, dy, x, weight, mean, mean + n, n,
                                        width, write, grads.write);
         });
  contributed(node.weight);
  contributed(node.bias);
  frame.x.reset();
  frame.stats.reset();
  return frame.input_grad ? dx : Value();
}

Value Executor::State::activation_backward(Frame& frame, Value dy) {
  const Node& node = *frame.node;
  if (frame.gelu == Frame::Gelu::done) {  // applied by the linear layer after it
    frame.x.reset();
    return dy;
  }
  const std::int64_t n = N * dy.width();
  Value dx = dy.sole_owner() ? dy : allocate(node, dy.width(), true);
  const Ptr to = dx.ptr();
  const Ptr from = dy.ptr();
  if (frame.gelu == Frame::Gelu::kept) {
    launch(Kernel::gelu_backward, node, [to, from, kept = frame.x.ptr(), n](const Exec& e) {
      kernels::gelu_backward_kept(e, to, from, kept, n);
    });
  } else if (node.kind == NodeKind::gelu) {
    launch(Kernel::gelu_backward, node,
           [to, from, x = frame.x.ptr(), n](const Exec& e) { kernels::gelu_backward(e, to, from, x, n); });
  } else {
    launch(Kernel::relu_backward, node,
           [to, from, x = frame.x.ptr(), n](const Exec& e) { kernels::relu_backward(e, to, from, x, n); });
  }
  frame.x.reset();
  return dx;
}

Value Executor::State::residual_backward(Frame& frame, Value dy) {
  Value branch = children_backward(frame, dy, frame.input_grad ? &dy : nullptr);
  if (!frame.input_grad) return {};
  if (!branch) return dy;  // the branch does not reach the input
  if (!dy) return branch;  // its first layer has added to dy
  const std::int64_t n = N * dy.width();
  Value dx = branch.sole_owner() ? branch : allocate(*frame.node, dy.width(), true);
  launch(Kernel::add, *frame.node, [dx = dx.ptr(), dy = dy.ptr(), branch = branch.ptr(), n](const Exec& e) {
    kernels::add(e, dx, dy, branch, n);
  });
  return dx;
}

Value Executor::State::attention_backward(Frame& frame, Value dy) {
  const Node& node = *frame.node;
  const std::int64_t width = dy.width();
  const std::int64_t heads = node.spec->heads;
  Value dx = allocate(node, 3 * width, true);
  const device::Buffer scratch =
      allocate_bytes(node, kernels::attention_scratch_bytes(exec, type, batch.B, batch.T, width, heads),
                     MemoryCategory::temporary);
  launch(Kernel::attention_backward, node,
         [dx = dx.ptr(), dy = dy.ptr(), y = frame.y.ptr(), x = frame.x.ptr(),
          sums = static_cast<const float*>(frame.stats.data()), b = batch.B, t = batch.T, width, heads,
          scratch = scratch.data()](const Exec& e) {
           kernels::attention_backward(e, dx, dy, y, x, sums, b, t, width, heads, scratch);
         });
  frame.x.reset();
  frame.y.reset();
  frame.stats.reset();
  return dx;
}

void Executor::State::embedding_backward(Frame& frame, const Value& dy) {
  const Node& node = *frame.node;
  if (!trains(node.weight)) return;
  const GradTarget grad = hooks.grad(node.weight);
  launch(Kernel::embedding_backward, node,
         [table = grad.data, dy = dy.ptr(), index = lookup(node), n = N, rows = node.in, width = node.out,
          write = grad.accumulate ? Write::add : Write::set](const Exec& e) {
           kernels::embedding_backward(e, table, dy, index, n, rows, width, write);
         });
  contributed(node.weight);
}

}  // namespace shardscope::model
