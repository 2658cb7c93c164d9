// What the Inspector says of a parameter, of a run in which every value is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
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

}  // namespace
}  // namespace shardscope::gui
