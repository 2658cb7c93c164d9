// What a finding costs, changes and gives, and how its settings come into the panel What if.
#include "app/gui/model/finding_detail.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/gui/model/finding_place.h"
#include "app/gui/model/plan_counts.h"
#include "app/gui/model/setting_search_run.h"
#include "app/gui/model/what_if.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

namespace ev = shardscope::instrumentation;

ev::RunTables tables() {
  ev::RunTables out;
  out.world = out.local_world = 4;
  out.stage = 3;
  out.config_json =
      R"({"zero_optimization":{"stage":3,"overlap_comm":false,"offload_optimizer":{"device":"cpu"}}})";
  return out;
}

analysis::Finding finding() {
  analysis::Finding out;
  out.cost_ms = 12.5;
  out.cost_bytes = 3 << 20;
  out.changes = {{"zero_optimization.overlap_comm", "true"},
                 {"zero_optimization.offload_optimizer.device", "\"none\""},
                 {"fp16.loss_scale_window", "400"}};
  out.gain_ms = 10;
  out.gain_basis = "all of it hidden";
  out.explains = {"a follower"};
  out.page = "docs/findings/overlap_off.md";
  return out;
}

std::size_t place_of(const std::string& key) {
  const auto& settings = what_if_settings();
  return static_cast<std::size_t>(
      std::ranges::find_if(settings, [&](const WhatIfSetting& one) { return key == one.key; }) -
      settings.begin());
}

TEST(FindingDetail, SaysCostChangeAndGain) {
  store::Store store;
  store.set_tables(0, tables());
  const FindingDetail detail = detail_of(store, finding());
  EXPECT_EQ(detail.cost, "12.5 ms of a step, 3.00 MiB");
  EXPECT_EQ(detail.gain, "10.0 ms of a step (all of it hidden)");
  ASSERT_EQ(detail.changes.size(), 3U);
  EXPECT_EQ(detail.changes[0].now, "false");
  EXPECT_EQ(detail.changes[0].then, "true");
  EXPECT_EQ(detail.changes[1].now, "cpu");
  EXPECT_EQ(detail.changes[1].then, "none") << "without the quotation marks of JSON";
  EXPECT_EQ(detail.changes[1].option, "zero_optimization.offload_optimizer.device=\"none\"");
  EXPECT_EQ(detail.changes[2].now, "default");
  EXPECT_EQ(detail.explains, std::vector<std::string>{"a follower"});
  EXPECT_EQ(detail.page, "docs/findings/overlap_off.md");
}

TEST(FindingDetail, OfAFindingWithoutFiguresIsEmpty) {
  const FindingDetail detail = detail_of(store::Store(), {});
  EXPECT_EQ(detail.cost + detail.gain + detail.page, "");
  EXPECT_TRUE(detail.changes.empty());
}

TEST(FindingDetail, WhatIfTakesItsChanges) {
  const ev::RunTables run = tables();
  WhatIfChoice choice = as_recorded(run);
  change(choice, run, finding().changes);
  EXPECT_EQ(choice.values[place_of("zero_optimization.overlap_comm")], "true");
  EXPECT_EQ(choice.values[place_of("zero_optimization.offload_optimizer.device")], "none");
  EXPECT_EQ(choice.more, "fp16.loss_scale_window=400") << "what has no control of its own";
  const auto argv = what_if_arguments("s", "r", run, choice, "");
  EXPECT_EQ(argv,
            (std::vector<std::string>{
                "s", "what-if", "r", "--json", "--set", "zero_optimization.overlap_comm=true", "--set",
                "zero_optimization.offload_optimizer.device=none", "--set", "fp16.loss_scale_window=400"}));
}

TEST(FindingDetail, ThePanelThatAFindingNamesIsShown) {
  analysis::Finding named;
  named.title = "Rank 3 is a straggler";
  named.panel = "communication";
  EXPECT_EQ(panel_of(named), "communication");
}

TEST(PlanCounts, AreOfAStepAndDifferWhereThePlanDoes) {
  analysis::Summary with;
  with.steps = with.prefetch_steps = with.ops_steps = 2;
  with.ranks.resize(2);
  with.prefetch = analysis::Prefetch{.early = 20, .just_in_time = 12, .late = 8};
  analysis::OpRow gathers;
  gathers.op = ev::CollectiveOp::all_gather;
  gathers.count = 24;
  gathers.elems = 4000;
  with.ops = {gathers};
  with.critical_path = analysis::PathSummary{
      .steps = 2, .ms_per_step = {{"compute", 5.0}, {"waiting", 2.0}}, .gain_ms_per_step = {}};
  analysis::Summary without = with;
  without.prefetch = analysis::Prefetch{};
  without.ops[0].count = 60;
  without.critical_path->ms_per_step[1].second = 3.5;
  const store::Store store;
  const auto a = plan_counts(store, with);
  const auto b = plan_counts(store, without);
  EXPECT_TRUE(plan_difference(a, a).rows.empty()) << "what is alike is no difference";
  const Table table = plan_difference(a, b);
  const auto row = [&](const std::string& what) -> std::vector<double> {
    for (const auto& cells : table.rows)
      if (cells[0].text == what) return {*cells[1].value, *cells[2].value, *cells[3].value};
    return {};
  };
  EXPECT_EQ(row("prefetches"), (std::vector<double>{10, 0, -10})) << "a rank's, in a step";
  EXPECT_EQ(row("prefetches that came late"), (std::vector<double>{2, 0, -2}));
  EXPECT_EQ(row("all-gather operations"), (std::vector<double>{12, 30, 18}));
  EXPECT_EQ(row("critical path: waiting"), (std::vector<double>{2, 3.5, 1.5}));
  EXPECT_EQ(table.rows.size(), 4U) << "elements and compute are the same";
  EXPECT_EQ(plan_difference(b, a).rows.size(), table.rows.size()) << "rows of either run";
}

TEST(SettingSearch, NamesTheFastestAndWhetherThatIsSure) {
  EXPECT_EQ(search_arguments("s", "r.zscope", 0),
            (std::vector<std::string>{"s", "what-if", "r.zscope", "--search", "--json", "--best", "10"}));
  EXPECT_EQ(search_arguments("s", "r", 1.5).back(), "1610612736B");
  const auto [outcome, problem] = read_search(R"({
    "recorded": {"step_ms": 80.0, "peak_memory_bytes": 1000}, "error_pct": 7.1, "played": 42, "combinations": 99,
    "verdict": "One is faster.",
    "best": [{"settings": {"zero_optimization.overlap_comm": "true"}, "predicted_step_ms": 70.0,
              "predicted_change_pct": -12.5, "peak_memory_bytes": 2048, "beyond_error": true},
             {"settings": {}, "predicted_step_ms": 80.0, "predicted_change_pct": 0, "beyond_error": false}]})");
  ASSERT_TRUE(outcome) << problem;
  EXPECT_EQ(outcome->played, 42U);
  ASSERT_EQ(outcome->best.size(), 2U);
  EXPECT_EQ(outcome->best[0].changes[0].key, "zero_optimization.overlap_comm");
  EXPECT_EQ(error_text(*outcome), "Predictions are off by up to 7.1 %.");
  SearchOutcome on_gpus = *outcome;
  on_gpus.error_on = "two CPU cores";
  on_gpus.not_measured = "on GPUs";
  EXPECT_EQ(error_text(on_gpus),
            "Predictions are off by up to 7.1 % (measured: two CPU cores); on GPUs this was not measured.");
  const Table table = search_table(*outcome);
  EXPECT_EQ(table.rows[0][0].text, "overlap_comm=true");
  EXPECT_EQ(table.rows[0][2].text, "\u221212.5 %");
  EXPECT_EQ(table.rows[0][2].tone, Tone::good);
  EXPECT_EQ(table.rows[1][0].text, "as recorded");
  EXPECT_EQ(table.rows[1][2].tone, Tone::muted);
  EXPECT_FALSE(read_search("no JSON").first);
  EXPECT_FALSE(read_search("{}").second.empty());
}

/// With few events there is no finding either: the empty list must not read as "all is well".
TEST(Findings, SayWhatCouldNotBeFoundAtALowDetail) {
  const std::string phases = findings_looked_for(ev::Detail::phases);
  EXPECT_NE(phases.find("Stragglers and exposed communication need detail modules"), std::string::npos)
      << phases;
  EXPECT_NE(phases.find("nothing above phases was recorded"), std::string::npos) << phases;
  const std::string modules = findings_looked_for(ev::Detail::modules);
  EXPECT_EQ(modules.find("Stragglers, exposed communication and drops would be listed"), 0U) << modules;
  EXPECT_NE(modules.find("Late prefetches and memory above the expression need detail params"),
            std::string::npos);
  EXPECT_EQ(findings_looked_for(ev::Detail::params).find("need"), std::string::npos);
  EXPECT_EQ(findings_looked_for(ev::Detail::kernels), findings_looked_for(ev::Detail::params));
}

}  // namespace
}  // namespace shardscope::gui
