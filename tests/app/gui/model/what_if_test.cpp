// Changes asked of what-if, its answer, and the programs that the window starts.
#include "app/gui/model/what_if.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/model/compare_tables.h"
#include "app/gui/model/format.h"
#include "app/gui/model/sample_run.h"
#include "app/gui/model/setting_search_run.h"

namespace shardscope::gui {
namespace {

TEST(SettingTable, TakesChangesApart) {
  const Table table = setting_table({"zero_optimization.overlap_comm: true -> false", "a: (absent) -> 3"});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][0].text, "zero_optimization.overlap_comm");
  EXPECT_EQ(table.rows[0][1].text, "true");
  EXPECT_EQ(table.rows[0][2].text, "false");
}

ev::RunTables what_if_tables() {
  ev::RunTables tables;
  tables.world = 4;
  tables.local_world = 4;
  tables.stage = 3;
  tables.config_json =
      R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": 5e5}})";
  return tables;
}

TEST(WhatIf, NamesOnlyWhatDiffersFromTheRecording) {
  const ev::RunTables tables = what_if_tables();
  WhatIfChoice choice = as_recorded(tables);
  EXPECT_EQ(choice.values[0], "3");
  using Words = std::vector<std::string>;
  EXPECT_EQ(what_if_arguments("s", "r.zscope", tables, choice, ""),
            (Words{"s", "what-if", "r.zscope", "--json"}));
  for (std::size_t i = 0; i < what_if_settings().size(); ++i) {
    const std::string key = what_if_settings()[i].key;
    if (key == "zero_optimization.reduce_bucket_size") {
      EXPECT_EQ(choice.values[i], "500000") << "5e5 in the configuration is a whole number";
    }
    if (key == "zero_optimization.overlap_comm") choice.values[i] = "false";
  }
  choice.ranks = 8;
  choice.link_gb_per_s = 12.5;
  choice.link_latency_us = 20;
  choice.more = "gradient_clipping=0\nnot a setting\n";
  EXPECT_EQ(what_if_arguments("s", "r", tables, choice, "out"),
            (Words{"s", "what-if", "r", "--json", "--set", "zero_optimization.overlap_comm=false", "--set",
                   "gradient_clipping=0", "--ranks", "8", "--link", "12.5:20", "-o", "out"}));
}

TEST(WhatIf, ABoxThatTheConfigurationLeavesOutShowsItsDefault) {
  for (const int stage : {2, 3}) {
    ev::RunTables tables = what_if_tables();
    tables.stage = stage;
    tables.config_json = R"({"zero_optimization": {"stage": )" + std::to_string(stage) + "}}";
    const WhatIfChoice choice = as_recorded(tables);
    for (std::size_t i = 0; i < what_if_settings().size(); ++i) {
      if (what_if_settings()[i].key == std::string("zero_optimization.overlap_comm")) {
        EXPECT_EQ(choice.values[i], stage == 3 ? "true" : "false");
      }
    }
    EXPECT_EQ(what_if_arguments("s", "r", tables, choice, "").size(), 4U) << "nothing differs";
  }
}

TEST(WhatIf, ABoxThatNobodySetFollowsTheStageAndIsPlayedAsShown) {
  std::size_t overlap = 0;
  while (what_if_settings()[overlap].key != std::string("zero_optimization.overlap_comm")) ++overlap;
  using Words = std::vector<std::string>;
  const auto settings_of = [](const ev::RunTables& tables, const WhatIfChoice& choice) {
    const auto argv = what_if_arguments("s", "r", tables, choice, "");
    return Words(argv.begin() + 4, argv.end());
  };
  const auto words = [](const char* stage, const char* on) {
    return Words{"--set", std::string("zero_optimization.stage=") + stage, "--set",
                 std::string("zero_optimization.overlap_comm=") + on};
  };
  ev::RunTables tables = what_if_tables();
  for (const char* config : {R"({"zero_optimization": {"stage": 3}})",
                             R"({"zero_optimization": {"stage": 3, "overlap_comm": true}})"}) {
    tables.config_json = config;
    WhatIfChoice choice = as_recorded(tables);
    choose_stage(choice, tables, "2");
    EXPECT_EQ(choice.values[overlap], "false") << "the default of stage 2: " << config;
    EXPECT_EQ(settings_of(tables, choice), words("2", "false"));
    set(choice, overlap, "true");
    EXPECT_EQ(settings_of(tables, choice), words("2", "true")) << "as recorded, and named all the same";
    choose_stage(choice, tables, "1");
    EXPECT_EQ(choice.values[overlap], "true") << "the user's own stays";
    choose_stage(choice, tables, "3");
    choose_stage(choice, tables, "2");
    EXPECT_EQ(choice.values[overlap], "true") << "also by way of a stage whose default it is";
    WhatIfChoice advised = as_recorded(tables);
    change(advised, tables, {{"zero_optimization.overlap_comm", "true"}, {"zero_optimization.stage", "2"}});
    EXPECT_EQ(advised.values[overlap], "true") << "a setting requested with the stage is not its default";
  }
  tables.framework = "deepspeed";  // records what its configuration says, and no more
  WhatIfChoice attached = as_recorded(tables);
  choose_stage(attached, tables, "2");
  EXPECT_EQ(attached.values[overlap], "true") << "the configuration's own stays";
  tables.framework.clear();
  tables.stage = 2;
  tables.config_json = R"({"zero_optimization": {"stage": 2, "overlap_comm": true}})";
  WhatIfChoice own = as_recorded(tables);
  choose_stage(own, tables, "1");
  EXPECT_EQ(settings_of(tables, own), words("1", "true")) << "not the default of its stage: somebody set it";
}

TEST(WhatIf, ControlsThatCannotBeAskedOfAnAttachedRunHaveTheReason) {
  ev::RunTables tables = what_if_tables();
  const auto refused_of = [](const WhatIfRefusals& refusals, const std::string& key) {
    for (std::size_t i = 0; i < what_if_settings().size(); ++i)
      if (what_if_settings()[i].key == key) return refusals.settings[i];
    return std::string("no such setting");
  };
  const WhatIfRefusals own = what_if_refusals(tables);
  EXPECT_EQ(own.run + own.search + own.links + refused_of(own, "train_micro_batch_size_per_gpu"), "");
  tables.framework = "DeepSpeed 0.19.8";
  const WhatIfRefusals deepspeed = what_if_refusals(tables);
  EXPECT_EQ(deepspeed.run + refused_of(deepspeed, "zero_optimization.stage3_prefetch_bucket_size"), "");
  EXPECT_NE(refused_of(deepspeed, "train_micro_batch_size_per_gpu"), "");
  EXPECT_NE(deepspeed.search, "");
  EXPECT_NE(deepspeed.ranks, "");
  tables.framework = "FSDP2 (PyTorch 2.15.0)";
  const WhatIfRefusals fsdp2 = what_if_refusals(tables);
  EXPECT_EQ(fsdp2.run + refused_of(fsdp2, "fully_shard.reshard_after_forward"), "");
  EXPECT_NE(refused_of(fsdp2, "zero_optimization.stage"), "");
  EXPECT_NE(fsdp2.links, "");
  tables.framework = "Megatron-Core 0.16.1";
  const WhatIfRefusals megatron = what_if_refusals(tables);
  EXPECT_NE(megatron.run.find("Megatron-Core"), std::string::npos);
  for (const std::string& reason : megatron.settings) EXPECT_EQ(reason, megatron.run);
  EXPECT_EQ(megatron.links, megatron.run);
}

TEST(WhatIf, OffersTheSettingsThatTheFrameworkHas) {
  ev::RunTables tables = what_if_tables();
  const auto offered = [&](const std::string& key) {
    for (const WhatIfSetting& setting : what_if_settings())
      if (setting.key == key) return is_offered(setting, tables);
    return false;
  };
  EXPECT_TRUE(offered("zero_optimization.stage"));
  EXPECT_FALSE(offered("fully_shard.reshard_after_forward"));
  tables.framework = "FSDP2 (PyTorch 2.15.0)";
  EXPECT_FALSE(offered("zero_optimization.stage"));
  EXPECT_TRUE(offered("fully_shard.reshard_after_forward"));
  EXPECT_TRUE(offered("gradient_accumulation_steps"));
  EXPECT_FALSE(offered("DistributedDataParallel.bucket_cap_mb"));
  tables.framework = "DistributedDataParallel (PyTorch 2.15.0)";
  EXPECT_TRUE(offered("DistributedDataParallel.bucket_cap_mb"));
  EXPECT_TRUE(offered("DistributedDataParallel.reduce_in_last_micro_step_only"));
  EXPECT_FALSE(offered("zero_optimization.stage"));
  EXPECT_FALSE(offered("fully_shard.reshard_after_forward"));
  EXPECT_STREQ(unset_text(tables), "as recorded") << "DDP's script may have set it";
  tables.framework = "DeepSpeed 0.19.8";
  EXPECT_STREQ(unset_text(tables), "default");
  tables.framework = "FSDP2 (PyTorch 2.15.0)";
  EXPECT_STREQ(unset_text(tables), "as recorded");
  tables.config_json = R"({"fully_shard": {"reshard_after_forward": true}})";
  const auto at = [](const std::string& key) {
    std::size_t i = 0;
    while (what_if_settings()[i].key != key) ++i;
    return i;
  };
  WhatIfChoice choice = as_recorded(tables);
  EXPECT_EQ(choice.values[at("fully_shard.reshard_after_forward")], "true");
  set(choice, at("fully_shard.reshard_after_forward"), "false");
  EXPECT_EQ(what_if_arguments("shardscope", "run", tables, choice, ""),
            (std::vector<std::string>{"shardscope", "what-if", "run", "--json", "--set",
                                      "fully_shard.reshard_after_forward=false"}));
}

TEST(WhatIf, EachSliderSaysWhatItCounts) {
  for (const WhatIfSetting& setting : what_if_settings()) {
    if (setting.kind != WhatIfSetting::Kind::count) continue;
    EXPECT_NE(std::string(setting.unit), "") << setting.key;
    EXPECT_EQ(text_of(setting, "500000000"), grouped(500'000'000) + " " + setting.unit);
    EXPECT_FALSE(text_of(setting, "1").ends_with("s")) << text_of(setting, "1");
    EXPECT_EQ(text_of(setting, ""), "default") << "not 0: the configuration does not say";
    EXPECT_EQ(text_of(setting, "auto"), "auto");
    EXPECT_EQ(as_format(text_of(setting, "12%s")), "12%%s");
  }
}

TEST(WhatIf, ReadsWhatTheCommandGivesAndSaysSoWhereItIsNothing) {
  const auto [result, problem] = read_what_if(
      R"({"recorded": {"step_ms": 10}, "modelled_step_ms": 11, "model_error_pct": 10, "changed": {"step_ms": 9},
          "predicted_step_ms": 8, "predicted_change_pct": -20, "comparison": {"verdict": "B is faster.",
          "metrics": [{"metric": "overlap", "unit": "%", "a": 47, "b": 12, "lower_is_better": false},
                      {"metric": "fetch wait", "unit": "ms", "a": null, "b": null}]}})");
  ASSERT_TRUE(result) << problem;
  EXPECT_DOUBLE_EQ(result->predicted_ms, 8);
  ASSERT_EQ(result->comparison.metrics.size(), 2U);
  EXPECT_EQ(change_of(result->comparison.metrics[0])->text, "\u221235 points");
  EXPECT_FALSE(result->comparison.metrics[1].a) << "null is missing, not 0";
  EXPECT_FALSE(read_what_if("no JSON").first);
  EXPECT_NE(read_what_if("{}").second, "");
}

std::shared_ptr<const WhatIfRun::Outcome> outcome_of(WhatIfRun& run) {
  while (run.running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return run.outcome();
}

TEST(WhatIf, WhatTheCommandSaysIsTheProblemWhereItFails) {
  WhatIfRun run;
  run.start({"/bin/sh", "-c", "echo 'shardscope: a.zscope: too few steps' >&2; exit 1"}, "");
  const auto failed = outcome_of(run);
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->result);
  EXPECT_EQ(failed->problem, "a.zscope: too few steps");
  run.start({"/no/such/program"}, "");
  EXPECT_NE(outcome_of(run)->problem.find("/no/such/program"), std::string::npos);
  run.start(
      {"/bin/sh", "-c", R"(echo '{"recorded":{"step_ms":1},"changed":{"step_ms":2}}'; echo warned >&2)"}, "");
  const auto done = outcome_of(run);
  ASSERT_TRUE(done->result);
  EXPECT_EQ(done->result->warnings, "warned");
}

TEST(WhatIf, OfAnotherRunThereIsNoOutcomeAndTheFileOfTheOneBeforeStays) {
  const std::string file = testing::TempDir() + "what-if-outcome.zscope";
  std::ofstream(file) << "written";
  WhatIfRun run;
  run.start({"/bin/sh", "-c", R"(echo '{"recorded":{"step_ms":1},"changed":{"step_ms":2}}')"}, file);
  ASSERT_TRUE(outcome_of(run));
  run.forget();
  EXPECT_EQ(run.outcome(), nullptr);
  EXPECT_TRUE(std::filesystem::exists(file)) << "it may be what is shown now";
  run.start({"/bin/sh", "-c", "sleep 1000"}, "");
  run.forget();
  EXPECT_FALSE(run.running());
  EXPECT_EQ(run.outcome(), nullptr) << "nor that it was ended";
  SettingSearchRun search;
  search.start({"/bin/sh", "-c", "exit 1"});
  while (search.running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_NE(search.ended(), nullptr);
  search.forget();
  EXPECT_EQ(search.ended(), nullptr);
}

TEST(WhatIf, IsEndedWithWhatItStarted) {
  WhatIfRun run;
  run.start({"/bin/sh", "-c", "sleep 1000 & sleep 1000"}, "");
  run.cancel();
  EXPECT_EQ(outcome_of(run)->problem, "ended before it was done");
}

// Its option names are the command's, and what it writes is a recording: in gui_window_test.
TEST(SampleRun, IsTakenOnceAndItsFileGoesWithIt) {
  const auto arguments = sample_arguments("shardscope", "/tmp/a.zscope");
  EXPECT_EQ(arguments.front(), "shardscope");
  EXPECT_EQ(arguments.back(), "/tmp/a.zscope");
  std::string recording;
  {
    SampleRun run;
    EXPECT_FALSE(run.take()) << "nothing was started";
    run.start();
    std::optional<SampleRun::Outcome> outcome;
    while (!outcome) {
      outcome = run.take();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_NE(outcome->recording.empty(), outcome->problem.empty());
    recording = outcome->recording;
    EXPECT_FALSE(run.take()) << "taken already";
    EXPECT_EQ(std::filesystem::exists(recording), !recording.empty());
  }
  EXPECT_FALSE(std::filesystem::exists(recording));
}

}  // namespace
}  // namespace shardscope::gui
