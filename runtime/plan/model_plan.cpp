#include "runtime/plan/model_plan.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "runtime/plan/model_check.h"

namespace shardscope::plan {
namespace {

/// Limit of a whole model, as in a run's tables: products with bytes per element stay far below 2^63.
constexpr std::int64_t kMostElems = std::int64_t{1} << 50;

/// torch's class names, which leaf_module.classes of a configuration matches. Kinds that are never modules
/// have none.
const char* default_type(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::sequential:
      return "Sequential";
    case NodeKind::list:
      return "ModuleList";
    case NodeKind::linear:
      return "Linear";
    case NodeKind::layer_norm:
      return "LayerNorm";
    case NodeKind::embedding:
      return "Embedding";
    case NodeKind::gelu:
      return "GELU";
    case NodeKind::relu:
      return "ReLU";
    case NodeKind::residual:
    case NodeKind::attention:
    case NodeKind::embedding_sum:
    case NodeKind::functional_linear:
    case NodeKind::conditional:
    case NodeKind::reuse:
      return "";
  }
  return "";
}

/// Numbers modules and parameters in pre-order, as torch's named_modules does.
class Numbering {
 public:
  explicit Numbering(ModelPlan& plan) : plan_(plan) {}

  /// `trainable`: the value inherited from the enclosing module.
  void walk(const NodeSpec& node, const std::string& parent_path, ModuleId parent, ModuleId leaf,
            bool trainable) {
    // A functional node has no id and no path component: its children belong to the enclosing module.
    if (!is_module(node)) {
      for (const NodeSpec& child : node.children) walk(child, parent_path, parent, leaf, trainable);
      return;
    }
    // Inherited unless the node sets it.
    trainable = node.trainable.value_or(trainable);
    // Assigned before the children are walked: ids are in pre-order, a parent's is below its children's.
    const ModuleId id{static_cast<std::uint32_t>(plan_.modules.size())};
    const std::string path = join_path(parent_path, node.name);
    ModulePlan module;
    module.id = id;
    module.parent = parent;
    module.path = path;
    module.type = node.type.empty() ? default_type(node.kind) : node.type;
    // A list has no forward of its own, and inside a leaf module nothing may fetch (C13).
    module.hooks = node.kind != NodeKind::list && leaf == kNone<ModuleId>;
    // A leaf inside a leaf is ignored: the outer one has fetched everything already.
    module.leaf = node.leaf && module.hooks;
    plan_.modules.push_back(std::move(module));

    // A leaf module fetches everything below it, so its parameters are listed with it. Parameters inside
    // nested leaves belong to the outermost one.
    const ModuleId inside = leaf == kNone<ModuleId> && node.leaf ? id : leaf;
    add_params(node, path, id, inside, trainable);
    for (const NodeSpec& child : node.children) walk(child, path, id, inside, trainable);
    // Last: a module may return a parameter of a module below it.
    add_returns(node, path, id);
  }

 private:
  void add_params(const NodeSpec& node, const std::string& path, ModuleId id, ModuleId leaf, bool trainable) {
    // A setting for the weight or bias alone overrides that of the module.
    const bool weight = node.trainable_weight.value_or(trainable);
    const bool bias = node.trainable_bias.value_or(trainable);
    switch (node.kind) {
      case NodeKind::linear:
        // Row-major [out, in], as torch's Linear stores it.
        if (node.weight_of.empty()) {
          add(path + ".weight", {node.out, node.in}, ParamKind::matrix, id, leaf, weight);
        } else {
          // Only the weight is shared: the bias is the module's own.
          share(path, node, id, leaf);
        }
        if (node.bias) add(path + ".bias", {node.out}, ParamKind::bias, id, leaf, bias);
        break;
      case NodeKind::layer_norm:
        // A layer norm has no matrix: both of its parameters have one dimension.
        add(path + ".weight", {node.out}, ParamKind::layer_norm_weight, id, leaf, weight);
        add(path + ".bias", {node.out}, ParamKind::bias, id, leaf, bias);
        break;
      case NodeKind::embedding:
        // [rows, width]: the shape of a Linear that maps width to rows, so that the two can be tied.
        if (node.weight_of.empty()) {
          add(path + ".weight", {node.in, node.out}, ParamKind::embedding, id, leaf, weight);
        } else {
          share(path, node, id, leaf);
        }
        break;
      default:
        break;
    }
  }

  void add(std::string name, std::vector<std::int64_t> shape, ParamKind kind, ModuleId id, ModuleId leaf,
           bool trainable) {
    ParamPlan param;
    param.trainable = trainable;
    param.id = ParamId{static_cast<std::uint32_t>(plan_.params.size())};
    param.elems = 1;
    // By division, so that the product cannot overflow. Extents are at least 1 (check_model()).
    for (const std::int64_t extent : shape) {
      if (param.elems > (kMostElems - plan_.elems) / extent) {
        throw std::invalid_argument("model: " + name + " of " + shape_text(shape) +
                                    ": with it the model has more than 2^50 elements; make it smaller");
      }
      param.elems *= extent;
    }
    param.name = std::move(name);
    param.shape = std::move(shape);
    param.kind = kind;
    by_name_.emplace(param.name, param.id);
    // by_name_ holds the owner's name only; by_path_ is for `returns`, which may name a tied weight by the
    // path of a user.
    by_path_.emplace(param.name, param.id);
    // Once per parameter, however many modules share it (M1).
    plan_.elems += param.elems;
    plan_.params.push_back(std::move(param));
    // `param` has been moved into the list.
    attach(plan_.params.back().id, id, leaf);
  }

  /// Call after everything below the node is numbered.
  void add_returns(const NodeSpec& node, const std::string& path, ModuleId id) {
    for (const std::string& name : node.returns) {
      const auto found = by_path_.find(join_path(path, name));
      if (found == by_path_.end()) {
        throw std::invalid_argument("model: " + path + ": returns \"" + name +
                                    "\", which is no parameter of this module or below it; give its path "
                                    "from here, such as \"weight\" or \"wte.weight\"");
      }
      auto& returns = plan_.modules[raw(id)].returns;
      // Two names may refer to one tied parameter.
      if (std::find(returns.begin(), returns.end(), found->second) == returns.end()) {
        returns.push_back(found->second);
      }
    }
  }

  /// A tied weight: the parameter already exists because its owner comes first in the walk.
  void share(const std::string& path, const NodeSpec& node, ModuleId id, ModuleId leaf) {
    const auto found = by_name_.find(node.weight_of);
    if (found == by_name_.end()) {
      throw std::invalid_argument(
          "model: " + path + ": weight_of \"" + node.weight_of +
          "\" names no parameter that comes before it; give the full path of a weight "
          "such as \"transformer.wte.weight\"");
    }
    const ParamPlan& owner = plan_.params[raw(found->second)];
    const std::vector<std::int64_t> wanted = node.kind == NodeKind::linear
                                                 ? std::vector<std::int64_t>{node.out, node.in}
                                                 : std::vector<std::int64_t>{node.in, node.out};
    // Both shapes have the same order of axes, [rows or out, width or in]: no transpose is needed.
    if (owner.shape != wanted) {
      throw std::invalid_argument("model: " + path + ": weight_of \"" + node.weight_of + "\" has shape " +
                                  shape_text(owner.shape) + ", but this module needs " + shape_text(wanted));
    }
    by_path_.emplace(path + ".weight", found->second);
    attach(found->second, id, leaf);
  }

  void attach(ParamId param, ModuleId id, ModuleId leaf) {
    // Once in each list: a leaf may have a tied weight in several modules below it.
    auto append = [&](ModuleId module) {
      auto& params = plan_.modules[raw(module)].params;
      if (std::find(params.begin(), params.end(), param) == params.end()) params.push_back(param);
    };
    // In its own module, and also in the enclosing leaf module, which fetches it (C13). `owners` below lists
    // only the former: M1 counts direct parameters.
    append(id);
    if (leaf != kNone<ModuleId> && leaf != id) append(leaf);
    auto& owners = plan_.params[raw(param)].modules;
    if (std::find(owners.begin(), owners.end(), id) == owners.end()) owners.push_back(id);
  }

  ModelPlan& plan_;
  std::map<std::string, ParamId> by_name_;
  std::map<std::string, ParamId> by_path_;  ///< a tied parameter has one path per module
};

}  // namespace

std::vector<bool> trainable_params(const ModelPlan& model) {
  std::vector<bool> trainable;
  trainable.reserve(model.params.size());
  for (const ParamPlan& param : model.params) trainable.push_back(param.trainable);
  return trainable;
}

std::vector<std::uint32_t> groups_of_params(const ModelPlan& model) {
  std::vector<std::uint32_t> groups;
  groups.reserve(model.params.size());
  for (const ParamPlan& param : model.params) groups.push_back(param.group);
  return groups;
}

std::int64_t trainable_elems(const ModelPlan& model) noexcept {
  std::int64_t elems = 0;
  for (const ParamPlan& param : model.params) elems += param.trainable ? param.elems : 0;
  return elems;
}

ModelPlan build_model_plan(ModelSpec spec) {
  // First: the numbering relies on checked names and extents.
  check_model(spec);
  ModelPlan plan;
  Numbering(plan).walk(spec.root, "", kNone<ModuleId>, kNone<ModuleId>, true);
  // A model without parameters is accepted: nothing in it is frozen.
  if (!plan.params.empty() && trainable_elems(plan) == 0) {
    throw std::invalid_argument(
        "model: every parameter is frozen (\"trainable\": false), so there is nothing to train; leave at "
        "least one trainable");
  }
  plan.spec = std::move(spec);
  // `params` of a leaf module has everything below it, so direct parameters are selected by their owners. A
  // tied weight counts in each module that has it: each of them gathers it.
  for (const ModulePlan& module : plan.modules) {
    std::int64_t direct = 0;
    for (const ParamId param : module.params) {
      const auto& owners = plan.params[raw(param)].modules;
      if (std::find(owners.begin(), owners.end(), module.id) != owners.end()) {
        direct += plan.params[raw(param)].elems;
      }
    }
    plan.largest_module_elems = std::max(plan.largest_module_elems, direct);
  }
  return plan;
}

}  // namespace shardscope::plan
