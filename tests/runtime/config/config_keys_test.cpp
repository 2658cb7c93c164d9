// docs/configuration.md against the reader: no key is read that the page does not list, and none is listed
// that is not read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

using Keys = std::set<std::string>;
using KeysBySection = std::map<std::string, Keys>;

/// The keys that are read when every section is there.
KeysBySection known_keys() {
  const auto json = nlohmann::json::parse(R"({
      "train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {}}, "scheduler": {"type": "WarmupLR"}, "fp16": {},
      "bf16": {}, "data_types": {}, "activation_checkpointing": {}, "aio": {},
      "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "zenflow": {}, "leaf_module": {},
          "offload_optimizer": {"device": "cpu"}, "zeropp_loco_param": {}},
      "shardscope": {"compat": {}, "micro_batches": {}, "emulated_link": {"gbps": 1, "latency_us": 1}}})");
  ParseContext context;
  ParseOptions options;
  options.world = 4;
  static_cast<void>(read_config(Section(context, json, ""), options));
  return context.known;
}

std::vector<std::string> quoted_words(const std::string& text) {
  constexpr std::string_view kOfKeys = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.";
  std::vector<std::string> words;
  for (std::size_t open = text.find('`'); open != std::string::npos;) {
    const std::size_t end = text.find_first_not_of(kOfKeys, open + 1);
    if (end == std::string::npos) break;
    const bool word = text[end] == '`' && end > open + 1;
    if (word) words.push_back(text.substr(open + 1, end - open - 1));
    open = text.find('`', word ? end + 1 : open + 1);
  }
  return words;
}

struct Page {
  Keys words;            ///< in `quotes`, anywhere
  KeysBySection tables;  ///< first columns, by the section that they list
};

/// Tables whose head begins with "Key", "Key of `section`" or "Switch" list keys.
Page read_page() {
  std::ifstream file(SHARDSCOPE_CONFIGURATION_PAGE);
  EXPECT_TRUE(file) << SHARDSCOPE_CONFIGURATION_PAGE;
  Page page;
  std::string section, table;
  bool in_table = false, lists_keys = false;
  for (std::string line; std::getline(file, line);) {
    for (std::string& word : quoted_words(line)) page.words.insert(std::move(word));
    if (line.rfind("## ", 0) == 0) section = line.substr(3) == "Keys of the root" ? "" : line.substr(3);
    const bool row = line.rfind("| ", 0) == 0;
    const std::string first = row ? line.substr(2, line.find(" |", 2) - 2) : "";
    if (row && !in_table) {
      lists_keys = first.rfind("Key", 0) == 0 || first == "Switch";
      const auto of = quoted_words(first);
      table = of.empty() ? section : "zero_optimization." + of[0];
      if (first == "Switch") table = "shardscope.compat";
    } else if (row && lists_keys) {
      for (std::string& word : quoted_words(first)) page.tables[table].insert(std::move(word));
    }
    in_table = line.rfind("|", 0) == 0;
  }
  return page;
}

TEST(ConfigKeys, EveryListedKeyIsRead) {
  const KeysBySection known = known_keys();
  const Page page = read_page();
  for (const auto& [section, keys] : page.tables) {
    const auto read = known.find(section);
    ASSERT_NE(read, known.end()) << "the page lists keys of \"" << section << '"';
    for (const std::string& key : keys) {
      EXPECT_EQ(read->second.count(key), 1U) << section << ": the page lists " << key;
    }
  }
}

TEST(ConfigKeys, EveryKeyThatIsReadIsListed) {
  const Page page = read_page();
  // Listed in a table of their own; keys of other sections anywhere on the page.
  const Keys own_table = {"zero_optimization",
                          "zero_optimization.offload_param",
                          "zero_optimization.offload_optimizer",
                          "zero_optimization.leaf_module",
                          "zero_optimization.zenflow",
                          "shardscope.compat"};
  for (const std::string& section : own_table) ASSERT_EQ(page.tables.count(section), 1U) << section;
  for (const auto& [section, keys] : known_keys()) {
    const Keys& listed = own_table.count(section) != 0 ? page.tables.at(section) : page.words;
    for (const std::string& key : keys) {
      EXPECT_EQ(listed.count(key), 1U) << "the page does not list " << key << " of \"" << section << '"';
    }
  }
}

/// deepspeed/runtime/zero/config.py of 0.19.6 with offload_config.py, leaf_module_config.py and
/// zenflow_config.py: the fields of its models and their aliases.
TEST(ConfigKeys, EveryZeroKeyOfDeepSpeedIsKnown) {
  const KeysBySection deepspeed = {
      {"zero_optimization",
       {"allgather_bucket_size",
        "allgather_partitions",
        "allgather_sequential",
        "contiguous_gradients",
        "cpu_offload",
        "cpu_offload_param",
        "cpu_offload_use_pin_memory",
        "elastic_checkpoint",
        "enable_sanity_checks",
        "gather_16bit_weights_on_model_save",
        "ignore_unused_parameters",
        "leaf_module",
        "legacy_stage1",
        "load_from_fp32_weights",
        "log_trace_cache_warnings",
        "max_live_parameters",
        "max_reuse_distance",
        "memory_efficient_linear",
        "mics_hierarchical_params_gather",
        "mics_shard_size",
        "model_persistence_threshold",
        "module_granularity_threshold",
        "offload_optimizer",
        "offload_param",
        "overlap_comm",
        "override_module_apply",
        "param_persistence_threshold",
        "pipeline_loading_checkpoint",
        "prefetch_bucket_size",
        "reduce_bucket_size",
        "reduce_scatter",
        "round_robin_gradients",
        "save_muon_momentum_buffer_in_memory",
        "stage",
        "stage3_allgather_sequential",
        "stage3_gather_16bit_weights_on_model_save",
        "stage3_gather_fp16_weights_on_model_save",
        "stage3_max_live_parameters",
        "stage3_max_reuse_distance",
        "stage3_model_persistence_threshold",
        "stage3_module_granularity_threshold",
        "stage3_param_persistence_threshold",
        "stage3_prefetch_bucket_size",
        "stage3_use_all_reduce_for_fetch_params",
        "sub_group_size",
        "use_all_reduce_for_fetch_params",
        "use_multi_rank_bucket_allreduce",
        "zenflow",
        "zero_hpz_partition_size",
        "zero_quantized_gradients",
        "zero_quantized_nontrainable_weights",
        "zero_quantized_weights",
        "zeropp_loco_param"}},
      {"zero_optimization.offload_param",
       {"buffer_count", "buffer_size", "device", "max_in_cpu", "nvme_path", "pin_memory"}},
      {"zero_optimization.offload_optimizer",
       {"buffer_count", "cpuadam_cores_perc", "device", "fast_init", "nvme_path", "pin_memory",
        "pipeline_read", "pipeline_write", "ratio", "super_offload"}},
      {"zero_optimization.leaf_module", {"classes", "name_suffixes", "names"}},
      {"zero_optimization.zenflow",
       {"auto_ratio", "full_warm_up_rounds", "offload", "overlap_step", "pt_reserved_cores_perc",
        "select_interval", "select_strategy", "steps_per_epoch", "topk_ratio", "update_interval"}}};
  const KeysBySection known = known_keys();
  for (const auto& [section, keys] : deepspeed) {
    for (const std::string& key : keys) EXPECT_EQ(known.at(section).count(key), 1U) << section << ": " << key;
  }
}

}  // namespace
}  // namespace shardscope::config
