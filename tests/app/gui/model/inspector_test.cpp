// What the Inspector says of a parameter, of a run in which every value is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "app/gui/model/details.h"
#include "app/gui/model/ds_summary.h"
#include "app/gui/model/format.h"
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
  EXPECT_EQ(history(details), std::vector<std::string>{"2000 in flight, fetched"});
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
      if (field.label == "shard rests") return field.value;
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
