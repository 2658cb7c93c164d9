#include "runtime/model/program.h"

#include <map>
#include <stdexcept>
#include <string>

#include "runtime/plan/model_check.h"

namespace shardscope::model {
namespace {

using plan::kNone;
using plan::ModuleId;
using plan::NodeKind;
using plan::NodeSpec;
using plan::ParamId;

class Builder {
 public:
  explicit Builder(const plan::ModelPlan& model) : model_(model) {
    for (const plan::ParamPlan& param : model.params) params_.emplace(param.name, param.id);
  }

  /// Modules are visited in the order of the plan's numbering (pre-order), so a counter identifies them.
  Node build(const NodeSpec& spec, ModuleId enclosing, bool checkpoint) {
    Node node;
    node.kind = spec.kind;
    node.spec = &spec;
    node.enclosing = enclosing;
    if (plan::is_module(spec)) {
      node.module = ModuleId{next_module_++};
      node.hooks = module_of(node).hooks;
      if (node.hooks) node.enclosing = node.module;
    }
    set_params(node);
    // A checkpoint needs a module whose boundaries can be named; a list or a functional node passes the
    // request down to the modules it runs.
    const bool wanted = spec.checkpoint || checkpoint;
    node.checkpoint = wanted && node.is_module();
    node.children.reserve(spec.children.size());
    for (const NodeSpec& child : spec.children) {
      node.children.push_back(build(child, node.enclosing, wanted && !node.is_module()));
    }
    return node;
  }

  /// After the tree is final: paths of modules to nodes.
  void collect(const Node& node) {
    if (node.module != kNone<ModuleId>) by_path_.emplace(module_of(node).path, &node);
    for (const Node& child : node.children) collect(child);
  }
  void resolve(Node& node) const {
    if (node.kind == NodeKind::reuse) {
      const auto found = by_path_.find(node.spec->target);
      if (found == by_path_.end()) {
        throw std::invalid_argument("model: reuse of \"" + node.spec->target + "\", which is no module");
      }
      node.target = found->second;
    }
    for (Node& child : node.children) resolve(child);
  }

 private:
  [[nodiscard]] const plan::ModulePlan& module_of(const Node& node) const {
    return model_.modules.at(plan::raw(node.module));
  }

  void set_params(Node& node) const {
    node.in = node.spec->in;
    node.out = node.spec->out;
    switch (node.kind) {
      case NodeKind::linear:
      case NodeKind::layer_norm:
      case NodeKind::embedding: {
        const std::vector<ParamId>& params = module_of(node).params;
        node.weight = params.at(0);
        if (params.size() > 1) node.bias = params[1];
        break;
      }
      case NodeKind::functional_linear: {
        const auto found = params_.find(node.spec->weight_of);
        if (found == params_.end()) {
          throw std::invalid_argument("model: functional_linear reads \"" + node.spec->weight_of +
                                      "\", which is no parameter");
        }
        node.weight = found->second;
        const std::vector<std::int64_t>& shape = model_.params[plan::raw(node.weight)].shape;
        node.out = shape.at(0);
        node.in = shape.at(1);
        break;
      }
      default:
        break;
    }
  }

  const plan::ModelPlan& model_;
  std::map<std::string, ParamId> params_;
  std::map<std::string, const Node*> by_path_;
  std::uint32_t next_module_ = 0;
};

}  // namespace

Program::Program(const plan::ModelPlan& model) {
  Builder builder(model);
  root_ = builder.build(model.spec.root, ModuleId{0}, false);
  root_.checkpoint = false;  // the loss belongs to the root's forward and must not be recomputed
  builder.collect(root_);
  builder.resolve(root_);
}

}  // namespace shardscope::model
