// The built-in models. GPT models carry the parameter names of Hugging Face's GPT-2, so that its weights
// load by name.
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "runtime/plan/model_plan.h"

namespace shardscope::plan {
namespace {

NodeSpec module(NodeKind kind, std::string name) {
  NodeSpec node;
  node.kind = kind;
  node.name = std::move(name);
  return node;
}

NodeSpec container(NodeKind kind, std::string name, std::string type, std::vector<NodeSpec> children) {
  NodeSpec node = module(kind, std::move(name));
  node.type = std::move(type);
  node.children = std::move(children);
  return node;
}

NodeSpec linear(std::string name, std::int64_t in, std::int64_t out) {
  NodeSpec node = module(NodeKind::linear, std::move(name));
  node.in = in;
  node.out = out;
  return node;
}

NodeSpec layer_norm(std::string name, std::int64_t width) {
  NodeSpec node = module(NodeKind::layer_norm, std::move(name));
  node.out = width;
  return node;
}

NodeSpec embedding(std::string name, std::int64_t rows, std::int64_t width, Lookup lookup) {
  NodeSpec node = module(NodeKind::embedding, std::move(name));
  node.in = rows;
  node.out = width;
  node.lookup = lookup;
  return node;
}

NodeSpec activation(NodeKind kind) {
  NodeSpec node = module(kind, "");
  node.functional = true;
  return node;
}

NodeSpec residual(std::vector<NodeSpec> children) {
  return container(NodeKind::residual, "", "", std::move(children));
}

struct GptShape {
  std::string_view name;
  std::int64_t layers;
  std::int64_t width;
  std::int64_t heads;
  std::int64_t context;
  std::int64_t vocabulary;
};

// Radford et al. 2019, Table 2, with the head counts of the released checkpoints. The two small ones read
// bytes, so any text will do.
constexpr std::array kGpts = {
    GptShape{"gpt2", 12, 768, 12, 1024, 50257},        GptShape{"gpt2-medium", 24, 1024, 16, 1024, 50257},
    GptShape{"gpt2-large", 36, 1280, 20, 1024, 50257}, GptShape{"gpt2-xl", 48, 1600, 25, 1024, 50257},
    GptShape{"gpt-mini", 4, 128, 4, 128, 256},         GptShape{"gpt-small", 6, 384, 6, 256, 256},
};

NodeSpec gpt_block(const GptShape& shape, std::int64_t index) {
  NodeSpec core = module(NodeKind::attention, "");
  core.heads = shape.heads;
  NodeSpec attention = container(
      NodeKind::sequential, "attn", "Attention",
      {linear("c_attn", shape.width, 3 * shape.width), core, linear("c_proj", shape.width, shape.width)});
  NodeSpec mlp = container(NodeKind::sequential, "mlp", "MLP",
                           {linear("c_fc", shape.width, 4 * shape.width), activation(NodeKind::gelu),
                            linear("c_proj", 4 * shape.width, shape.width)});
  return container(NodeKind::sequential, std::to_string(index), "Block",
                   {residual({layer_norm("ln_1", shape.width), std::move(attention)}),
                    residual({layer_norm("ln_2", shape.width), std::move(mlp)})});
}

ModelSpec gpt(const GptShape& shape) {
  std::vector<NodeSpec> blocks;
  for (std::int64_t i = 0; i < shape.layers; ++i) blocks.push_back(gpt_block(shape, i));
  NodeSpec embeddings = container(NodeKind::embedding_sum, "", "",
                                  {embedding("wte", shape.vocabulary, shape.width, Lookup::tokens),
                                   embedding("wpe", shape.context, shape.width, Lookup::positions)});
  NodeSpec transformer =
      container(NodeKind::sequential, "transformer", "Transformer",
                {std::move(embeddings), container(NodeKind::list, "h", "", std::move(blocks)),
                 layer_norm("ln_f", shape.width)});
  NodeSpec head = linear("lm_head", shape.width, shape.vocabulary);
  head.bias = false;
  head.weight_of = "transformer.wte.weight";

  ModelSpec spec;
  spec.name = shape.name;
  spec.input = InputKind::tokens;
  spec.loss = LossKind::cross_entropy;
  spec.vocabulary = shape.vocabulary;
  spec.context = shape.context;
  spec.root = container(NodeKind::sequential, "", "GPT", {std::move(transformer), std::move(head)});
  return spec;
}

/// The residual MLP on which DeepSpeed's decisions were recorded (100417 parameters).
ModelSpec mlp() {
  std::vector<NodeSpec> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(container(NodeKind::sequential, std::to_string(i), "Block",
                               {residual({layer_norm("ln", 64), linear("fc1", 64, 256),
                                          activation(NodeKind::relu), linear("fc2", 256, 64)})}));
  }
  ModelSpec spec;
  spec.name = "mlp";
  spec.input = InputKind::vectors;
  spec.loss = LossKind::mse;
  spec.input_width = 10;
  spec.output_width = 1;
  spec.root = container(
      NodeKind::sequential, "", "MLP",
      {linear("inp", 10, 64), container(NodeKind::list, "blk", "", std::move(blocks)), linear("out", 64, 1)});
  return spec;
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const GptShape& shape : kGpts) names.emplace_back(shape.name);
  names.emplace_back("mlp");
  return names;
}

ModelSpec named_model(const std::string& name) {
  for (const GptShape& shape : kGpts) {
    if (name == shape.name) return gpt(shape);
  }
  if (name == "mlp") return mlp();
  std::string known;
  for (const std::string& candidate : model_names()) known += (known.empty() ? "" : ", ") + candidate;
  throw std::invalid_argument("model: \"" + name + "\" is not a built-in model; the built-in models are " +
                              known + ", or give a JSON file (docs/models.md)");
}

}  // namespace shardscope::plan
