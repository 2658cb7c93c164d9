#include "runtime/plan/leaf_modules.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/plan/model_check.h"

namespace shardscope::plan {
namespace {

constexpr std::int64_t kMaxLeafElems = 1'000'000'000;  ///< Z3_MAX_LEAF_SIZE
// Above every threshold, so that such a module is never a leaf.
constexpr std::int64_t kNoGranularity = std::numeric_limits<std::int64_t>::max();

/// deepspeed/runtime/zero/leaf_module_config.py lists these by default, by their full names.
constexpr std::array<std::string_view, 3> kDefaultClasses{"MixtralSparseMoeBlock", "Qwen2MoeSparseMoeBlock",
                                                          "Qwen3MoeSparseMoeBlock"};

/// "transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock" -> "MixtralSparseMoeBlock".
std::string_view short_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// These may match nothing: DeepSpeed's default names classes that most models do not have.
bool in_defaults(std::string_view name) {
  return std::find(kDefaultClasses.begin(), kDefaultClasses.end(), short_name(name)) != kDefaultClasses.end();
}

/// Applied to a temporary copy of the spec, used for measuring only.
void clear_leaves(NodeSpec& node) {
  node.leaf = false;
  for (NodeSpec& child : node.children) clear_leaves(child);
}

void set_leaves(NodeSpec& node, const std::string& parent, const std::set<std::string>& paths) {
  const std::string path = is_module(node) ? join_path(parent, node.name) : parent;
  // Set only, never cleared: modules marked in the spec stay leaves.
  if (is_module(node) && paths.count(path) != 0) {
    if (node.kind == NodeKind::list) {
      throw std::invalid_argument("leaf_module: \"" + path +
                                  "\" is a list, which nothing enters as a whole; name its children");
    }
    node.leaf = true;
  }
  for (NodeSpec& child : node.children) set_leaves(child, path, paths);
}

/// Finds the paths of the modules that the configuration makes leaves.
class Matcher {
 public:
  /// `model` has no leaves, so that each module lists its own parameters.
  Matcher(const ModelPlan& model, const ZeroConfig& zero)
      : model_(model), zero_(zero), children_(model.modules.size()) {
    // Children by number: ids are in pre-order, so a parent's list is in the order of the tree.
    for (const ModulePlan& module : model.modules) {
      if (module.parent != kNone<ModuleId>) children_[raw(module.parent)].push_back(module.id);
    }
  }

  std::set<std::string> paths() {
    const LeafModuleConfig& leaf = zero_.leaf_module;
    for (const std::string& name : leaf.classes) {
      // The last part only: types here have no package prefix, unlike DeepSpeed's names.
      const bool found = add_all([&](const ModulePlan& m) { return m.type == short_name(name); });
      if (!found && !in_defaults(name)) refuse("classes", name, known_types());
    }
    for (const std::string& name : leaf.names) {
      if (!add_all([&](const ModulePlan& m) { return m.path == name; })) refuse("names", name, known_paths());
    }
    for (const std::string& suffix : leaf.name_suffixes) {
      if (!add_all([&](const ModulePlan& m) { return m.path.ends_with(suffix); })) {
        refuse("name_suffixes", suffix, known_paths());
      }
    }
    // Last: a module named above is a leaf whatever its granularity.
    if (zero_.module_granularity_threshold > 0) by_granularity();
    return std::move(paths_);
  }

 private:
  // All that match, not the first: a class or an ending names each of its modules.
  bool add_all(const std::function<bool(const ModulePlan&)>& matches) {
    bool found = false;
    for (const ModulePlan& module : model_.modules) {
      if (!matches(module)) continue;
      paths_.insert(module.path);
      found = true;
    }
    return found;
  }

  // An entry that matches nothing is usually misspelt; the run would silently be slower without the leaf.
  [[noreturn]] void refuse(const char* list, const std::string& entry, const std::string& known) const {
    throw std::invalid_argument("zero_optimization.leaf_module." + std::string(list) + ": \"" + entry +
                                "\" matches no module of " + model_.spec.name + "; there are " + known);
  }

  // A set: each type once, sorted.
  [[nodiscard]] std::string known_types() const {
    std::set<std::string> types;
    for (const ModulePlan& module : model_.modules) types.insert(module.type);
    return listed({types.begin(), types.end()});
  }
  // Without the root, whose path is empty.
  [[nodiscard]] std::string known_paths() const {
    std::vector<std::string> paths;
    for (const ModulePlan& module : model_.modules) {
      if (!module.path.empty()) paths.push_back(module.path);
    }
    return listed(paths);
  }
  // Only the first names, as examples; a large model has thousands.
  static std::string listed(const std::vector<std::string>& words) {
    constexpr std::size_t kShown = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(words.size(), kShown); ++i) text += (i > 0 ? ", " : "") + words[i];
    return words.size() > kShown ? text + ", ..." : text;
  }

  struct Size {
    // Descendants as the granularity counts them, the module itself included.
    std::int64_t layers = 0;
    std::int64_t elems = 0;
  };

  // Post-order: fills `granularity`, indexed by ModuleId.
  Size measure(ModuleId id, std::vector<std::int64_t>& granularity) {
    const ModulePlan& module = model_.modules[raw(id)];
    Size size;
    for (const ParamId param : module.params) size.elems += model_.params[raw(param)].elems;
    // Innermost: counts as a layer if it has parameters, but never becomes a leaf by granularity.
    if (children_[raw(id)].empty()) return {size.elems > 0 ? 1 : 0, size.elems};
    // Sums include descendants, unlike M1, which counts direct parameters.
    for (const ModuleId child : children_[raw(id)]) {
      const Size below = measure(child, granularity);
      size.layers += below.layers;
      size.elems += below.elems;
    }
    // Containers and modules without parameters are neither layers nor candidates; their descendants count to
    // the parent.
    if (size.elems == 0 || module.type == "Sequential" || module.type == "ModuleList") return size;
    ++size.layers;
    // Larger modules would be gathered all at once, so they never become leaves. `layers` is at least 1 here.
    if (size.elems <= kMaxLeafElems) granularity[raw(id)] = size.elems / size.layers;
    return size;
  }

  void by_granularity() {
    std::vector<std::int64_t> granularity(model_.modules.size(), kNoGranularity);
    measure(ModuleId{0}, granularity);
    // The model has a root, so that there is a smallest one.
    const std::int64_t finest = *std::min_element(granularity.begin(), granularity.end());
    if (finest > zero_.module_granularity_threshold) {
      // A threshold below every granularity would change nothing.
      throw std::invalid_argument("zero_optimization.stage3_module_granularity_threshold is " +
                                  std::to_string(zero_.module_granularity_threshold) +
                                  (finest == kNoGranularity
                                       ? ", but no module of " + model_.spec.name + " can be a leaf"
                                       : ", but the finest module of " + model_.spec.name +
                                             " has a granularity of " + std::to_string(finest) +
                                             "; set at least that, or 0"));
    }
    mark_from(ModuleId{0}, granularity);
  }

  void mark_from(ModuleId id, const std::vector<std::int64_t>& granularity) {
    // The outermost wins: inside a leaf no module has hooks, so modules below need no mark.
    if (granularity[raw(id)] <= zero_.module_granularity_threshold) {
      paths_.insert(model_.modules[raw(id)].path);
      return;
    }
    for (const ModuleId child : children_[raw(id)]) mark_from(child, granularity);
  }

  const ModelPlan& model_;
  const ZeroConfig& zero_;
  std::vector<std::vector<ModuleId>> children_;
  std::set<std::string> paths_;
};

/// Names of parameters that functional nodes read.
void collect_functional_reads(const NodeSpec& node, std::set<std::string>& names) {
  if (node.kind == NodeKind::functional_linear) names.insert(node.weight_of);
  for (const NodeSpec& child : node.children) collect_functional_reads(child, names);
}

}  // namespace

ModelSpec mark_leaf_modules(ModelSpec spec, const ZeroConfig& zero) {
  const LeafModuleConfig& leaf = zero.leaf_module;
  const bool wanted = !leaf.classes.empty() || !leaf.names.empty() || !leaf.name_suffixes.empty() ||
                      zero.module_granularity_threshold > 0;
  if (zero.stage != 3 || !wanted) return spec;
  // Parameters of a leaf are listed with it (model_plan.h), which would count them twice: sizes are those of
  // the model without leaves.
  ModelSpec bare = spec;
  clear_leaves(bare.root);
  const ModelPlan model = build_model_plan(std::move(bare));
  set_leaves(spec.root, "", Matcher(model, zero).paths());
  return spec;
}

std::vector<std::vector<ParamId>> leaf_gradients(const ModelPlan& model) {
  std::set<std::string> functional;
  collect_functional_reads(model.spec.root, functional);
  // Walks up the tree; a module counts as inside itself.
  const auto inside = [&](ModuleId module, ModuleId leaf) {
    for (; module != kNone<ModuleId>; module = model.modules[raw(module)].parent) {
      if (module == leaf) return true;
    }
    return false;
  };
  std::vector<std::vector<ParamId>> held(model.modules.size());
  for (const ModulePlan& module : model.modules) {
    if (!module.leaf) continue;
    // For a leaf module, all parameters below it (model_plan.h).
    for (const ParamId id : module.params) {
      const ParamPlan& param = model.params[raw(id)];
      // Used outside as well, its gradient is not complete when the leaf's backward ends.
      const bool own = param.trainable && functional.count(param.name) == 0 &&
                       std::all_of(param.modules.begin(), param.modules.end(),
                                   [&](ModuleId user) { return inside(user, module.id); });
      if (own) held[raw(module.id)].push_back(id);
    }
    // By id: LeafGradients passes them to the buckets in this order.
    std::sort(held[raw(module.id)].begin(), held[raw(module.id)].end());
  }
  return held;
}

}  // namespace shardscope::plan
