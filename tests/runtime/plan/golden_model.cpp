// From a golden file's flat lists of modules and parameters back to a model tree.
#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>

#include "runtime/plan/leaf_modules.h"
#include "tests/runtime/plan/golden.h"

namespace shardscope::golden {
namespace {

using plan::NodeKind;
using plan::NodeSpec;

/// A module of the file with its children found by path.
struct Entry {
  std::string path;
  std::string name;
  std::string type;
  std::vector<std::string> children;  ///< paths, in order
  std::map<std::string, int> params;  ///< "weight" -> ds_id
  bool checkpoint = false;            ///< its forward runs again in backward
  std::vector<std::string> returns;   ///< parameters beside its result, by their path from here
};

class Builder {
 public:
  Builder(const std::string& name, const Json& model) : name_(name), model_(model) {
    for (const Json& param : model.at("params")) {
      const int id = param.at("ds_id").get<int>();
      shapes_[id] = param.at("shape").get<std::vector<std::int64_t>>();
      names_[id] = param.at("name").get<std::string>();
      trainable_[id] = param.value("trainable", true);
    }
    for (const Json& module : model.at("modules")) {
      Entry entry;
      entry.path = module.at("name").get<std::string>();
      if (entry.path == "(root)") entry.path.clear();
      entry.type = module.at("type").get<std::string>();
      entry.checkpoint = module.value("checkpoint", false);
      const std::size_t dot = entry.path.rfind('.');
      entry.name = dot == std::string::npos ? entry.path : entry.path.substr(dot + 1);
      for (const Json& param : module.at("params")) {
        entry.params[param.at("name").get<std::string>()] = param.at("ds_id").get<int>();
      }
      entry.returns = module.value("returns", entry.returns);
      if (!entry.path.empty()) {
        const std::string parent = dot == std::string::npos ? "" : entry.path.substr(0, dot);
        entries_.at(parent).children.push_back(entry.path);
      }
      entries_.emplace(entry.path, entry);
    }
  }

  /// Whether the legend's names say what every module computes: no others have parameters or stand alone.
  [[nodiscard]] bool explained() const {
    static const std::set<std::string> kKnown{"Linear",     "LayerNorm", "Embedding",
                                              "ModuleList", "ReLU",      "GELU"};
    return std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) {
      const Entry& module = entry.second;
      return kKnown.count(module.type) != 0 || (module.params.empty() && !module.children.empty());
    });
  }

  /// Modules and parameters as listed, without a tree that says what they compute.
  [[nodiscard]] plan::ModelPlan flat() const {
    plan::ModelPlan plan;
    plan.spec.name = name_;
    for (const auto& [id, shape] : shapes_) {
      if (id != static_cast<int>(plan.params.size())) {
        throw std::invalid_argument("params: ds_id " + std::to_string(id) + " follows " +
                                    std::to_string(plan.params.size()) + " others");
      }
      plan::ParamPlan param;
      param.id = plan::ParamId{static_cast<std::uint32_t>(id)};
      param.name = names_.at(id);
      param.shape = shape;
      param.elems = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
      param.trainable = trainable_.at(id);
      plan.elems += param.elems;
      plan.params.push_back(std::move(param));
    }
    std::map<std::string, plan::ModuleId> ids;
    for (const Json& listed : model_.at("modules")) {
      const std::string shown = listed.at("name").get<std::string>();
      const std::string path = shown == "(root)" ? "" : shown;
      plan::ModulePlan module;
      module.id = plan::ModuleId{static_cast<std::uint32_t>(plan.modules.size())};
      module.path = path;
      module.type = listed.at("type").get<std::string>();
      module.hooks = module.type != "ModuleList";
      if (!path.empty())
        module.parent = ids.at(path.rfind('.') == std::string::npos ? "" : path.substr(0, path.rfind('.')));
      std::int64_t elems = 0;
      for (const Json& own : listed.at("params")) {
        const auto id = own.at("ds_id").get<std::uint32_t>();
        plan.params.at(id).modules.push_back(module.id);
        module.params.push_back(plan::ParamId{id});
        elems += plan.params[id].elems;
      }
      plan.largest_module_elems = std::max(plan.largest_module_elems, elems);
      ids[path] = module.id;
      plan.modules.push_back(std::move(module));
    }
    return plan;
  }

  plan::ModelPlan build() {
    plan::ModelSpec spec;
    spec.name = name_;
    spec.root = node("");
    const Entry& root = entries_.at("");
    if (has(root, "wte")) {
      spec.input = plan::InputKind::tokens;
      spec.loss = plan::LossKind::cross_entropy;
      spec.vocabulary = shape_of("wte", 2)[0];
      spec.context = has(root, "wpe") ? shape_of("wpe", 2)[0] : 1;
    } else {
      spec.input = plan::InputKind::vectors;
      spec.loss = plan::LossKind::mse;
      if (root.children.empty()) throw std::invalid_argument("the model's root has no modules");
      spec.input_width = shape_of(root.children.front(), 2)[1];
      spec.output_width = shape_of(root.children.back(), 2)[0];
    }
    return plan::build_model_plan(std::move(spec));
  }

 private:
  [[nodiscard]] bool has(const Entry& entry, const std::string& child) const {
    for (const std::string& path : entry.children) {
      if (entries_.at(path).name == child) return true;
    }
    return false;
  }

  /// Of a weight that must have so many dimensions.
  [[nodiscard]] const std::vector<std::int64_t>& shape_of(const std::string& path, std::size_t dims) const {
    const Entry& entry = entries_.at(path);
    const auto weight = entry.params.find("weight");
    if (weight == entry.params.end()) throw std::invalid_argument("module \"" + path + "\" has no weight");
    const std::vector<std::int64_t>& shape = shapes_.at(weight->second);
    if (shape.size() != dims) {
      throw std::invalid_argument("the weight of module \"" + path + "\" has " +
                                  std::to_string(shape.size()) + " dimensions; a module of its type has " +
                                  std::to_string(dims));
    }
    return shape;
  }

  NodeSpec child(const Entry& parent, const std::string& name) {
    for (const std::string& path : parent.children) {
      if (entries_.at(path).name == name) return node(path);
    }
    throw std::invalid_argument("module \"" + parent.path + "\" has no child \"" + name + "\"");
  }

  static NodeSpec functional(NodeKind kind, std::vector<NodeSpec> children = {}) {
    NodeSpec spec;
    spec.kind = kind;
    spec.functional = true;
    spec.children = std::move(children);
    return spec;
  }

  /// A weight that another module owns has that module's name.
  std::string shared_weight(const Entry& entry) const {
    const std::string& name = names_.at(entry.params.at("weight"));
    return name == entry.path + ".weight" ? "" : name;
  }

  /// Frozen parameters of the module itself; a shared weight is what its owner says.
  void freeze(const Entry& entry, NodeSpec& spec) const {
    for (const auto& [name, id] : entry.params) {
      if (trainable_.at(id) || (name == "weight" && !spec.weight_of.empty())) continue;
      (name == "weight" ? spec.trainable_weight : spec.trainable_bias) = false;
    }
  }

  NodeSpec node(const std::string& path) {
    const Entry& entry = entries_.at(path);
    NodeSpec spec;
    spec.name = entry.name;
    spec.type = entry.type;
    spec.checkpoint = entry.checkpoint;
    spec.returns = entry.returns;
    if (entry.type == "Linear") {
      spec.kind = NodeKind::linear;
      spec.out = shape_of(path, 2)[0];
      spec.in = shape_of(path, 2)[1];
      spec.bias = entry.params.count("bias") != 0;
      spec.weight_of = shared_weight(entry);
    } else if (entry.type == "LayerNorm") {
      spec.kind = NodeKind::layer_norm;
      spec.out = shape_of(path, 1)[0];
    } else if (entry.type == "Embedding") {
      spec.kind = NodeKind::embedding;
      spec.in = shape_of(path, 2)[0];
      spec.out = shape_of(path, 2)[1];
      spec.lookup = entry.name == "wpe" ? plan::Lookup::positions : plan::Lookup::tokens;
      spec.weight_of = shared_weight(entry);
    } else if (entry.type == "ModuleList") {
      spec.kind = NodeKind::list;
      for (const std::string& below : entry.children) spec.children.push_back(node(below));
    } else if (entry.type == "ReLU" || entry.type == "GELU") {
      spec.kind = entry.type == "ReLU" ? NodeKind::relu : NodeKind::gelu;
    } else {
      composite(entry, spec);
    }
    freeze(entry, spec);
    return spec;
  }

  /// The composites of the legend, distinguished by the names of their children.
  void composite(const Entry& entry, NodeSpec& spec) {
    spec.kind = NodeKind::sequential;
    if (has(entry, "ln") && has(entry, "fc1") && has(entry, "fc2")) {
      spec.children = {functional(NodeKind::residual, {child(entry, "ln"), child(entry, "fc1"),
                                                       functional(NodeKind::relu), child(entry, "fc2")})};
    } else if (has(entry, "ln1") && has(entry, "qkv") && has(entry, "proj")) {
      NodeSpec attention = functional(NodeKind::attention);
      attention.heads = 1;  // the order of visits does not depend on it
      spec.children = {functional(NodeKind::residual, {child(entry, "ln1"), child(entry, "qkv"), attention,
                                                       child(entry, "proj")}),
                       functional(NodeKind::residual, {child(entry, "ln2"), child(entry, "fc1"),
                                                       functional(NodeKind::gelu), child(entry, "fc2")})};
    } else if (has(entry, "wte")) {
      std::vector<NodeSpec> embeddings = {child(entry, "wte")};
      if (has(entry, "wpe")) embeddings.push_back(child(entry, "wpe"));
      spec.children.push_back(functional(NodeKind::embedding_sum, std::move(embeddings)));
      for (const std::string& path : entry.children) {
        const std::string& below = entries_.at(path).name;
        if (below != "wte" && below != "wpe") spec.children.push_back(node(path));
      }
      // Without a head module the token embedding is read as the head.
      if (entries_.at(entry.children.back()).type != "Linear") {
        NodeSpec head = functional(NodeKind::functional_linear);
        head.weight_of = (entry.path.empty() ? "" : entry.path + ".") + "wte.weight";
        spec.children.push_back(head);
      }
    } else {
      for (const std::string& path : entry.children) spec.children.push_back(node(path));
    }
  }

  const std::string& name_;
  const Json& model_;
  std::map<int, std::vector<std::int64_t>> shapes_;
  std::map<int, std::string> names_;
  std::map<int, bool> trainable_;
  std::map<std::string, Entry> entries_;
};

}  // namespace

plan::ModelPlan golden_model(const std::string& name) {
  const std::string path = std::string(SHARDSCOPE_SAMPLE_MODELS) + "/" + name + ".json";
  std::ifstream file(path);
  if (!file) throw std::invalid_argument(path + " cannot be opened");
  std::ostringstream text;
  text << file.rdbuf();
  return plan::build_model_plan(plan::parse_model_spec(text.str()));
}

bool has_tree(const plan::ModelPlan& model) { return !model.spec.root.children.empty(); }

plan::ModelPlan model_of(const std::string& name, const Json& model) {
  if (!model.contains("tree")) {
    Builder builder(name, model);
    return builder.explained() ? builder.build() : builder.flat();
  }
  return plan::build_model_plan(plan::parse_model_spec(model["tree"].dump()));
}

plan::ModelPlan model_of(const std::string& name, const Json& model, const Json& config) {
  plan::ZeroConfig zero;
  zero.stage = 3;
  zero.module_granularity_threshold = config.value("stage3_module_granularity_threshold", std::int64_t{0});
  if (config.contains("leaf_module")) {
    const Json& leaf = config["leaf_module"];
    zero.leaf_module.classes = leaf.value("classes", zero.leaf_module.classes);
    zero.leaf_module.names = leaf.value("names", zero.leaf_module.names);
    zero.leaf_module.name_suffixes = leaf.value("name_suffixes", zero.leaf_module.name_suffixes);
  }
  const plan::ModelPlan plain = model_of(name, model);
  if (!has_tree(plain))
    throw std::invalid_argument("leaf modules of a model that the legend does not explain");
  return plan::build_model_plan(plan::mark_leaf_modules(plain.spec, zero));
}

}  // namespace shardscope::golden
