// The page that Prometheus reads: families, units, escaped labels, the end.
#include "app/export/open_metrics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <sstream>
#include <string>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::exporter {
namespace {

using analysis::TriggerKind;
using analysis::WatchInterval;

TEST(OpenMetrics, CountsAndGaugesAndLeavesOutWhatIsNotKnown) {
  test::RunBuilder run(2);
  store::Store& store = run.build();
  test::ev::RunTables tables = store.tables();
  tables.model = "a \"model\"\nwith \\";
  store.set_tables(0, tables);
  OpenMetrics metrics;
  WatchInterval interval;
  interval.steps = 5;
  interval.step_ms_median = 12.5;
  interval.overlap_pct = 40;
  interval.ranks = 2;
  interval.ranks_ended = 1;
  interval.step = 41;
  interval.loss = 2.5;
  interval.evaluation = {7, 3.25, false};
  interval.triggers = {{TriggerKind::slow_step, 1, 0, 0, ""}, {TriggerKind::slow_step, 2, 0, 0, ""}};
  metrics.count(interval);
  metrics.show(interval);
  interval.triggers.clear();
  interval.loss.reset();
  metrics.count(interval);
  metrics.show(interval);
  const std::string text = metrics.text(store, interval);
  const auto has = [&](const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("shardscope_steps_total 10")) << text;
  EXPECT_TRUE(has("shardscope_step_seconds 0.0125"));
  EXPECT_TRUE(has("shardscope_overlap_ratio 0.4"));
  EXPECT_TRUE(has("shardscope_held_out_loss 3.25"));
  EXPECT_TRUE(has("shardscope_step 41"));
  EXPECT_TRUE(has("shardscope_loss 2.5")) << "of the interval before";
  EXPECT_TRUE(has("shardscope_ranks{state=\"running\"} 1"));
  EXPECT_TRUE(has("shardscope_ranks{state=\"ended\"} 1"));
  EXPECT_TRUE(has("shardscope_ranks{state=\"failed\"} 0"));
  EXPECT_TRUE(has("shardscope_triggers_total{kind=\"slow_step\"} 2"));
  EXPECT_NE(text.find("model=\"a \\\"model\\\"\\nwith \\\\\""), std::string::npos);
  EXPECT_EQ(text.find("shardscope_grad_norm "), std::string::npos);
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

/// Between two scrapes of a slow run no step may end, and one that hangs ends no more.
TEST(OpenMetrics, AnIntervalWithoutAStepLeavesTheFiguresOfTheLast) {
  test::RunBuilder run(1);
  OpenMetrics metrics;
  WatchInterval with_steps;
  with_steps.step = 7;
  with_steps.steps = 2;
  with_steps.step_ms_median = 1500;
  with_steps.step_ms_max = 2000;
  with_steps.tokens_per_s = 100;
  metrics.show(with_steps);
  WatchInterval without;
  without.ranks = without.ranks_ended = without.ranks_failed = 1;
  without.quiet = std::chrono::milliseconds(12'500);
  metrics.show(without);
  const auto has = [&](const std::string& line) {
    return metrics.text(run.build(), without).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("shardscope_step 7"));
  EXPECT_TRUE(has("shardscope_step_seconds 1.5"));
  EXPECT_TRUE(has("shardscope_step_longest_seconds 2"));
  EXPECT_TRUE(has("shardscope_tokens_per_second 100"));
  EXPECT_TRUE(has("shardscope_seconds_since_event 12.5"));
  EXPECT_TRUE(has("shardscope_ranks{state=\"ended\"} 0"));
  EXPECT_TRUE(has("shardscope_ranks{state=\"failed\"} 1"));
  metrics.forget_steps();
  EXPECT_FALSE(has("shardscope_step_seconds 1.5")) << "of another run";
}

/// OpenMetrics 1.0: every sample follows its family's TYPE, a family comes once, a counter's sample ends with
/// _total, a unit is the last word of the name.
TEST(OpenMetrics, EverySampleBelongsToAFamilyDeclaredBeforeIt) {
  test::RunBuilder run(1);
  WatchInterval interval;
  interval.step_ms_median = interval.step_ms_max = interval.tokens_per_s = interval.loss = 1.0;
  interval.grad_norm = interval.loss_scale = interval.exposed_comm_pct = interval.idle_pct = 1.0;
  OpenMetrics metrics;
  metrics.count(interval);
  metrics.show(interval);
  std::istringstream lines(metrics.text(run.build(), interval));
  std::set<std::string> families;
  std::string line, last, family, type;
  while (std::getline(lines, line)) {
    last = line;
    std::istringstream words(line);
    std::string hash, what, name, value;
    words >> hash >> what >> name >> value;
    if (what == "TYPE") {
      EXPECT_TRUE(families.insert(name).second) << line;
      family = name;
      type = value;
    } else if (what == "UNIT") {
      EXPECT_TRUE(name.ends_with("_" + value)) << line;
    } else if (hash != "#") {
      const std::string sample = line.substr(0, line.find_first_of("{ "));
      const std::string suffix = type == "counter" ? "_total" : type == "info" ? "_info" : "";
      EXPECT_EQ(sample, family + suffix) << line;
    }
  }
  EXPECT_EQ(last, "# EOF");
}

}  // namespace
}  // namespace shardscope::exporter
