#include "app/analysis/attached/ddp_settings.h"

#include <charconv>

#include "app/analysis/attached/setting_values.h"

namespace shardscope::analysis::attached {
namespace {

constexpr const char* kCap = "DistributedDataParallel.bucket_cap_mb";
constexpr const char* kDdpReduceLast = "DistributedDataParallel.reduce_in_last_micro_step_only";
constexpr double kMostMb = 1 << 20;

}  // namespace

const std::vector<std::string>& ddp_keys() {
  static const std::vector<std::string> keys{kCap, kDdpReduceLast};
  return keys;
}

std::string why_no_ddp_setting(const std::string& key) {
  if (key == "DistributedDataParallel.find_unused_parameters" ||
      key == "DistributedDataParallel.static_graph")
    return "which parameters have gradients, and when, is in no recording with another value";
  if (key.starts_with("zero_optimization.") || key.starts_with("fully_shard."))
    return "DistributedDataParallel has no such setting";
  return "its effect on a run of DistributedDataParallel is not modelled";
}

void change_ddp_setting(const Change& change, BucketSettings& settings) {
  if (change.key == kDdpReduceLast) settings.reduce_last_only = truth_of(change);
  if (change.key != kCap) return;
  double mb = 0;
  const char* const last = change.value.data() + change.value.size();
  const auto [end, error] = std::from_chars(change.value.data(), last, mb);
  if (error != std::errc{} || end != last || !(mb > 0 && mb <= kMostMb))
    refuse(change, fmt::format("give a number of MiB above 0, at most {}", kMostMb));
  settings.cap_bytes = static_cast<std::int64_t>(mb * (1 << 20));
}

}  // namespace shardscope::analysis::attached
