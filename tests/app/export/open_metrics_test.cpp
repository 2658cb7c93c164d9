// The page that Prometheus reads: families, units, escaped labels, the end.
#include "app/export/open_metrics.h"

#include <gtest/gtest.h>

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
  interval.evaluation = {7, 3.25, false};
  interval.triggers = {{TriggerKind::slow_step, 1, 0, 0, ""}, {TriggerKind::slow_step, 2, 0, 0, ""}};
  metrics.take(interval);
  interval.triggers.clear();
  metrics.take(interval);
  const std::string text = metrics.text(store, interval);
  const auto has = [&](const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("shardscope_steps_total 10")) << text;
  EXPECT_TRUE(has("shardscope_step_seconds 0.0125"));
  EXPECT_TRUE(has("shardscope_overlap_ratio 0.4"));
  EXPECT_TRUE(has("shardscope_held_out_loss 3.25"));
  EXPECT_TRUE(has("shardscope_ranks{state=\"running\"} 1"));
  EXPECT_TRUE(has("shardscope_triggers_total{kind=\"slow_step\"} 2"));
  EXPECT_NE(text.find("model=\"a \\\"model\\\"\\nwith \\\\\""), std::string::npos);
  EXPECT_EQ(text.find("shardscope_loss "), std::string::npos);
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

/// OpenMetrics 1.0: every sample follows its family's TYPE, a family comes once, a counter's sample ends with
/// _total, a unit is the last word of the name.
TEST(OpenMetrics, EverySampleBelongsToAFamilyDeclaredBeforeIt) {
  test::RunBuilder run(1);
  WatchInterval interval;
  interval.step_ms_median = interval.step_ms_max = interval.tokens_per_s = interval.loss = 1.0;
  interval.grad_norm = interval.loss_scale = interval.exposed_comm_pct = interval.idle_pct = 1.0;
  std::istringstream lines(OpenMetrics().text(run.build(), interval));
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
