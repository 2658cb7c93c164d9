// What a finding costs, changes and gives, and how its settings come into the panel What if.
#include "app/gui/model/finding_detail.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/gui/model/finding_place.h"
#include "app/gui/model/what_if.h"

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
  EXPECT_EQ(detail.gain, "at most 10.0 ms of a step (all of it hidden)");
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
  change(choice, finding().changes);
  EXPECT_EQ(choice.values[place_of("zero_optimization.overlap_comm")], "true");
  EXPECT_EQ(choice.values[place_of("zero_optimization.offload_optimizer.device")], "none");
  EXPECT_EQ(choice.more, "fp16.loss_scale_window=400") << "what has no control of its own";
  const auto argv = what_if_arguments("s", "r", run, choice, "");
  EXPECT_EQ(argv, (std::vector<std::string>{"s", "what-if", "r", "--json", "--set",
                                            "zero_optimization.overlap_comm=true", "--set",
                                            "zero_optimization.offload_optimizer.device=none", "--set",
                                            "fp16.loss_scale_window=400"}));
}

TEST(FindingDetail, ThePanelThatAFindingNamesIsShown) {
  analysis::Finding named;
  named.title = "Rank 3 is a straggler";
  named.panel = "communication";
  EXPECT_EQ(panel_of(named), "communication");
}

}  // namespace
}  // namespace shardscope::gui
