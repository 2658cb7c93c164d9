#include "app/analysis/param_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "app/analysis/framework.h"
#include "app/analysis/zero_settings.h"
#include "runtime/plan/partition.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::analysis {
namespace {

namespace ev = shardscope::instrumentation;

/// Stages 1 and 2: padding of this group's flat buffer. Stage 3: of its shards.
std::int64_t padding_of(const ev::RunTables& tables, const plan::ZeroConfig& zero,
                        const std::vector<std::int64_t>& elems) {
  const std::uint32_t world = copy_size(tables);
  std::int64_t padding = 0;
  if (tables.stage == 3) {
    const std::uint32_t ranks = plan::shard_world(zero, world);
    for (const std::int64_t param : elems) padding += plan::partition_param(param, ranks).padding_elems;
    return padding;
  }
  const plan::FlatLayout layout = plan::uses_legacy_layout(zero)
                                      ? plan::make_legacy_layout(elems, world, zero.max_elements_per_comm)
                                      : plan::make_flat_layout(elems, tables.stage == 0 ? 1 : world);
  return layout.flat_elems - layout.elems;
}

}  // namespace

std::vector<std::uint32_t> groups_of_params(const ev::RunTables& tables) {
  std::vector<std::uint32_t> groups(tables.params.size(), 0);
  for (std::uint32_t group = 0; group < tables.param_groups.size(); ++group) {
    for (const std::uint32_t param : tables.param_groups[group].params) {
      if (param < groups.size()) groups[param] = group;
    }
  }
  return groups;
}

std::vector<ParamGroupRow> param_groups(const ev::RunTables& tables) {
  std::vector<ParamGroupRow> rows;
  const Framework framework = framework_of(tables);
  const bool zero = framework == Framework::zero || framework == Framework::deepspeed;
  const plan::ZeroConfig settings = zero_of(tables);
  for (const ev::ParamGroupInfo& group : tables.param_groups) {
    ParamGroupRow row{group, 0, std::nullopt};
    std::vector<std::int64_t> elems;
    for (const std::uint32_t param : group.params) {
      if (param >= tables.params.size()) continue;
      elems.push_back(tables.params[param].elems);
      row.elems += elems.back();
    }
    try {
      if (zero) row.padding_elems = padding_of(tables, settings, elems);
    } catch (const std::invalid_argument&) {
      row.padding_elems.reset();  // impossible sizes
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string param_group_text(const ev::RunTables& tables, std::uint32_t param) {
  for (std::size_t i = 0; i < tables.param_groups.size(); ++i) {
    const ev::ParamGroupInfo& group = tables.param_groups[i];
    if (std::find(group.params.begin(), group.params.end(), param) == group.params.end()) continue;
    return fmt::format("{} ({} of {}): weight decay {}, learning rate {} at the start", group.name, i + 1,
                       tables.param_groups.size(), group.weight_decay, group.lr);
  }
  return {};
}

}  // namespace shardscope::analysis
