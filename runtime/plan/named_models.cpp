// The built-in models. GPT models carry the parameter names of Hugging Face's GPT-2, so that its weights
// load by name.
#include <algorithm>
#include <array>
#include <charconv>
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
// bytes, so they accept any text. gpt3-*: Brown et al. 2020, Table 2.1 (13B there has the width 5140, which
// 40 heads do not divide: 5120 as in all published copies), with GPT-2's blocks and vocabulary.
constexpr std::array kGpts = {
    GptShape{"gpt2", 12, 768, 12, 1024, 50257},        GptShape{"gpt2-medium", 24, 1024, 16, 1024, 50257},
    GptShape{"gpt2-large", 36, 1280, 20, 1024, 50257}, GptShape{"gpt2-xl", 48, 1600, 25, 1024, 50257},
    GptShape{"gpt-mini", 4, 128, 4, 128, 256},         GptShape{"gpt-small", 6, 384, 6, 256, 256},
    GptShape{"gpt3-6.7b", 32, 4096, 32, 2048, 50257},  GptShape{"gpt3-13b", 40, 5120, 40, 2048, 50257},
    GptShape{"gpt3-175b", 96, 12288, 96, 2048, 50257},
};

constexpr std::string_view kShapePrefix = "gpt:";

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

constexpr std::int64_t kMostLayers = 1 << 16;

/// "gpt:layers=32,width=4096,heads=32,context=2048,vocabulary=50257": missing keys are as in "gpt2".
ModelSpec gpt_of_shape(const std::string& name) {
  GptShape shape = kGpts[0];
  shape.name = name;
  const std::array<std::pair<std::string_view, std::int64_t*>, 5> keys{{{"layers", &shape.layers},
                                                                        {"width", &shape.width},
                                                                        {"heads", &shape.heads},
                                                                        {"context", &shape.context},
                                                                        {"vocabulary", &shape.vocabulary}}};
  for (std::string_view rest = std::string_view(name).substr(kShapePrefix.size()); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&](const auto& k) { return k.first == part.substr(0, equals); });
    std::int64_t value = 0;
    if (key != keys.end() && equals != std::string_view::npos) {
      const char* const end = part.data() + part.size();
      const auto [at, error] = std::from_chars(part.data() + equals + 1, end, value);
      if (error != std::errc{} || at != end) value = 0;
    }
    if (value < 1) {
      throw std::invalid_argument("model: \"" + name + "\": " + std::string(part) +
                                  " is no size; write layers=, width=, heads=, context= or vocabulary= and a "
                                  "number from 1 on");
    }
    *key->second = value;
  }
  if (shape.layers > kMostLayers) {
    throw std::invalid_argument("model: layers is " + std::to_string(shape.layers) + "; at most " +
                                std::to_string(kMostLayers) + " are built");
  }
  return gpt(shape);
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
  if (name.rfind(kShapePrefix, 0) == 0) return gpt_of_shape(name);
  std::string known;
  for (const std::string& candidate : model_names()) known += (known.empty() ? "" : ", ") + candidate;
  throw std::invalid_argument("model: \"" + name + "\" is not a built-in model; the built-in models are " +
                              known +
                              ", or gpt:layers=..,width=..,heads=..; or give a JSON file (docs/models.md)");
}

}  // namespace shardscope::plan
