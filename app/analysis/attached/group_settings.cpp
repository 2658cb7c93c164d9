#include "app/analysis/attached/group_settings.h"

#include "app/analysis/attached/setting_values.h"

namespace shardscope::analysis::attached {
namespace {

constexpr const char* kReshard = "fully_shard.reshard_after_forward";
constexpr const char* kRootReshard = "fully_shard.root_reshard_after_forward";
constexpr const char* kForward = "fully_shard.groups_to_forward_prefetch";
constexpr const char* kBackward = "fully_shard.groups_to_backward_prefetch";
constexpr const char* kReduceLast = "fully_shard.reduce_in_last_micro_step_only";
constexpr std::int64_t kMostGroups = 1 << 20;

}  // namespace

const std::vector<std::string>& group_keys() {
  static const std::vector<std::string> keys{kReshard, kRootReshard, kForward, kBackward, kReduceLast};
  return keys;
}

std::string why_no_group_setting(const std::string& key) {
  if (key == "fully_shard.groups")
    return "a group is gathered where its module begins, and the recording does not show the boundaries of "
           "modules that are no group";
  if (key == "fully_shard.param_dtype" || key == "fully_shard.reduce_dtype")
    return "how fast another data type computes and travels is in no recording of this one";
  if (key == "fully_shard.offload_policy" || key == "fully_shard.pin_memory")
    return "how fast states move between device and host is in no recording without it";
  if (key.starts_with("zero_optimization.")) return "FSDP2 has no such setting";
  return "its effect on a run of FSDP2 is not modelled";
}

void change_group_setting(const Change& change, GroupSettings& settings) {
  if (change.key == kReshard) {
    settings.reshard_after_forward = truth_of(change);
  } else if (change.key == kRootReshard) {
    settings.root_reshard_after_forward = truth_of(change);
  } else if (change.key == kForward) {
    settings.groups_to_forward_prefetch = count_of(change, 0, kMostGroups);
  } else if (change.key == kBackward) {
    // An empty list is FSDP2's own prefetch of one group.
    settings.groups_to_backward_prefetch = count_of(change, 1, kMostGroups);
  } else if (change.key == kReduceLast) {
    settings.reduce_last_only = truth_of(change);
  }
}

}  // namespace shardscope::analysis::attached
