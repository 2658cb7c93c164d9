// The model tree of the executor: every node has its module, its parameters and its references resolved, so
// that nothing is looked up by name while training.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/plan/model_plan.h"

namespace shardscope::model {

struct Node {
  plan::NodeKind kind = plan::NodeKind::sequential;
  const plan::NodeSpec* spec = nullptr;
  plan::ModuleId module = plan::kNone<plan::ModuleId>;  ///< none: functional
  plan::ModuleId enclosing{};                           ///< the nearest module with hooks, itself included
  bool hooks = false;                                   ///< hooks run at this module's boundaries
  bool checkpoint = false;  ///< keeps its input only; its forward runs again in backward
  plan::ParamId weight = plan::kNone<plan::ParamId>;  ///< also of a functional linear
  plan::ParamId bias = plan::kNone<plan::ParamId>;
  std::int64_t in = 0;           ///< linear: features in; embedding: rows
  std::int64_t out = 0;          ///< linear: features out; embedding, layer norm: width
  const Node* target = nullptr;  ///< reuse
  std::vector<Node> children;

  /// Runs as a module with its own span (a list only contains others).
  [[nodiscard]] bool is_module() const noexcept {
    return module != plan::kNone<plan::ModuleId> && kind != plan::NodeKind::list;
  }
};

/// `model` must outlive the result. Not movable: nodes refer to one another.
class Program {
 public:
  explicit Program(const plan::ModelPlan& model);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  [[nodiscard]] const Node& root() const noexcept { return root_; }

 private:
  Node root_;
};

}  // namespace shardscope::model
