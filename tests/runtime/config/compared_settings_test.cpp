// Which settings the ranks of a run compare: all that the reader knows, but for those a rank may have for
// itself.
#include "runtime/config/compared_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

using Json = nlohmann::json;
using Keys = std::set<std::string>;

/// Configurations that have every setting between them.
std::vector<Json> configurations() {
  std::vector<Json> all{
      Json::parse(
          R"({"optimizer": {"type": "Adam", "params": {}}, "fp16": {"enabled": true}, "data_types": {},
          "activation_checkpointing": {}, "aio": {},
          "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"},
              "leaf_module": {}, "zero_quantized_gradients": true, "zeropp_loco_param": {}},
          "shardscope": {"compat": {"preset": "deepspeed"}, "emulated_link": {"gbps": 1, "intra_gbps": 1}}})"),
      Json::parse(R"({"bf16": {"enabled": true}, "shardscope": {},
          "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {}}})"),
      Json::parse(R"({"bf16": {"enabled": true}, "shardscope": {},
          "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
              "zenflow": {"select_strategy": "step", "select_interval": 4}}})"),
      Json::parse(R"({"zero_optimization": {"stage": 3, "mics_shard_size": 2},
          "shardscope": {"micro_batches": {"packing": "padded", "pad_to_multiple_of": 4}}})"),
      Json::parse(R"({"scheduler": {"type": "WarmupLR"}})"),
      Json::parse(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 2000}}})"),
      Json::parse(R"({"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 2000}}})"),
      Json::parse(R"({"scheduler": {"type": "LRRangeTest"}})"),
      Json::parse(
          R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.001, "cycle_max_lr": 0.01}}})")};
  for (Json& json : all) json["train_micro_batch_size_per_gpu"] = 2;
  return all;
}

ParseOptions four_ranks() {
  ParseOptions options;
  options.world = 4;
  return options;
}

TrainingConfig config_of(const Json& json) { return parse_config(json.dump(), four_ranks()); }

Keys compared_keys(const TrainingConfig& config) {
  Keys keys;
  for (const plan::RankSetting& setting : compared_settings(config)) keys.insert(setting.key);
  return keys;
}

bool of_one_rank(const std::string& path) {
  const auto own = keys_of_one_rank();
  return std::any_of(own.begin(), own.end(), [&](std::string_view key) {
    return path == key || path.rfind(std::string(key) + ".", 0) == 0;
  });
}

/// Every key that the reader asks for and makes a setting of.
Keys read_keys() {
  Keys keys, sections;
  for (const Json& json : configurations()) {
    ParseContext context;
    static_cast<void>(read_config(Section(context, json, ""), four_ranks()));
    for (const auto& [section, names] : context.known) {
      sections.insert(section);
      for (const std::string& name : names) {
        const std::string path = section.empty() ? name : section + "." + name;
        if (context.settingless.count(path) == 0) keys.insert(path);
      }
    }
  }
  for (const std::string& section : sections) keys.erase(section);
  return keys;
}

/// Keys that are another way to say a compared one, or that may hold one value only.
const std::set<std::string>& other_ways() {
  static const std::set<std::string> keys{
      "allgather_size",                    // of the deprecated form of zero_optimization
      "bfloat16",                          // bf16
      "gradient_allreduce_op",             // mean
      "managed_gradient_accumulation",     // true
      "sequence_parallel_size",            // 1
      "optimizer.params.torch_adam",       // the default of weight_decay
      "optimizer.params.bias_correction",  // true
      "optimizer.params.fp32_optimizer_states",
      "scheduler.params.last_batch_iteration",
      "data_types.param_dtype",         // what fp16 and bf16 say
      "shardscope.comm",                // emulated_link
      "zero_optimization.cpu_offload",  // offload_optimizer, offload_param
      "zero_optimization.cpu_offload_param",
      "zero_optimization.cpu_offload_params",
      "zero_optimization.cpu_offload_use_pin_memory",
      "zero_optimization.stage3_gather_fp16_weights_on_model_save",
      "zero_optimization.max_live_parameters",  // without stage3_
      "zero_optimization.max_reuse_distance",
      "zero_optimization.prefetch_bucket_size",
      "zero_optimization.param_persistence_threshold",
      "zero_optimization.model_persistence_threshold",
      "zero_optimization.gather_16bit_weights_on_model_save",
      "zero_optimization.use_all_reduce_for_fetch_params",
      "zero_optimization.allgather_sequential",
      "zero_optimization.module_granularity_threshold"};
  return keys;
}

// A key that somebody adds is in one of these three, or this fails.
TEST(ComparedSettings, EveryKeyThatIsReadIsComparedOrOfOneRank) {
  Keys compared;
  for (const Json& json : configurations()) {
    for (const std::string& key : compared_keys(config_of(json))) compared.insert(key);
  }
  // Written where it is false or has an effect (effective_json.cpp).
  Json multi_rank = configurations().front();
  multi_rank["zero_optimization"]["use_multi_rank_bucket_allreduce"] = false;
  for (const std::string& key : compared_keys(config_of(multi_rank))) compared.insert(key);
  // Written where the file names groups.
  Json groups = configurations().front();
  groups["shardscope"]["param_groups"] = Json::array({Json::object()});
  for (const std::string& key : compared_keys(config_of(groups))) compared.insert(key);
  const Keys read = read_keys();
  ASSERT_GT(read.size(), 100U);
  for (const std::string& key : read) {
    const int classes =
        static_cast<int>(compared.count(key) + (of_one_rank(key) ? 1 : 0) + other_ways().count(key));
    EXPECT_EQ(classes, 1) << key
                          << (classes == 0 ? ": neither compared nor named as a rank's own"
                                           : ": in more than one class");
  }
  for (const std::string_view own : keys_of_one_rank()) {
    const bool known = std::any_of(read.begin(), read.end(), [&](const std::string& key) {
      return key == own || key.rfind(std::string(own) + ".", 0) == 0;
    });
    EXPECT_TRUE(known) << own << ": no such key";
  }
}

/// Values to try in place of one: one that the reader takes will be among them.
std::vector<Json> others(const Json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_integer() || value.is_number_unsigned()) {
    const auto number = value.get<std::int64_t>();
    return {number > 0 ? number / 2 : number + 1, 1, 2, 4, number < 1000 ? number + 1 : number - 1};
  }
  if (value.is_number()) return {value.get<double>() / 2, 0.5, 0.25, 1.0};
  if (value.is_array()) {
    return {Json::array({0.5, 0.75}), Json::array({"Linear"}), Json::array({Json::array({1, 2})}),
            Json::array({Json::array({0, 1}), Json::array({2, 3})})};
  }
  return {"cpu",  "none",  "Adam",     "AdamW",     "bf16",       "fp32",   "linear", "epoch",
          "step", "notes", "WarmupLR", "deepspeed", "shardscope", "packed", 2};
}

// Each setting by itself: another value is found, and named.
TEST(ComparedSettings, AnotherValueOfAnyOfThemIsADifference) {
  Keys found, all;
  for (const Json& json : configurations()) {
    const TrainingConfig config = config_of(json);
    const auto first = compared_settings(config);
    Json effective = Json::parse(effective_json(config));
    effective.erase("train_batch_size");  // follows the others
    for (const auto& setting : first) {
      all.insert(setting.key);
      std::string pointer = "/" + setting.key;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      const Json::json_pointer at(pointer);
      if (!effective.contains(at)) continue;
      for (const Json& value : others(effective[at])) {
        Json changed = effective;
        changed[at] = value;
        try {
          const auto difference = plan::first_difference(first, compared_settings(config_of(changed)));
          if (!difference) continue;
          if (difference->key != setting.key) continue;
          EXPECT_EQ(difference->first->value, setting.value);
          EXPECT_NE(difference->other ? difference->other->value : "", setting.value);
          found.insert(difference->key);
          found.insert(difference->more.begin(), difference->more.end());
          break;
        } catch (const ConfigError&) {  // not a value for this key
        }
      }
    }
  }
  // What only changes together with another key, between the configurations themselves.
  const std::vector<Json> list = configurations();
  for (std::size_t i = 1; i < list.size(); ++i) {
    const auto difference = plan::first_difference(compared_settings(config_of(list[i - 1])),
                                                   compared_settings(config_of(list[i])));
    ASSERT_TRUE(difference);
    found.insert(difference->key);
    found.insert(difference->more.begin(), difference->more.end());
  }
  Keys missed;
  std::set_difference(all.begin(), all.end(), found.begin(), found.end(),
                      std::inserter(missed, missed.begin()));
  // Has no other value that the reader takes.
  missed.erase("zero_optimization.offload_optimizer.super_offload");
  EXPECT_THAT(missed, ::testing::IsEmpty());
}

TEST(ComparedSettings, ARanksOwnAreNoDifference) {
  Json json = configurations().front();
  const auto first = compared_settings(config_of(json));
  json["steps_per_print"] = 3;
  json["aio"] = {{"block_size", 4096}, {"queue_depth", 3}};
  json["zero_optimization"]["offload_param"]["nvme_path"] = "/elsewhere";
  json["zero_optimization"]["offload_optimizer"]["nvme_path"] = "/elsewhere";
  json["zero_optimization"]["log_trace_cache_warnings"] = true;
  json["shardscope"]["emulated_link"] = {{"gbps", 3}};
  json["shardscope"].update(Json::parse(
      R"({"detail": "steps", "ring_events": 2048, "queue_bytes": 65536, "key": "other.key", "linger_s": 1, "data_prefetch": 0})"));
  EXPECT_FALSE(plan::first_difference(first, compared_settings(config_of(json))));
}

TEST(SettingsAgreement, NamesKeyRanksAndValues) {
  using plan::RankSetting;
  const std::vector<RankSetting> first{
      {"a", "1", "", ""}, {"b", "2", "in b.json", "do this"}, {"c", "3", "", ""}, {"d", "4", "", ""}};
  EXPECT_FALSE(plan::first_difference(first, first));
  std::vector<RankSetting> other = first;
  other[1] = {"b", "7", "in c.json", "do this"};
  other[1].note = "in c.json";
  auto difference = plan::first_difference(plan::settings_of(plan::to_text(first)), other);
  ASSERT_TRUE(difference);
  EXPECT_EQ(plan::describe_difference(*difference, 5, 1, 8),
            "b: rank 5 has 7 (in c.json), rank 0 has 2 (in b.json); do this");
  other[2].value = "";
  other.pop_back();
  other.push_back({"e", "5", "", ""});
  difference = plan::first_difference(first, other);
  ASSERT_TRUE(difference);
  EXPECT_EQ(
      plan::describe_difference(*difference, 5, 3, 8),
      "b: rank 5 has 7 (in c.json), rank 0 has 2 (in b.json); 3 more settings differ: c, d, e; 3 of 8 ranks "
      "differ from rank 0; do this");
  difference = plan::first_difference({}, other);
  ASSERT_TRUE(difference);
  EXPECT_THAT(plan::describe_difference(*difference, 1, 1, 2),
              ::testing::HasSubstr("a: rank 1 has 1, rank 0 has no such setting; 3 more"));
  EXPECT_THROW((void)plan::settings_of("cut"), std::invalid_argument);
}

}  // namespace
}  // namespace shardscope::config
