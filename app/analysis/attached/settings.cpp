#include "app/analysis/attached/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "app/analysis/attached/ddp_settings.h"
#include "app/analysis/attached/group_settings.h"
#include "app/analysis/attached/setting_values.h"
#include "app/analysis/framework.h"

namespace shardscope::analysis::attached {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr const char* kStage = "zero_optimization.stage";
constexpr const char* kMicroSteps = "gradient_accumulation_steps";
constexpr const char* kOverlap = "zero_optimization.overlap_comm";

/// An integer key, the stages in which it has an effect, and its minimum.
struct CountKey {
  const char* key;
  std::int64_t plan::ZeroConfig::*member;
  std::uint32_t first_stage, last_stage;
  std::int64_t least;
};
constexpr CountKey kCounts[] = {
    {"zero_optimization.reduce_bucket_size", &plan::ZeroConfig::reduce_bucket_size, 1, 3, 1},
    {"zero_optimization.allgather_bucket_size", &plan::ZeroConfig::allgather_bucket_size, 1, 2, 1},
    {"zero_optimization.stage3_prefetch_bucket_size", &plan::ZeroConfig::prefetch_bucket_size, 3, 3, 0},
    {"zero_optimization.stage3_max_live_parameters", &plan::ZeroConfig::max_live_parameters, 3, 3, 0},
    {"zero_optimization.stage3_max_reuse_distance", &plan::ZeroConfig::max_reuse_distance, 3, 3, 0},
    {"zero_optimization.stage3_param_persistence_threshold", &plan::ZeroConfig::param_persistence_threshold,
     3, 3, 0},
    {kMicroSteps, &plan::ZeroConfig::gradient_accumulation_steps, 0, 3, 1},
};

void set_stage(const plan::ZeroConfig& recorded, const Change& change, plan::ZeroConfig& zero) {
  const auto stage = whole_number(change.value);
  if (!stage || *stage < 0 || *stage > 3) refuse(change, "not a stage; give 1, 2 or 3");
  zero.stage = recorded.stage;  // replaces the stage of an earlier change, too
  if (*stage == recorded.stage) return;
  if (*stage == 0 || recorded.stage == 0)
    refuse(change,
           "stage 0 reduces all gradients together at the end of a step, outside of the buckets of the other "
           "stages, so neither follows "
           "from a recording of the other; give 1, 2 or 3 of a recording of one of these");
  if (recorded.offload_optimizer.device != plan::OffloadDevice::none ||
      recorded.offload_param.device != plan::OffloadDevice::none)
    refuse(change,
           "where states are offloaded the stages move other data between device and host, and how fast is "
           "in no recording of one of them");
  zero.stage = static_cast<std::uint32_t>(*stage);
}

void set_overlap(const Change& change, plan::ZeroConfig& zero) { zero.overlap_comm = truth_of(change); }

}  // namespace

const std::vector<std::string>& supported_keys(Framework framework) {
  static const std::vector<std::string> of_deepspeed = [] {
    std::vector<std::string> all{kStage, kOverlap};
    for (const CountKey& count : kCounts) all.emplace_back(count.key);
    return all;
  }();
  static const std::vector<std::string> of_fsdp2 = [] {
    std::vector<std::string> all = group_keys();
    all.emplace_back(kMicroSteps);
    return all;
  }();
  static const std::vector<std::string> of_ddp = [] {
    std::vector<std::string> all = ddp_keys();
    all.emplace_back(kMicroSteps);
    return all;
  }();
  return framework == Framework::fsdp2 ? of_fsdp2 : framework == Framework::ddp ? of_ddp : of_deepspeed;
}

std::string why_no_settings(const instrumentation::RunTables& tables) {
  switch (framework_of(tables)) {
    case Framework::zero:
      return tables.framework.empty() ? "" : tables.framework + " is no framework whose decisions are known";
    case Framework::deepspeed:
    case Framework::fsdp2:
    case Framework::ddp:
      return "";
    case Framework::fsdp1:
      return "FSDP1 is configured by the script's calls: what is a flat parameter and when it is gathered "
             "follows from the "
             "arguments in the script, and its "
             "waits are not recorded";
    case Framework::megatron:
      return "Megatron-Core's buckets and their overlap are decided in its own code, which is not modelled";
    case Framework::colossalai:
      return "Colossal-AI's buckets are decided in its own code, which is not modelled";
  }
  return "";
}

std::string why_not_asked(const instrumentation::RunTables& tables, const std::string& key) {
  if (std::string why = why_no_settings(tables); !why.empty()) return why;
  const Framework framework = framework_of(tables);
  const std::vector<std::string>& keys = supported_keys(framework);
  if (std::ranges::find(keys, key) != keys.end()) return "";
  const auto begins = [&](const char* with) { return key.starts_with(with); };
  if (key == "train_micro_batch_size_per_gpu")
    return "what a module computes in another micro-batch is in no recording of this one";
  if (framework == Framework::fsdp2) return why_no_group_setting(key);
  if (framework == Framework::ddp) return why_no_ddp_setting(key);
  if (key == "train_batch_size") return "give gradient_accumulation_steps, from which it follows";
  if (begins("zero_optimization.offload_"))
    return "how fast states move between device and host with another offload setting, and how fast the host "
           "updates "
           "them, is in no recording of this one";
  if (begins("bf16") || begins("fp16") || begins("data_types") || key == "communication_data_type")
    return "how fast another data type computes and travels is in no recording of this one";
  if (begins("shardscope."))
    return "it is a setting of Shardscope's own runtime; what DeepSpeed trained had none";
  if (begins("activation_checkpointing")) return "what is recomputed is decided in the script";
  return "its effect on an attached run is not modelled";
}

std::string why_no_option(const instrumentation::RunTables& tables, const std::string& option) {
  if (option == "--search")
    return "settings are looked for among those of Shardscope's own runtime; ask one change after the other";
  if (option == "--ranks" || option == "--ranks-per-node")
    return "how other numbers of ranks share the machine and its links is in no recording of an attached run";
  if (option == "--link" || option == "--node-link") {
    if (has_times_of_host(tables)) return "no times are predicted for a run on a GPU";
    return "on a CPU a transfer takes the cores that compute, so its time does not follow from a link alone";
  }
  if (option == "--host-link") return "what is offloaded stays as it was recorded";
  if (option == "--matrix-tflops" || option == "--trial") return "data types are as they were recorded";
  if (option == "--model") return "the model is the recorded tree of modules";
  if (option == "--steps") return "every recorded step is replayed";
  if (option == "-o") return "of the changed run only times are computed, no events";
  return "it is of Shardscope's own runtime";
}

namespace {

void change_count(const Change& change, const CountKey& count, plan::ZeroConfig& zero) {
  constexpr std::int64_t kMostCount = kMost / 64;
  const std::int64_t value =
      count_of(change, count.least, count.key == kMicroSteps ? kMostMicroSteps : kMostCount);
  if (zero.stage < count.first_stage || zero.stage > count.last_stage)
    refuse(change, fmt::format("it does nothing at stage {}", zero.stage));
  zero.*(count.member) = value;
}

}  // namespace

ReplaySettings changed_settings(const instrumentation::RunTables& tables, const ReplaySettings& recorded,
                                const std::vector<Change>& changes) {
  const Framework framework = framework_of(tables);
  ReplaySettings out = recorded;
  for (const Change& change : changes) {
    if (std::string why = why_not_asked(tables, change.key); !why.empty())
      refuse(change,
             fmt::format("{}; what can be asked: {}", why, fmt::join(supported_keys(framework), ", ")));
    if (change.key == kStage) {
      set_stage(recorded.zero, change, out.zero);
    } else if (change.key == kOverlap) {
      set_overlap(change, out.zero);
    } else if (framework != Framework::deepspeed && change.key == kMicroSteps) {
      out.zero.gradient_accumulation_steps = count_of(change, 1, kMostMicroSteps);
    } else if (framework == Framework::fsdp2) {
      change_group_setting(change, out.groups);
    } else if (framework == Framework::ddp) {
      change_ddp_setting(change, out.buckets);
    }
  }
  if (framework != Framework::deepspeed) return out;
  // After the stage, on which their effect depends.
  for (const Change& change : changes) {
    const auto* count =
        std::ranges::find(kCounts, change.key, [](const CountKey& one) { return std::string(one.key); });
    if (count != std::end(kCounts))
      change_count(change, *count, out.zero);
    else if (change.key == kOverlap && out.zero.stage == 0)
      refuse(change, "it does nothing at stage 0");
  }
  return out;
}

}  // namespace shardscope::analysis::attached
