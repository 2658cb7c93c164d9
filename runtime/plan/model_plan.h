// Modules and parameters of a model, numbered. Built once from a ModelSpec; all ZeRO decisions and all views
// of the window are indexed by these ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_spec.h"

namespace shardscope::plan {

/// How a parameter is initialised (and which weight decay group a reader may expect).
enum class ParamKind : std::uint8_t { matrix, bias, layer_norm_weight, embedding };

struct ParamPlan {
  ParamId id{};
  std::string name;                 ///< full path, e.g. "transformer.h.0.attn.c_attn.weight"
  std::vector<std::int64_t> shape;  ///< row-major
  std::int64_t elems = 0;
  ParamKind kind = ParamKind::matrix;
  std::vector<ModuleId> modules;  ///< owner first, then the modules that share it (tied)
  bool trainable = true;          ///< false: frozen, so no gradient, no optimizer states
  std::uint32_t group = 0;        ///< of the optimizer's parameter groups (param_groups.h)
};

struct ModulePlan {
  ModuleId id{};
  ModuleId parent = kNone<ModuleId>;
  std::string path;              ///< "" for the root
  std::string type;              ///< what to show: "Linear", "LayerNorm", "Embedding", "Block", ...
  std::vector<ParamId> params;   ///< direct parameters in order (all below it for a leaf module)
  bool hooks = true;             ///< false for lists and for modules inside a leaf module
  bool leaf = false;             ///< ZeRO-3 leaf module: fetches everything below it at once
  std::vector<ParamId> returns;  ///< its forward hands these to what runs around it (P11)
};

struct ModelPlan {
  ModelSpec spec;
  std::vector<ModulePlan> modules;        ///< by ModuleId
  std::vector<ParamPlan> params;          ///< by ParamId
  std::int64_t elems = 0;                 ///< S: every parameter once
  std::int64_t largest_module_elems = 0;  ///< max over modules of direct parameters (M1)
};

/// By ParamId: false for frozen parameters.
[[nodiscard]] std::vector<bool> trainable_params(const ModelPlan& model);
/// By ParamId: its parameter group.
[[nodiscard]] std::vector<std::uint32_t> groups_of_params(const ModelPlan& model);
/// Elements of the parameters that are trained; the others are frozen.
[[nodiscard]] std::int64_t trainable_elems(const ModelPlan& model) noexcept;

/// Numbers modules and parameters. Throws std::invalid_argument with path and reason on a spec that
/// cannot run (unknown target, width mismatch, heads that do not divide the width, every parameter frozen,
/// ...).
[[nodiscard]] ModelPlan build_model_plan(ModelSpec spec);

/// Reads the JSON model tree (docs/models.md). Pure: text in, spec out. Throws std::invalid_argument
/// naming the path of the node and the offending key.
[[nodiscard]] ModelSpec parse_model_spec(const std::string& json_text);

/// A built-in model by name (gpt2, gpt-mini, gpt3-6.7b, mlp, ...), or a GPT of any size as
/// "gpt:layers=32,width=4096,heads=32,context=2048,vocabulary=50257", gpt2's where nothing is said. Throws
/// std::invalid_argument listing the known names.
[[nodiscard]] ModelSpec named_model(const std::string& name);

/// The names that named_model() knows.
[[nodiscard]] std::vector<std::string> model_names();

}  // namespace shardscope::plan
