#include "tests/runtime/engine/golden_models.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {
namespace {

using Order = std::vector<std::uint32_t>;

plan::NodeSpec functional(plan::NodeKind kind, std::vector<plan::NodeSpec> children = {}) {
  plan::NodeSpec node;
  node.kind = kind;
  node.functional = true;
  node.children = std::move(children);
  return node;
}

/// What runs in the micro-steps of `runs` only, of so many.
plan::NodeSpec only_in(std::vector<plan::NodeSpec> children, const std::vector<std::int64_t>& runs,
                       std::int64_t micro_steps) {
  plan::NodeSpec node = functional(plan::NodeKind::conditional, std::move(children));
  for (std::int64_t i = 0; i < micro_steps; ++i) {
    if (std::find(runs.begin(), runs.end(), i) == runs.end()) node.skip_iterations.push_back(i);
  }
  return node;
}

/// A sample skips a block by itself, to show what that does; here the case says what runs.
void run_all(plan::NodeSpec& list) {
  std::vector<plan::NodeSpec> blocks;
  for (plan::NodeSpec& child : list.children) {
    if (child.kind != plan::NodeKind::conditional) {
      blocks.push_back(std::move(child));
      continue;
    }
    for (plan::NodeSpec& inner : child.children) blocks.push_back(std::move(inner));
  }
  list.children = std::move(blocks);
}

/// Each order but the plain one is a row of reuses behind the list, run in its micro-steps alone.
void run_in_order(plan::NodeSpec& root, std::size_t list_at, const nlohmann::json& orders) {
  plan::NodeSpec& list = root.children[list_at];
  Order plain(list.children.size());
  std::iota(plain.begin(), plain.end(), 0U);
  std::map<Order, std::vector<std::int64_t>> runs{{plain, {}}};
  const auto micro_steps = static_cast<std::int64_t>(orders.size());
  for (std::int64_t i = 0; i < micro_steps; ++i) {
    runs[orders[static_cast<std::size_t>(i)].get<Order>()].push_back(i);
  }
  std::vector<plan::NodeSpec> others;
  for (const auto& [order, of_order] : runs) {
    if (order == plain) continue;
    std::vector<plan::NodeSpec> row;
    for (const std::uint32_t block : order) {
      if (block >= plain.size()) {
        throw std::invalid_argument("block_visit_per_iteration: block " + std::to_string(block) + " of " +
                                    std::to_string(plain.size()));
      }
      row.push_back(functional(plan::NodeKind::reuse));
      row.back().target = list.name + "." + list.children[block].name;
    }
    if (!row.empty()) others.push_back(only_in(std::move(row), of_order, micro_steps));
  }
  for (plan::NodeSpec& block : list.children) {
    block = only_in({std::move(block)}, runs[plain], micro_steps);
  }
  root.children.insert(root.children.begin() + static_cast<std::ptrdiff_t>(list_at) + 1,
                       std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
}

}  // namespace

plan::ModelSpec golden_spec(const nlohmann::json& file, const std::string& name, const nlohmann::json& run) {
  const Json models = file.value("models", Json::object());
  if (models.contains(name) && models[name].contains("tree")) {
    return plan::parse_model_spec(models[name]["tree"].dump());
  }
  plan::ModelSpec spec = model_named(name);
  if (!name.ends_with("_visit")) return spec;
  std::vector<plan::NodeSpec>& nodes = spec.root.children;
  const auto list = std::find_if(nodes.begin(), nodes.end(), [](const plan::NodeSpec& node) {
    return node.kind == plan::NodeKind::list;
  });
  if (list == nodes.end()) return spec;
  run_all(*list);
  if (run.contains("block_visit_per_iteration")) {
    run_in_order(spec.root, static_cast<std::size_t>(list - nodes.begin()), run["block_visit_per_iteration"]);
  }
  return spec;
}

bool knows_model(const nlohmann::json& file, const std::string& name) {
  try {
    (void)golden_spec(file, name, Json::object());
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace shardscope::engine::testing
