// Validation of a model tree: names, widths, references. Shared by the parser and the numbering.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

/// True for nodes that get a module id (torch's nn.Module instances).
[[nodiscard]] bool is_module(const NodeSpec& node) noexcept;

/// The name of a kind as written in a model file, e.g. "layer_norm".
[[nodiscard]] const char* kind_name(NodeKind kind) noexcept;

/// "a" + "b" -> "a.b"; an empty part adds no dot.
[[nodiscard]] std::string join_path(const std::string& parent, const std::string& name);

/// "[64, 10]".
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);

/// Checks names, extents and the flow of widths from input to loss. Throws std::invalid_argument with the
/// path of the node, its value and the valid values.
void check_model(const ModelSpec& spec);

}  // namespace shardscope::plan
