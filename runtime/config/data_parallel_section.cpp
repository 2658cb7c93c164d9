// shardscope.data_parallel_groups: which ranks train one copy of the model. DeepSpeed takes an object for
// this (mpu, data_parallel_group), so its files have no key.
#include <string>
#include <utility>

#include "runtime/config/sections.h"

namespace shardscope::config {

void read_data_parallel_groups(Section& section, std::uint32_t world, plan::DataParallelGroups& groups) {
  constexpr const char* kKey = "data_parallel_groups";
  const nlohmann::json* list = section.find(kKey);
  if (list == nullptr) return;
  const auto is_rank = [](const nlohmann::json& value) {
    return value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() < 0x1p32;
  };
  const auto wrong = [&](const std::string& what) {
    section.fail(kKey, what + "; give a list of ranks for each group, [[0, 1], [2, 3]]");
  };
  if (!list->is_array()) return wrong("is no list");
  plan::DataParallelGroups read;
  for (const nlohmann::json& group : *list) {
    if (!group.is_array()) return wrong("holds " + group.dump() + ", which is no list of ranks");
    std::vector<std::uint32_t>& ranks = read.emplace_back();
    for (const nlohmann::json& rank : group) {
      if (!is_rank(rank)) return wrong("holds " + rank.dump() + ", which is no rank");
      ranks.push_back(rank.get<std::uint32_t>());
    }
  }
  if (const std::string problem = plan::validate(read, world); !problem.empty()) return wrong(problem);
  groups = std::move(read);
}

}  // namespace shardscope::config
