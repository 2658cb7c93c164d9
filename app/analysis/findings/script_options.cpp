// Options of runs that a script configures by calls: FSDP2 and DDP. The keys of their changes are those of
// `what-if`, the text names the call.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/quantity_text.h"

namespace shardscope::analysis::findings {
namespace {

/// A setting of fully_shard or DistributedDataParallel as recorded; discarded if it is not there.
nlohmann::json recorded_setting(const Facts& facts, const char* pointer) {
  const nlohmann::json config = parse_foreign(facts.summary.config_json);
  const nlohmann::json::json_pointer at(pointer);
  if (!config.is_object() || !config.contains(at)) return nlohmann::json::value_t::discarded;
  return config[at];
}

/// Whether some group but the root's is resharded after its forward; FSDP2 does so by default. Where groups
/// differ, the setting is an object with the number of groups by value.
bool reshards(const Facts& facts) {
  const nlohmann::json setting = recorded_setting(facts, "/fully_shard/reshard_after_forward");
  if (setting.is_object()) return setting.contains("true");
  return setting.is_discarded() || setting == true;
}

/// Bytes that a rank holds longer if no group is resharded: of all parameters without its own shard.
std::int64_t whole_parameters(const Facts& facts) {
  const std::uint32_t ranks = std::max(facts.summary.copy_ranks, 1U);
  return facts.summary.params * facts.store.tables().param_bytes * (ranks - 1) / ranks;
}

Change group_change(const char* key, const std::string& value) {
  return {std::string("fully_shard.") + key, value};
}

const char* groups_text(std::int64_t count) {
  return count == 1 ? "the next group" : count == 2 ? "the next two groups" : "the next three groups";
}

Advice earlier(std::int64_t forward, std::int64_t backward) {
  // The backward gathers the next group beside the current one by itself.
  const std::int64_t more = std::max(forward, backward - 1);
  std::vector<Change> changes;
  std::string calls;
  for (const auto& [name, count] : {std::pair{"forward", forward}, std::pair{"backward", backward}}) {
    if (count == 0) continue;
    changes.push_back(
        group_change((std::string("groups_to_") + name + "_prefetch").c_str(), std::to_string(count)));
    calls += fmt::format("{}set_modules_to_{}_prefetch() with {} of the {}", calls.empty() ? "" : " and ",
                         name, groups_text(count), name);
  }
  return {std::move(changes),
          fmt::format("Call {} at each group: their gathers begin earlier, and up to {} more {} gathered at "
                      "a time.",
                      calls,
                      more == 1   ? "one"
                      : more == 2 ? "two"
                                  : "three",
                      more == 1 ? "group is" : "groups are")};
}

}  // namespace

std::vector<Advice> reshard_off_options(const Facts& facts) {
  if (facts.summary.kind != Framework::fsdp2 || !reshards(facts)) return {};
  std::vector<Change> changes{group_change("reshard_after_forward", "false")};
  // Lists for the backward are recorded as far as they had an effect: without gathers there they have none.
  if (!recorded_setting(facts, "/fully_shard/modules_with_explicit_backward_prefetch").is_discarded())
    changes.push_back(group_change("groups_to_backward_prefetch", "1"));
  return {{std::move(changes),
           fmt::format("Give fully_shard() reshard_after_forward=False: the backward gathers nothing. "
                       "Parameters stay gathered until then, up to {} more on each rank.",
                       bytes_text(whole_parameters(facts)))}};
}

std::vector<Advice> reshard_on_options(const Facts& facts) {
  if (facts.summary.kind != Framework::fsdp2) return {};
  const std::string text =
      "Their group is not resharded after the forward: fully_shard(..., reshard_after_forward=True) frees "
      "them, for one more gather in the backward.";
  const nlohmann::json others = recorded_setting(facts, "/fully_shard/reshard_after_forward");
  const bool by_others = others == false || (others.is_object() && others.contains("false"));
  // By itself FSDP2 keeps the root's group.
  const bool by_root =
      !by_others || recorded_setting(facts, "/fully_shard/root_reshard_after_forward") == false;
  std::vector<Change> changes;
  if (by_others) changes.push_back(group_change("reshard_after_forward", "true"));
  if (by_root) changes.push_back(group_change("root_reshard_after_forward", "true"));
  return {{std::move(changes), text}};
}

std::vector<Advice> earlier_group_options(const Facts& facts) {
  if (facts.summary.kind != Framework::fsdp2) return {};
  return {earlier(0, 2), earlier(1, 0), earlier(2, 2), earlier(0, 3)};
}

std::vector<Advice> reduce_last_options(const Facts& facts, const std::string& text) {
  const Framework kind = facts.summary.kind;
  if (facts.micro_steps < 2 || (kind != Framework::fsdp2 && kind != Framework::ddp)) return {};
  const std::string key = kind == Framework::fsdp2 ? "fully_shard" : "DistributedDataParallel";
  return {{{{key + ".reduce_in_last_micro_step_only", "true"}}, text}};
}

std::vector<Advice> bucket_cap_options(const Facts& facts, BucketSizes sizes) {
  constexpr double kMiB = 1 << 20, kLeastMiB = 0.01;
  if (facts.summary.kind != Framework::ddp) return {};
  const nlohmann::json cap = recorded_setting(facts, "/DistributedDataParallel/bucket_cap_mb");
  const double now = cap.is_number() ? cap.get<double>() : 25;  // DDP's default
  const double all = static_cast<double>(trained_elems(facts) * facts.store.tables().grad_bytes) / kMiB;
  std::vector<Advice> out;
  const auto add = [&](double wanted, const char* effect) {
    if (wanted < kLeastMiB) return;
    const std::string value = wanted < 99.5 ? fmt::format("{:.2g}", wanted) : fmt::format("{:.0f}", wanted);
    out.push_back({{{"DistributedDataParallel.bucket_cap_mb", value}},
                   fmt::format("Give DistributedDataParallel() bucket_cap_mb={}: {}.", value, effect)});
  };
  if (sizes == BucketSizes::smaller || sizes == BucketSizes::all) {
    for (const double part : {4.0, 8.0, 16.0, 2.0})
      if (all / part < 0.8 * now) add(all / part, "the first buckets are reduced earlier in the backward");
  }
  if (sizes == BucketSizes::larger || sizes == BucketSizes::all) {
    for (const double part : {2.0, 1.0})
      if (all / part > 1.25 * now) add(all / part, "fewer reductions of more gradients each");
  }
  return out;
}

}  // namespace shardscope::analysis::findings
