// Random model trees for property tests: nested blocks, shared and external weights, skipped and repeated
// modules, leaf modules, frozen parameters, sizes that divide by nothing.
#pragma once

#include <random>
#include <string>

#include "runtime/plan/model_plan.h"

namespace shardscope::plan::testing_support {

class RandomModel {
 public:
  explicit RandomModel(std::uint32_t seed) : random_(seed) {}

  /// A number in [0, below).
  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  bool chance(std::uint32_t percent) { return draw(100) < percent; }

  ModelPlan make() {
    frozen_percent_ = chance(50) ? 0 : 10 + draw(80);
    width_ = 3 + draw(30);
    vocabulary_ = 5 + draw(60);
    ModelSpec spec;
    spec.name = "random";
    const bool tokens = chance(50);
    spec.root.kind = NodeKind::sequential;
    auto& nodes = spec.root.children;
    if (tokens) {
      spec.vocabulary = vocabulary_;
      spec.context = 4;
      NodeSpec sum = node(NodeKind::embedding_sum);
      sum.children = {embedding("wte", vocabulary_, Lookup::tokens), embedding("wpe", 4, Lookup::positions)};
      nodes.push_back(sum);
    } else {
      spec.input = InputKind::vectors;
      spec.loss = LossKind::mse;
      spec.input_width = 1 + draw(9);
      spec.output_width = 1;
      nodes.push_back(linear("inp", spec.input_width, width_));
    }
    NodeSpec list = node(NodeKind::list, "h");
    const std::uint32_t blocks = 1 + draw(5);
    for (std::uint32_t i = 0; i < blocks; ++i) {
      NodeSpec block = make_block(std::to_string(i));
      if (chance(15)) {
        NodeSpec maybe = node(NodeKind::conditional);
        maybe.skip_iterations = {2 + draw(4)};
        maybe.children = {block};
        list.children.push_back(maybe);
      } else {
        list.children.push_back(block);
      }
    }
    nodes.push_back(list);
    if (chance(25)) {
      NodeSpec again = node(NodeKind::reuse);
      again.target = "h.0";
      nodes.push_back(again);
    }
    nodes.push_back(layer_norm("ln_f"));
    nodes.back().trainable = true;  // so that something learns, whatever is frozen
    if (!tokens) {
      nodes.push_back(linear("out", width_, 1));
    } else if (chance(33)) {
      NodeSpec head = node(NodeKind::functional_linear);
      head.weight_of = "wte.weight";
      nodes.push_back(head);
    } else {
      NodeSpec head = linear("head", width_, vocabulary_);
      if (chance(50)) {
        head.weight_of = "wte.weight";
        head.trainable = head.trainable_weight = std::nullopt;  // its owner says
      }
      nodes.push_back(head);
    }
    return build_model_plan(spec);
  }

 private:
  static NodeSpec node(NodeKind kind, std::string name = "") {
    NodeSpec spec;
    spec.kind = kind;
    spec.name = std::move(name);
    return spec;
  }
  NodeSpec linear(std::string name, std::int64_t in, std::int64_t out) {
    NodeSpec spec = node(NodeKind::linear, std::move(name));
    spec.in = in;
    spec.out = out;
    freeze(spec);
    return spec;
  }
  /// The whole module, or its weight or bias alone; adapters say that they are trained.
  void freeze(NodeSpec& spec) {
    if (chance(frozen_percent_)) {
      switch (draw(3)) {
        case 0:
          spec.trainable_weight = false;
          break;
        case 1:
          spec.trainable_bias = false;
          break;
        default:
          spec.trainable = false;
      }
    } else if (chance(frozen_percent_)) {
      spec.trainable = true;
    }
  }
  NodeSpec layer_norm(std::string name) const {
    NodeSpec spec = node(NodeKind::layer_norm, std::move(name));
    spec.out = width_;
    return spec;
  }
  NodeSpec embedding(std::string name, std::int64_t rows, Lookup lookup) {
    NodeSpec spec = node(NodeKind::embedding, std::move(name));
    spec.in = rows;
    spec.out = width_;
    spec.lookup = lookup;
    if (chance(frozen_percent_)) spec.trainable = false;
    return spec;
  }
  NodeSpec make_block(std::string name) {
    const std::int64_t inner = 1 + draw(80);
    NodeSpec relu = node(NodeKind::relu, chance(30) ? "act" : "");
    relu.functional = relu.name.empty();
    NodeSpec first = linear("fc1", width_, inner);
    if (chance(25)) first.returns = {chance(50) ? "weight" : "bias"};
    NodeSpec residual = node(NodeKind::residual);
    residual.children = {layer_norm("ln"), first, relu, linear("fc2", inner, width_)};
    NodeSpec block = node(NodeKind::sequential, std::move(name));
    block.type = "Block";
    block.leaf = chance(15);
    block.checkpoint = chance(20);
    if (chance(frozen_percent_)) block.trainable = false;
    if (chance(20)) block.returns = {chance(50) ? "fc1.weight" : "ln.bias"};
    block.children = {residual};
    return block;
  }

  std::mt19937 random_;
  std::int64_t width_ = 8;
  std::int64_t vocabulary_ = 8;
  std::uint32_t frozen_percent_ = 0;  ///< of this tree
};

}  // namespace shardscope::plan::testing_support
