// The model as data: a tree of modules and the functional operations between them (docs/models.md).
// A node with an id in the module numbering is a *module*; a functional node (residual sum, attention
// core, activation written as a function) has none, exactly as in PyTorch, where only nn.Module
// instances get DeepSpeed hooks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::plan {

enum class NodeKind : std::uint8_t {
  sequential,         ///< module; children run in order, each on the result of the one before
  list,               ///< module without hooks (nn.ModuleList); children run in order in the parent
  linear,             ///< module; y = x W^T + b, weight [out,in]
  layer_norm,         ///< module; weight and bias [dim], biased variance
  embedding,          ///< module; weight [rows,dim]; looks up tokens or positions (see `lookup`)
  gelu,               ///< module unless functional; tanh form
  relu,               ///< module unless functional
  residual,           ///< functional; x + children(x)
  attention,          ///< functional; causal multi-head core, [B,T,3C] (q|k|v) -> [B,T,C]
  embedding_sum,      ///< functional; sum of its embedding children (token and position)
  functional_linear,  ///< functional; y = x W^T with the weight of another module (`weight_of`)
  conditional,        ///< functional; children run unless `skip_iterations` holds this iteration
  reuse,              ///< functional; visits the module at path `target` once more
};

enum class Lookup : std::uint8_t { tokens, positions };
enum class InputKind : std::uint8_t { tokens, vectors };
enum class LossKind : std::uint8_t { cross_entropy, mse };

struct NodeSpec {
  NodeKind kind = NodeKind::sequential;
  std::string name;                ///< path component; empty for functional nodes, which add nothing to paths
  std::string type;                ///< what to call the module ("Block"); empty: the kind's own name
  bool functional = false;         ///< gelu/relu without a module id
  std::int64_t in = 0;             ///< linear: input features; embedding: rows
  std::int64_t out = 0;            ///< linear: output features; embedding and layer norm: width
  bool bias = true;                ///< linear
  double epsilon = 1e-5;           ///< layer norm
  std::int64_t heads = 0;          ///< attention
  Lookup lookup = Lookup::tokens;  ///< embedding
  std::string weight_of;           ///< linear tied to / functional_linear reading: path of a weight
  std::string target;              ///< reuse: module path
  std::vector<std::int64_t> skip_iterations;  ///< conditional: iterations (from 0) that skip it
  bool checkpoint = false;  ///< activation checkpointing: keep the input only, recompute in backward
  bool leaf = false;        ///< ZeRO-3 leaf module: no hooks inside, parameters gathered together
  /// Module: parameters that its forward returns beside its result, as paths below it ("weight",
  /// "wte.weight"). What runs around it may read them after it has ended (docs/zero.md P11).
  std::vector<std::string> returns;
  /// Modules: whether the parameters of this module and below are trained; empty: as the module around says,
  /// the root's are. `weight` and `bias` of this module itself may say otherwise.
  std::optional<bool> trainable, trainable_weight, trainable_bias;
  std::vector<NodeSpec> children;
};

struct ModelSpec {
  std::string name;
  InputKind input = InputKind::tokens;
  LossKind loss = LossKind::cross_entropy;
  std::int64_t vocabulary = 0;    ///< tokens
  std::int64_t context = 0;       ///< tokens: longest sequence T
  std::int64_t input_width = 0;   ///< vectors
  std::int64_t output_width = 0;  ///< vectors
  /// The recomputation of a block that ends in a linear layer leaves out its product: nothing reads the
  /// result.
  bool checkpoint_early_stop = false;
  NodeSpec root;
};

}  // namespace shardscope::plan
