// `--set KEY=VALUE` over a configuration.
#include "app/cli/config_override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "app/cli/verb.h"
#include "runtime/config/config.h"

namespace shardscope::cli {
namespace {

using testing::HasSubstr;

nlohmann::json with(const std::string& text, const std::vector<std::string>& assignments) {
  return nlohmann::json::parse(config_text_with(text, "ds.json", assignments));
}

std::string refusal(const std::string& text, const std::vector<std::string>& assignments) {
  try {
    static_cast<void>(config_text_with(text, "ds.json", assignments));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigOverride, ValuesAreJsonAndElseStrings) {
  const nlohmann::json config = with(R"({"zero_optimization": {"stage": 2}})",
                                     {"zero_optimization.stage=3", "zero_optimization.overlap_comm=false",
                                      "bf16={\"enabled\": true}", "device=cpu", "note=\"3\""});
  EXPECT_EQ(config["zero_optimization"]["stage"], 3);
  EXPECT_EQ(config["zero_optimization"]["overlap_comm"], false);
  EXPECT_EQ(config["bf16"]["enabled"], true);
  EXPECT_EQ(config["device"], "cpu");
  EXPECT_EQ(config["note"], "3") << "a string where quotes say so";
}

TEST(ConfigOverride, MakesTheObjectsOnTheWayAndLeavesTheRest) {
  const nlohmann::json config = with(R"({"steps": 4})", {"optimizer.params.lr=0.5"});
  EXPECT_EQ(config, nlohmann::json::parse(R"({"steps": 4, "optimizer": {"params": {"lr": 0.5}}})"));
}

TEST(ConfigOverride, TheLastOfTwoHolds) { EXPECT_EQ(with("{}", {"a=1", "a=2"})["a"], 2); }

TEST(ConfigOverride, AValueMayHoldAnEqualsSign) { EXPECT_EQ(with("{}", {"a=b=c"})["a"], "b=c"); }

TEST(ConfigOverride, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("{}", {"stage"}), HasSubstr("--set stage: not KEY=VALUE"));
  EXPECT_THAT(refusal("{}", {"=3"}), HasSubstr("not KEY=VALUE"));
  EXPECT_THAT(refusal(R"({"stage": 2})", {"stage.x=1"}),
              HasSubstr("stage is no object in ds.json, it has no x"));
  EXPECT_THAT(refusal("{}", {"lr=1e999"}), HasSubstr("--set lr=1e999: holds a number beyond"));
  EXPECT_THAT(refusal("[]", {}), HasSubstr("ds.json: not a JSON object"));
  EXPECT_THROW(static_cast<void>(config_text_with("{", "ds.json", {})), config::ConfigError);
  EXPECT_THROW(static_cast<void>(config_with("/nonexistent/ds.json", {})), UserError);
}

TEST(TemporaryConfig, LivesAsLongAsItsObject) {
  std::string path;
  {
    const TemporaryConfig config("{\"a\": 1}", "ds.json", {"a=1"});
    path = config.path();
    EXPECT_EQ(config.name(), "ds.json with --set");
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), "{\"a\": 1}");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace shardscope::cli
