// What is left of an effective configuration without its defaults: the same settings, and a change to them
// does what it does in the file that the run was made with.
#include "runtime/config/given_settings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace shardscope::config {
namespace {

using Json = nlohmann::json;

ParseOptions of_ranks(std::uint32_t world) {
  ParseOptions options;
  options.world = world;
  return options;
}

Json given(const Json& file, std::uint32_t world = 4) {
  const ParseOptions options = of_ranks(world);
  return Json::parse(without_defaults(effective_json(parse_config(file.dump(), options)), options));
}

Json effective(const Json& file, std::uint32_t world = 4) {
  return Json::parse(effective_json(parse_config(file.dump(), of_ranks(world))));
}

const char* const kFiles[] = {
    R"({"train_batch_size": 16, "zero_optimization": {"stage": 2}})",
    R"({"train_batch_size": 16, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"},
        "zero_optimization": {"stage": 3, "overlap_comm": false, "stage3_prefetch_bucket_size": 1000}})",
    R"({"train_batch_size": 16, "fp16": {"enabled": true, "loss_scale": 128}, "communication_data_type": "fp32",
        "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}})",
    R"({"train_batch_size": 16, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 2000}},
        "zero_optimization": {"stage": 3, "mics_shard_size": 2},
        "shardscope": {"compat": {"preset": "deepspeed", "max_ongoing_fetch_events": 5}}})",
};

TEST(GivenSettings, ReadBackToTheSame) {
  for (const char* file : kFiles) {
    const Json json = Json::parse(file);
    EXPECT_EQ(effective(given(json)), effective(json)) << file;
  }
}

TEST(GivenSettings, HoldsNoDefault) {
  for (const char* file : kFiles) {
    const Json left = given(Json::parse(file)).flatten();
    for (const auto& [key, value] : left.items()) {
      Json without = left.unflatten();
      const Json::json_pointer path(key);
      without[path.parent_pointer()].erase(path.back());
      try {
        EXPECT_NE(effective(without), effective(Json::parse(file))) << file << " " << key;
      } catch (const ConfigError&) {
        // Needed by what remains.
      }
    }
  }
}

/// Of each file a change, and the derived default that must follow it.
TEST(GivenSettings, DefaultsFollowWhatIsChanged) {
  struct Change {
    const char *file, *key, *value, *follows;
  };
  for (
      const auto& [file, key, value, follows] : {
          Change{R"({"train_batch_size": 16, "zero_optimization": {"stage": 2}})", "/bf16/enabled", "true",
                 "/communication_data_type"},
          Change{R"({"train_batch_size": 16, "zero_optimization": {"stage": 2}})", "/bf16/enabled", "true",
                 "/data_types/grad_accum_dtype"},
          Change{R"({"train_batch_size": 16, "zero_optimization": {"stage": 2}})", "/zero_optimization/stage",
                 "3", "/zero_optimization/overlap_comm"},
          Change{R"({"train_batch_size": 16, "zero_optimization": {"stage": 3}})", "/zero_optimization/stage",
                 "1", "/zero_optimization/overlap_comm"},
          Change{
              R"({"train_batch_size": 16, "zero_optimization": {"stage": 3}, "shardscope": {"compat": "notes"}})",
              "/shardscope/compat", "\"deepspeed\"", "/shardscope/compat/scheduler"},
      }) {
    const Json::json_pointer path(key), derived(follows);
    Json in_file = Json::parse(file), in_recording = given(in_file);
    const Json before = effective(in_file);
    in_file[path] = Json::parse(value);
    in_recording[path] = Json::parse(value);
    const Json after = effective(in_file);
    EXPECT_NE(before.at(derived), after.at(derived)) << file << key;
    EXPECT_EQ(effective(in_recording), after) << file << key;
  }
}

TEST(GivenSettings, WhatWasWrittenStays) {
  const Json left = given(Json::parse(kFiles[1]));
  EXPECT_EQ(left.at("/data_types/grad_accum_dtype"_json_pointer), "fp32");
  EXPECT_EQ(left.at("/zero_optimization/overlap_comm"_json_pointer), false);
}

TEST(GivenSettings, RefusesWhatTheReaderRefuses) {
  EXPECT_THROW(static_cast<void>(without_defaults(R"({"zero_optimization": {"stage": 7}})", of_ranks(2))),
               ConfigError);
  EXPECT_THROW(static_cast<void>(without_defaults("[", of_ranks(2))), ConfigError);
}

}  // namespace
}  // namespace shardscope::config
