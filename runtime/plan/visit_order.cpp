#include "runtime/plan/visit_order.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/plan/backward_ends.h"
#include "runtime/plan/model_check.h"
#include "runtime/plan/returned_values.h"

namespace shardscope::plan {
namespace {

/// Runs the tree once, recording the visits of the forward and a tape that backward reads in reverse.
class Walker {
 public:
  Walker(const ModelPlan& model, const VisitOptions& options)
      : model_(model), options_(options), returned_(model, compat()) {
    // Build all indices first: a node may reuse a module, or read a weight, that comes later in the tree.
    for (const ModulePlan& module : model.modules) ids_.emplace(module.path, module.id);
    for (const ParamPlan& param : model.params) params_.emplace(param.name, param.id);
    index_nodes(model.spec.root, "");
  }

  std::vector<Visit> run() {
    Tape tape;
    const bool from_data = false;  // data needs no gradient
    run_node(model_.spec.root, "", from_data, tape);
    // After the whole forward: visits_ is in chronological order.
    play(tape);
    return std::move(visits_);
  }

 private:
  /// One operation of the forward, as needed by backward.
  struct Step {
    enum class Kind : std::uint8_t { enter, leave, recompute } kind = Kind::enter;
    ModuleId module{};
    bool reports_end = false;  ///< enter: the module's input needs a gradient
    // Indices into visits_, which only grows: they stay valid while the backward is appended.
    std::size_t first = 0;  ///< recompute: visits to repeat
    std::size_t last = 0;
  };
  using Tape = std::vector<Step>;

  [[nodiscard]] Compat compat() const {
    return options_.deepspeed_hooks ? Compat::deepspeed : Compat::shardscope;
  }

  void index_nodes(const NodeSpec& node, const std::string& path) {
    if (is_module(node)) nodes_.emplace(path, &node);
    for (const NodeSpec& child : node.children) {
      // A functional node has no path component, its children do.
      index_nodes(child, is_module(child) ? join_path(path, child.name) : path);
    }
  }

  [[nodiscard]] const ModulePlan& module_at(const std::string& path) const {
    return model_.modules[raw(ids_.at(path))];
  }

  [[nodiscard]] bool trains(const std::string& param) const {
    return model_.params[raw(params_.at(param))].trainable;
  }
  /// Whether a parameter of the module itself is trained.
  [[nodiscard]] bool learns(const NodeSpec& node, const std::string& path) const {
    const bool has_bias = node.kind == NodeKind::layer_norm || (node.kind == NodeKind::linear && node.bias);
    // The owner of a tied weight decides whether it is trained.
    return trains(node.weight_of.empty() ? path + ".weight" : node.weight_of) ||
           (has_bias && trains(path + ".bias"));
  }

  /// Returns whether the result needs a gradient.
  // `grad`: whether the input needs a gradient. Once true it stays true: no node detaches the graph.
  bool run_children(const NodeSpec& node, const std::string& path, bool grad, Tape& tape) {
    for (const NodeSpec& child : node.children) {
      grad = run_node(child, is_module(child) ? join_path(path, child.name) : path, grad, tape);
    }
    return grad;
  }

  bool run_list(const NodeSpec& node, const std::string& path, bool grad, Tape& tape) {
    const auto order = options_.list_order.find(ids_.at(path));
    // Without an explicit order the children of a list run in sequence.
    if (order == options_.list_order.end()) return run_children(node, path, grad, tape);
    for (const std::uint32_t index : order->second) {
      if (index >= node.children.size()) {
        throw std::invalid_argument("visit order: list \"" + path + "\" has " +
                                    std::to_string(node.children.size()) + " children, no child " +
                                    std::to_string(index));
      }
      const NodeSpec& child = node.children[index];
      grad = run_node(child, is_module(child) ? join_path(path, child.name) : path, grad, tape);
    }
    return grad;
  }

  bool run_body(const NodeSpec& node, const std::string& path, bool grad, Tape& tape) {
    switch (node.kind) {
      case NodeKind::sequential:
      // The input bypasses the children of a residual, with its gradient.
      case NodeKind::residual:
        return run_children(node, path, grad, tape) || grad;
      case NodeKind::list:
        return run_list(node, path, grad, tape);
      case NodeKind::linear:
      case NodeKind::layer_norm:
      case NodeKind::embedding:
        return grad || learns(node, path);
      case NodeKind::embedding_sum: {
        // Each embedding reads the ids, not the result of the one before.
        bool any = grad;
        for (const NodeSpec& child : node.children) {
          any |= run_node(child, join_path(path, child.name), grad, tape);
        }
        return any;
      }
      case NodeKind::gelu:
      case NodeKind::relu:
      case NodeKind::attention:
        return grad;
      // Not a module: the use counts to the running module, which fetches the weight (P10).
      case NodeKind::functional_linear:
        visits_.push_back({VisitKind::use_external, running_.back(), params_.at(node.weight_of)});
        returned_.read(params_.at(node.weight_of));
        return grad || trains(node.weight_of);
      case NodeKind::conditional: {
        const auto& skips = node.skip_iterations;
        if (std::find(skips.begin(), skips.end(), options_.iteration) != skips.end()) return grad;
        return run_children(node, path, grad, tape);
      }
      // By the path of the target: the same module is visited again, with the same id.
      case NodeKind::reuse:
        return run_node(*nodes_.at(node.target), node.target, grad, tape);
    }
    return grad;
  }

  bool run_node(const NodeSpec& node, const std::string& path, bool grad, Tape& tape) {
    if (!is_module(node)) return run_body(node, path, grad, tape);
    const ModulePlan& module = module_at(path);
    // Lists and modules inside a leaf module have no visits, but their parameters affect `grad`.
    if (!module.hooks) return run_body(node, path, grad, tape);
    visits_.push_back({VisitKind::pre_forward, module.id, kNone<ParamId>});
    // A recomputation repeats its own pre_forward too.
    const std::size_t first = visits_.size() - 1;
    running_.push_back(module.id);
    returned_.entered();
    // Separate, because `leave` is known only after the body.
    Tape inner;
    const bool out = run_body(node, path, grad, inner);
    for (const ParamId param : module.returns) {
      // A parameter of another module is read by attribute first.
      const bool own = std::find(module.params.begin(), module.params.end(), param) != module.params.end();
      if (!own) visits_.push_back({VisitKind::use_external, module.id, param});
      visits_.push_back({VisitKind::return_param, module.id, param});
    }
    running_.pop_back();
    visits_.push_back({VisitKind::post_forward, module.id, kNone<ParamId>});
    returned_.left(module.id);

    // Read in reverse: recompute, leave (pre_backward), the modules inside, enter (post_backward).
    tape.push_back({Step::Kind::enter, module.id, grad, 0, 0});
    tape.insert(tape.end(), inner.begin(), inner.end());
    // If the output needs no gradient, backward of the module never runs.
    if (out) tape.push_back({Step::Kind::leave, module.id, false, 0, 0});
    // `last` is one past its post_forward. Without a backward there is no recomputation.
    if (out && node.checkpoint) {
      tape.push_back({Step::Kind::recompute, module.id, false, first, visits_.size()});
    }
    return out;
  }

  void play(const Tape& tape) {
    BackwardEnds ends(compat());
    for (auto step = tape.rbegin(); step != tape.rend(); ++step) {
      switch (step->kind) {
        // DeepSpeed's further fetches come before the module's own; all are pre_backward of the same module.
        case Step::Kind::leave:
          for (std::size_t fetches = 1 + returned_.further_fetches(step->module); fetches > 0; --fetches) {
            visits_.push_back({VisitKind::pre_backward, step->module, kNone<ParamId>});
          }
          break;
        // reports() has a side effect (of several visits the first call returns true), so call it only where
        // an end is possible.
        case Step::Kind::enter:
          if (!step->reports_end || !ends.reports(step->module)) break;
          visits_.push_back({VisitKind::post_backward, step->module, kNone<ParamId>});
          break;
        case Step::Kind::recompute: {
          visits_.push_back({VisitKind::begin_recompute, step->module, kNone<ParamId>});
          returned_.recomputes(step->module);
          // A copy: inserting a range of a vector into itself would read memory that has moved.
          const std::vector<Visit> again(visits_.begin() + static_cast<std::ptrdiff_t>(step->first),
                                         visits_.begin() + static_cast<std::ptrdiff_t>(step->last));
          // The two trackers must see the copied visits: modules visited again report their end again, and
          // parameters read here were returned by this forward.
          for (std::size_t i = 0; i < again.size(); ++i) {
            const Visit& visit = again[i];
            if (visit.kind == VisitKind::pre_forward) {
              ends.forward(visit.module);
              returned_.entered();
            }
            if (visit.kind == VisitKind::post_forward) returned_.left(visit.module);
            // Read only to be returned: not a use.
            const bool to_return = i + 1 < again.size() && again[i + 1].kind == VisitKind::return_param &&
                                   again[i + 1].param == visit.param;
            if (visit.kind == VisitKind::use_external && !to_return) returned_.read(visit.param);
          }
          visits_.insert(visits_.end(), again.begin(), again.end());
          visits_.push_back({VisitKind::end_recompute, step->module, kNone<ParamId>});
          break;
        }
      }
    }
  }

  const ModelPlan& model_;
  const VisitOptions& options_;
  ReturnedValues returned_;
  std::map<std::string, ModuleId> ids_;
  std::map<std::string, ParamId> params_;
  std::map<std::string, const NodeSpec*> nodes_;
  std::vector<ModuleId> running_;
  std::vector<Visit> visits_;
};

}  // namespace

std::vector<Visit> visit_order(const ModelPlan& model, const VisitOptions& options) {
  return Walker(model, options).run();
}

}  // namespace shardscope::plan
