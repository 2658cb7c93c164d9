// shardscope.param_groups: the optimizer's parameter groups. DeepSpeed takes them from the script
// (initialize(model_parameters=[{"params": ..., "weight_decay": 0}])), so its files have no key for them;
// keys of a group have PyTorch's names.
#include <set>
#include <string>

#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

constexpr std::size_t kMostGroups = 256;

void read_dims(Section& section, const char* key, std::optional<std::int64_t>& dims) {
  if (section.find(key) == nullptr) return;
  std::int64_t read = 0;
  section.read(key, read, 0, 16);
  dims = read;
}

ParamGroup read_group(Section& section, const OptimizerConfig& defaults, std::size_t index) {
  ParamGroup group;
  group.optimizer = defaults;
  group.rule.name = "group " + std::to_string(index);
  section.read("name", group.rule.name);
  if (group.rule.name.empty()) section.fail("name", "is empty; give a name or leave the key out");
  section.read("params", group.rule.params);
  const bool given = section.find("params") != nullptr;
  if (given && group.rule.params.empty()) {
    section.fail("params", "is empty, so the group would take nothing; leave the key out to take every name");
  }
  read_dims(section, "min_dims", group.rule.min_dims);
  read_dims(section, "max_dims", group.rule.max_dims);
  read_group_settings(section, group.optimizer);
  section.finish();
  return group;
}

}  // namespace

void read_param_groups(Section& section, TrainingConfig& config) {
  const nlohmann::json* list = section.find("param_groups");
  if (list == nullptr) return;
  std::vector<Section> sections = section.children("param_groups");
  if (sections.empty() || sections.size() > kMostGroups) {
    return section.fail("param_groups", "has " + std::to_string(sections.size()) + " groups; give 1 to " +
                                            std::to_string(kMostGroups) +
                                            ", or leave the key out for one group of all parameters");
  }
  config.param_groups.clear();
  std::set<std::string> names;
  for (Section& one : sections) {
    config.param_groups.push_back(read_group(one, config.optimizer, config.param_groups.size()));
    const std::string& name = config.param_groups.back().rule.name;
    if (!names.insert(name).second) one.fail("name", "\"" + name + "\" is the name of a group before it too");
  }
}

void warn_of_rates_without_effect(Section& root, const TrainingConfig& config) {
  const plan::LrScheduleType type = config.scheduler.type;
  if (type == plan::LrScheduleType::constant || type == plan::LrScheduleType::warmup_cosine) return;
  for (std::size_t i = 0; i < config.param_groups.size(); ++i) {
    const ParamGroup& group = config.param_groups[i];
    if (group.optimizer.lr == config.optimizer.lr) continue;
    const bool warmup = type == plan::LrScheduleType::warmup || type == plan::LrScheduleType::warmup_decay;
    if (warmup && group.scheduler.warmup_max_lr == group.optimizer.lr) continue;
    root.warn(
        "shardscope.param_groups[" + std::to_string(i) + "].lr",
        std::string("without effect: ") + schedule_name(type) +
            " sets the rate of every group, as in DeepSpeed; give its rates as lists with one value for "
            "each group");
  }
}

}  // namespace shardscope::config
