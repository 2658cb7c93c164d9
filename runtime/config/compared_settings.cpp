#include "runtime/config/compared_settings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace shardscope::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 16> kOfOneRank{
    "steps_per_print",
    "wall_clock_breakdown",
    "memory_breakdown",
    "dump_state",
    "log_level",
    "zero_optimization.offload_param.nvme_path",
    "zero_optimization.offload_optimizer.nvme_path",
    "zero_optimization.log_trace_cache_warnings",
    "aio",
    "shardscope.emulated_link",
    "shardscope.detail",
    "shardscope.ring_events",
    "shardscope.queue_bytes",
    "shardscope.key",
    "shardscope.linger_s",
    "shardscope.data_prefetch",
};

void flatten(const Json& json, const std::string& path, std::vector<plan::RankSetting>& settings) {
  const auto own = keys_of_one_rank();
  if (std::find(own.begin(), own.end(), path) != own.end()) return;
  if (!json.is_object()) {
    settings.push_back({path, json.dump(), "", "give every rank the same configuration"});
    return;
  }
  for (const auto& item : json.items()) {
    flatten(item.value(), path.empty() ? item.key() : path + "." + item.key(), settings);
  }
}

}  // namespace

std::span<const std::string_view> keys_of_one_rank() noexcept { return kOfOneRank; }

std::vector<plan::RankSetting> compared_settings(const TrainingConfig& config) {
  std::vector<plan::RankSetting> settings;
  flatten(Json::parse(effective_json(config)), "", settings);
  // Compared last: it is often derived from the others, which the user set.
  std::stable_partition(settings.begin(), settings.end(),
                        [](const plan::RankSetting& setting) { return setting.key != "train_batch_size"; });
  return settings;
}

}  // namespace shardscope::config
