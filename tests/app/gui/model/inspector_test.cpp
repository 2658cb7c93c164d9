// What the Inspector shows of a parameter, in a run in which every value is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "app/gui/model/details.h"
#include "app/gui/model/ds_summary.h"
#include "app/gui/model/format.h"
#include "app/gui/model/module_in_step.h"
#include "app/gui/model/names.h"
#include "app/gui/model/shard_style.h"
#include "tests/app/gui/known_run.h"

namespace shardscope::gui {
namespace {

class Inspector : public ::testing::Test {
 protected:
  Inspector() {
    app_.run = std::make_unique<Session>(known::run());
    app_.run->settle();
    app_.place_once();
    app_.cursor_ns = known::kLook;
  }
  /// Label to value with unit, in the order of the rows.
  [[nodiscard]] static std::vector<std::pair<std::string, std::string>> rows(const Details& details) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Field& field : details.fields)
      out.emplace_back(field.label, field.unit.empty() ? field.value : field.value + " " + field.unit);
    return out;
  }
  [[nodiscard]] static std::vector<std::string> history(const Details& details) {
    std::vector<std::string> out;
    for (const HistoryRow& row : details.history)
      out.push_back(std::to_string(row.at_ns.value_or(-1)) + " " + row.text + ", " + row.value);
    return out;
  }
  AppState app_;
};

TEST_F(Inspector, AParameterInFlight) {
  app_.select_param(1, 0);
  const Details details = describe_selection(app_);
  EXPECT_EQ(details.title, "h.0.mlp.weight");
  EXPECT_EQ(details.subtitle, "[30, 40] bf16");
  const std::vector<std::pair<std::string, std::string>> expected{
      {"elements", grouped(1200)},       {"size", "2.34 KiB"}, {"shard per rank", "400"},
      {"status on rank 0", "in flight"}, {"since", "1.00 µs"}, {"used by", "h.0"}};
  EXPECT_EQ(rows(details), expected);
  EXPECT_EQ(details.reason, "prefetched at h.0, for h.0");
  EXPECT_EQ(history(details), std::vector<std::string>{"4000 in flight, prefetched"});
}

TEST_F(Inspector, AParameterThatWasReleasedWithItsHistoryNewestFirst) {
  app_.select_param(0, 1);
  const Details details = describe_selection(app_);
  EXPECT_EQ(details.title, "h.0.qkv.weight");
  const auto all = rows(details);
  EXPECT_EQ(all[3], std::pair(std::string("status on rank 1"), std::string("not available")));
  EXPECT_EQ(all[4], std::pair(std::string("since"), std::string("1.50 µs")));
  EXPECT_EQ(details.reason, "released after h.0");
  EXPECT_EQ(history(details),
            (std::vector<std::string>{"3500 not available, released", "3000 available, fetched",
                                      "2000 in flight, fetched"}));
}

TEST_F(Inspector, APersistentParameterAndTheRankThatIsAskedFor) {
  app_.select_param(3, 2);
  EXPECT_EQ(rows(describe_selection(app_))[3],
            std::pair(std::string("status on rank 2"), std::string("available, persistent")));
  // One parameter, three ranks, three answers.
  EXPECT_EQ(rows(describe_param(app_, 2, 0, known::kLook))[3].second, "not available");
  EXPECT_EQ(rows(describe_param(app_, 2, 1, known::kLook))[3].second, "in flight");
  EXPECT_EQ(rows(describe_param(app_, 2, 2, known::kLook))[3].second, "available");
}

TEST_F(Inspector, SpeaksOfTheTimeThatIsLookedAt) {
  app_.cursor_ns = 2500;
  app_.select_param(0, 1);
  const Details details = describe_selection(app_);
  EXPECT_EQ(rows(details)[3].second, "in flight");
  // What comes later in the step is listed too, and marked.
  ASSERT_EQ(details.history.size(), 3U);
  EXPECT_EQ(history(details).back(), "2000 in flight, fetched");
  EXPECT_FALSE(details.history[2].later);
  EXPECT_TRUE(details.history[1].later);
  EXPECT_TRUE(details.history[0].later);
}

TEST_F(Inspector, AModuleThatWasChosenByItsName) {
  app_.select_module(1, 1);
  const Details details = describe_selection(app_);
  EXPECT_EQ(details.title, "h.0");
  const std::vector<std::pair<std::string, std::string>> expected{{"part of", module_name(app_.store(), 0)},
                                                                  {"own parameters", "2"},
                                                                  {"elements", grouped(2400)},
                                                                  {"size", "4.69 KiB"},
                                                                  {"ran", "not in step 7 of rank 1"}};
  EXPECT_EQ(rows(details), expected);
  EXPECT_EQ(details.history_title, "Parameters (2), status on rank 1");
  EXPECT_EQ(history(details),
            (std::vector<std::string>{"-1 h.0.qkv.weight, not available", "-1 h.0.mlp.weight, available"}));
  EXPECT_EQ(details.history[1].param, 1U) << "a click selects it";

  // Its container: none of its own, all of those inside it.
  app_.select_module(0, 2);
  const Details root = describe_selection(app_);
  EXPECT_EQ(rows(root)[0], std::pair(std::string("own parameters"), std::string("0")));
  EXPECT_EQ(rows(root)[1], std::pair(std::string("with child modules"), std::string("4")));
  EXPECT_EQ(rows(root)[2].second, grouped(4 * known::kElems));
  EXPECT_EQ(root.history.size(), 4U);
}

TEST(ModuleInStep, AddsUpItsSpansByPassInOneStep) {
  using ev::EventKind;
  store::Store store;
  ev::RunTables tables = known::tables();
  tables.world = tables.local_world = 1;  // a step has ended when all ranks have
  store.set_tables(0, tables);
  store::ChunkBuilder events(0);
  const auto ran = [&](std::int64_t at, std::uint32_t module, ev::Pass pass, std::int64_t ns) {
    events.compute(at, EventKind::module_begin, module, static_cast<std::uint8_t>(pass));
    events.compute(at + ns, EventKind::module_end, module, static_cast<std::uint8_t>(pass));
  };
  for (std::uint32_t step = 3; step < 5; ++step) {
    const std::int64_t at = 1000 * (step - 3);  // times count from the first event
    events.host(at, EventKind::step_begin, step);
    ran(at + 100, 1, ev::Pass::forward, 50);
    ran(at + 200, 2, ev::Pass::forward, 400);
    ran(at + 600, 1, ev::Pass::backward, 70 + step);
    ran(at + 700, 1, ev::Pass::forward, 20);
    events.host(at + 900, EventKind::step_end, step);
  }
  store.ingest(events.chunk);
  const auto in_step = module_in_step(store, 0, 1, 1950);
  ASSERT_TRUE(in_step);
  EXPECT_EQ(in_step->step, 4U);
  const std::vector<ModuleInStep::Pass> expected{{ev::Pass::forward, 2, 70}, {ev::Pass::backward, 1, 74}};
  EXPECT_EQ(in_step->passes, expected);
  ModuleInStepCache cache;
  EXPECT_EQ(cache.of(store, 0, 1, 1950)->passes, expected);
  EXPECT_EQ(cache.of(store, 0, 1, 950)->passes.back().time_ns, 73) << "at another step";
  EXPECT_EQ(cache.of(store, 0, 2, 950)->passes.front().time_ns, 400) << "another module";
  EXPECT_FALSE(cache.of(store, 0, 1, -1)) << "before the first step";
}

// P6, of a run with parameters on NVMe: large shards there, persistent ones on the device, the rest in host
// memory.
TEST(ShardPlace, IsSaidOfEveryParameter) {
  store::Store store;
  ev::RunTables t = known::tables();
  t.world = t.local_world = 2;
  t.config_json = R"({"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 1000,
                      "zero_quantized_nontrainable_weights": true,
                      "offload_param": {"device": "nvme", "nvme_path": "/swap", "pin_memory": true}}})";
  const std::int64_t elems[] = {std::int64_t{1} << 22, 1000, 200'000, 200'000};
  for (std::uint32_t i = 0; i < known::kParams; ++i) {
    t.params[i].elems = elems[i];
    t.params[i].persistent = i == 1;
    t.params[i].shard_elems = elems[i] / 2;
  }
  t.params[3].frozen = true;
  t.slices.clear();
  store.set_tables(0, t);
  AppState app;
  app.run = std::make_unique<Session>(std::move(store));
  app.run->settle();
  const auto rests = [&](std::uint32_t param, const std::vector<Field>& fields) {
    for (const Field& field : fields) {
      if (field.label == "shard location") return field.value;
    }
    return "nothing of parameter " + std::to_string(param);
  };
  ShardPlaces looked_up;
  looked_up.update(app.run->number(), app.store());
  const ShardStyle looks[] = {{Meaning::copy, true, false},
                              {Meaning::compute, false, false},
                              {Meaning::copy, false, false},
                              {Meaning::copy, false, true}};
  const std::vector<std::string> expected{"on NVMe", "on the device", "in pinned host memory",
                                          "in pinned host memory, as int8"};
  for (std::uint32_t param = 0; param < known::kParams; ++param) {
    ASSERT_TRUE(looked_up.of(param));
    EXPECT_EQ(style_of(*looked_up.of(param)), looks[param]) << expected[param];
    EXPECT_EQ(rests(param, describe_param(app, param, 0, 0).fields), expected[param]);
    const std::vector<Field> summary = ds_summary(app.store(), param, 0, 0);
    EXPECT_EQ(rests(param, summary), expected[param]);
    const auto location = std::find_if(summary.begin(), summary.end(),
                                       [](const Field& field) { return field.label == "final_location"; });
    ASSERT_NE(location, summary.end());
    EXPECT_EQ(location->value, param == 0 ? "nvme" : "None");
  }
  // A run that has sent no tables yet has none of another's.
  looked_up.update(app.run->number() + 1, store::Store());
  EXPECT_FALSE(looked_up.of(0));
  EXPECT_TRUE(looked_up.all().empty());
  looked_up.update(app.run->number(), app.store());
  EXPECT_TRUE(looked_up.of(0));
  // Other tables with as many parameters: their own.
  store::Store again;
  again.set_tables(1, t);
  ShardPlaces kept;
  kept.update(1, again);
  EXPECT_FALSE(style_of(*kept.of(2)).dotted);
  t.params[2].frozen = true;
  again.set_tables(0, t);
  kept.update(1, again);
  EXPECT_TRUE(style_of(*kept.of(2)).dotted) << "as int8, as of the other rank";
}

}  // namespace
}  // namespace shardscope::gui
