// Reads the JSON model tree of docs/models.md.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "runtime/plan/model_check.h"
#include "runtime/plan/model_error.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::plan {
namespace {

using Json = nlohmann::json;

constexpr std::array kAllKinds = {NodeKind::sequential,
                                  NodeKind::list,
                                  NodeKind::linear,
                                  NodeKind::layer_norm,
                                  NodeKind::embedding,
                                  NodeKind::gelu,
                                  NodeKind::relu,
                                  NodeKind::residual,
                                  NodeKind::attention,
                                  NodeKind::embedding_sum,
                                  NodeKind::functional_linear,
                                  NodeKind::conditional,
                                  NodeKind::reuse};

/// A tree deeper than this is a mistake, and would exhaust the stack.
constexpr int kMaxDepth = 64;
constexpr std::int64_t kMaxRepeat = 100'000;
/// Nested "repeat"s multiply.
constexpr std::int64_t kMaxCopies = std::int64_t{1} << 20;

/// One JSON object read key by key; finish() rejects keys that were never read.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object())
      fail_model(where_, "must be an object { ... }, but is " + object_.dump().substr(0, 60));
  }

  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  const Json& at(const char* key) {
    if (!object_.contains(key)) fail_model(where_, std::string("key \"") + key + "\" is missing");
    seen_.emplace_back(key);
    return object_[key];
  }

  std::int64_t integer(const char* key) {
    const Json& value = at(key);
    if (!value.is_number_integer()) wrong(key, "a whole number", value);
    return value.get<std::int64_t>();
  }
  std::string text(const char* key) {
    const Json& value = at(key);
    if (!value.is_string()) wrong(key, "a string", value);
    return value.get<std::string>();
  }
  std::string text_or(const char* key, std::string otherwise) { return has(key) ? text(key) : otherwise; }
  bool boolean_or(const char* key, bool otherwise) {
    if (!has(key)) return otherwise;
    const Json& value = at(key);
    if (!value.is_boolean()) wrong(key, "true or false", value);
    return value.get<bool>();
  }
  double number_or(const char* key, double otherwise) {
    if (!has(key)) return otherwise;
    const Json& value = at(key);
    if (!value.is_number()) wrong(key, "a number", value);
    return value.get<double>();
  }

  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
        fail_model(where_, "key \"" + key + "\" is not known here; see docs/models.md");
      }
    }
  }

  [[noreturn]] void wrong(const char* key, const char* wanted, const Json& value) const {
    fail_model(where_,
               std::string("\"") + key + "\" must be " + wanted + ", but is " + value.dump().substr(0, 60));
  }

 private:
  const Json& object_;
  std::string where_;
  std::vector<std::string> seen_;
};

NodeKind parse_kind(Reader& reader) {
  const std::string name = reader.text("kind");
  std::string known;
  for (const NodeKind kind : kAllKinds) {
    if (name == kind_name(kind)) return kind;
    known += std::string(known.empty() ? "" : ", ") + kind_name(kind);
  }
  fail_model(reader.where(), "kind \"" + name + "\" is not known; the kinds are " + known);
}

Lookup parse_lookup(Reader& reader) {
  const std::string name = reader.text_or("lookup", "tokens");
  if (name == "tokens") return Lookup::tokens;
  if (name == "positions") return Lookup::positions;
  fail_model(reader.where(), "lookup \"" + name + "\" must be \"tokens\" or \"positions\"");
}

NodeSpec parse_node(const Json& json, const std::string& where, int depth);

void parse_children(Reader& reader, NodeSpec& node, int depth) {
  const Json& children = reader.at("children");
  if (!children.is_array()) reader.wrong("children", "an array [ ... ]", children);
  for (std::size_t i = 0; i < children.size(); ++i) {
    node.children.push_back(
        parse_node(children[i], reader.where() + ".children[" + std::to_string(i) + "]", depth + 1));
  }
}

/// "returns": parameters that a module returns to the modules around it.
void parse_returns(Reader& reader, NodeSpec& node) {
  const Json& returns = reader.at("returns");
  constexpr const char* kWanted = "an array of parameters of this module, such as [\"weight\"]";
  if (!returns.is_array()) reader.wrong("returns", kWanted, returns);
  for (const Json& name : returns) {
    if (!name.is_string()) reader.wrong("returns", kWanted, returns);
    node.returns.push_back(name.get<std::string>());
  }
}

std::int64_t nodes_of(const NodeSpec& node) {
  std::int64_t nodes = 1;
  for (const NodeSpec& child : node.children) nodes += nodes_of(child);
  return nodes;
}

/// "repeat": n copies of the one child, named 0 to n-1.
void repeat_child(Reader& reader, NodeSpec& node) {
  const std::int64_t count = reader.integer("repeat");
  if (count < 1 || count > kMaxRepeat) {
    fail_model(reader.where(),
               "repeat is " + std::to_string(count) + "; it must be 1 to " + std::to_string(kMaxRepeat));
  }
  if (node.children.size() != 1 || !is_module(node.children.front()) || !node.children.front().name.empty()) {
    fail_model(reader.where(),
               "repeat needs exactly one child, a module without a name (its copies are named 0, 1, ...)");
  }
  const NodeSpec child = node.children.front();
  if (nodes_of(child) > kMaxCopies / count) {
    fail_model(reader.where(), "repeat makes " + std::to_string(count) + " copies of " +
                                   std::to_string(nodes_of(child)) + " nodes; it may make at most " +
                                   std::to_string(kMaxCopies) + " nodes");
  }
  node.children.assign(static_cast<std::size_t>(count), child);
  for (std::size_t i = 0; i < node.children.size(); ++i) node.children[i].name = std::to_string(i);
}

void parse_details(Reader& reader, NodeSpec& node, int depth) {
  switch (node.kind) {
    case NodeKind::sequential:
      parse_children(reader, node, depth);
      node.checkpoint = reader.boolean_or("checkpoint", false);
      node.leaf = reader.boolean_or("leaf", false);
      break;
    case NodeKind::list:
      parse_children(reader, node, depth);
      if (reader.has("repeat")) repeat_child(reader, node);
      break;
    case NodeKind::linear:
      node.in = reader.integer("in");
      node.out = reader.integer("out");
      node.bias = reader.boolean_or("bias", true);
      node.weight_of = reader.text_or("weight_of", "");
      break;
    case NodeKind::layer_norm:
      node.out = reader.integer("width");
      node.epsilon = reader.number_or("epsilon", node.epsilon);
      break;
    case NodeKind::embedding:
      node.in = reader.integer("rows");
      node.out = reader.integer("width");
      node.lookup = parse_lookup(reader);
      node.weight_of = reader.text_or("weight_of", "");
      break;
    case NodeKind::gelu:
    case NodeKind::relu:
      // An activation without a name is the function, with one it is a module, as in PyTorch.
      node.functional = reader.boolean_or("functional", node.name.empty());
      break;
    case NodeKind::residual:
    case NodeKind::embedding_sum:
      parse_children(reader, node, depth);
      break;
    case NodeKind::attention:
      node.heads = reader.integer("heads");
      break;
    case NodeKind::functional_linear:
      node.weight_of = reader.text("weight_of");
      break;
    case NodeKind::conditional: {
      parse_children(reader, node, depth);
      const Json& skips = reader.at("skip_iterations");
      if (!skips.is_array()) reader.wrong("skip_iterations", "an array of iteration numbers from 0", skips);
      for (const Json& skip : skips) {
        if (!skip.is_number_integer() || skip.get<std::int64_t>() < 0) {
          reader.wrong("skip_iterations", "an array of iteration numbers from 0", skips);
        }
        node.skip_iterations.push_back(skip.get<std::int64_t>());
      }
      break;
    }
    case NodeKind::reuse:
      node.target = reader.text("target");
      break;
  }
}

/// Whether a node of this kind is a module that has parameters or may have some below.
bool may_be_frozen(NodeKind kind) {
  return kind == NodeKind::sequential || kind == NodeKind::list || kind == NodeKind::linear ||
         kind == NodeKind::layer_norm || kind == NodeKind::embedding;
}

/// "trainable": true or false for a module and all below it, or {"weight": ..., "bias": ...} for its own
/// parameters one by one.
void parse_trainable(Reader& reader, NodeSpec& node) {
  if (!reader.has("trainable")) return;
  const Json& value = reader.at("trainable");
  const bool own = node.kind != NodeKind::sequential && node.kind != NodeKind::list;
  if (!value.is_boolean() && !(own && value.is_object())) {
    reader.wrong("trainable",
                 own ? R"(true, false, or an object such as {"weight": false})" : "true or false", value);
  }
  const bool has_bias = node.kind == NodeKind::layer_norm || (node.kind == NodeKind::linear && node.bias);
  if (!node.weight_of.empty() && (value.is_object() ? value.contains("weight") : !has_bias)) {
    fail_model(reader.where(),
               "the weight is that of \"" + node.weight_of + "\"; give its \"trainable\" there");
  }
  if (value.is_boolean()) {
    node.trainable = value.get<bool>();
    return;
  }
  Reader own_params(value, reader.where() + ".trainable");
  if (own_params.has("weight")) node.trainable_weight = own_params.boolean_or("weight", true);
  if (has_bias && own_params.has("bias")) node.trainable_bias = own_params.boolean_or("bias", true);
  own_params.finish();
}

NodeSpec parse_node(const Json& json, const std::string& where, int depth) {
  if (depth > kMaxDepth) fail_model(where, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
  Reader reader(json, where);
  NodeSpec node;
  node.kind = parse_kind(reader);
  node.name = reader.text_or("name", "");
  node.type = reader.text_or("type", "");
  parse_details(reader, node, depth);
  if (reader.has("returns")) parse_returns(reader, node);
  if (may_be_frozen(node.kind)) parse_trainable(reader, node);
  reader.finish();
  return node;
}

void parse_input(Reader& model, ModelSpec& spec) {
  Reader reader(model.at("input"), "input");
  const std::string kind = reader.text("kind");
  if (kind == "tokens") {
    spec.input = InputKind::tokens;
    spec.vocabulary = reader.integer("vocabulary");
    spec.context = reader.integer("context");
  } else if (kind == "vectors") {
    spec.input = InputKind::vectors;
    spec.input_width = reader.integer("width");
  } else {
    fail_model("input", "kind \"" + kind + "\" must be \"tokens\" or \"vectors\"");
  }
  reader.finish();
}

void parse_loss(Reader& model, ModelSpec& spec) {
  Reader reader(model.at("loss"), "loss");
  const std::string kind = reader.text("kind");
  if (kind == "cross_entropy") {
    spec.loss = LossKind::cross_entropy;
  } else if (kind == "mse") {
    spec.loss = LossKind::mse;
    spec.output_width = reader.integer("width");
  } else {
    fail_model("loss", "kind \"" + kind + "\" must be \"cross_entropy\" or \"mse\"");
  }
  reader.finish();
}

}  // namespace

ModelSpec parse_model_spec(const std::string& json_text) {
  // The parser takes a zero byte for the end of the text and ignores the rest.
  if (const std::size_t zero = json_text.find('\0'); zero != std::string::npos) {
    throw std::invalid_argument("model: not valid JSON at byte " + std::to_string(zero + 1) +
                                ": a zero byte; the file is damaged or no text, write it anew");
  }
  Json json;
  try {
    json = Json::parse(json_text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const Json::parse_error& error) {
    throw std::invalid_argument("model: not valid JSON at byte " + std::to_string(error.byte) + ": " +
                                error.what());
  } catch (const Json::exception& error) {  // "... number overflow parsing '1e999'"
    const std::string what = error.what();
    const std::size_t quote = what.find('\'');
    throw std::invalid_argument("model: " + (quote == std::string::npos ? what : what.substr(quote)) +
                                " is beyond every number that a model file can hold; give a smaller one");
  }
  Reader reader(json, "model");
  ModelSpec spec;
  spec.name = reader.text("name");
  parse_input(reader, spec);
  parse_loss(reader, spec);
  spec.root = parse_node(reader.at("root"), "root", 0);
  reader.finish();
  check_model(spec);
  return spec;
}

}  // namespace shardscope::plan
