// How long operations took, as the page of a run says it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/analysis/summary.h"
#include "app/export/html_parts.h"
#include "app/export/html_report.h"
#include "app/store/recording.h"

namespace shardscope::exporter {
namespace {

using analysis::Distribution;
using testing::HasSubstr;
using testing::Not;

Distribution operation(const std::string& what, double p50, double p99, std::uint64_t count = 12'345) {
  return {.what = what,
          .module = "",
          .count = count,
          .p50_ms = p50,
          .p90_ms = p50 * 1.5,
          .p95_ms = p50 * 1.6,
          .p99_ms = p99,
          .min_ms = p50 / 2,
          .max_ms = p99 * 10,
          .longest = {}};
}

analysis::Summary summary_of(std::vector<Distribution> list, bool whole = true) {
  analysis::Summary summary;
  summary.distributions = analysis::Distributions{.list = std::move(list), .whole = whole};
  return summary;
}

TEST(DistributionsOnThePage, TheWidestSpreadComesFirstWithItsUnitsAndItsSource) {
  Distribution gather = operation("collective all_gather", 2, 40);
  gather.longest = {.rank = 7, .p99_ms = 55};
  Distribution module = operation("module forward", 0.5, 0.6, 300);
  module.module = "blocks.<3>";
  const std::string page = distributions_html(
      summary_of({operation("step", 900, 1000), module, gather, operation("rare", 1, 90, 99)}));
  const std::size_t first = page.find("collective all_gather"), second = page.find("module forward"),
                    third = page.find("<td>step<td>all");
  ASSERT_NE(third, std::string::npos) << page;
  EXPECT_LT(first, second) << "20 times the median";
  EXPECT_LT(second, third) << "1.2 times; 1.1 times";
  EXPECT_THAT(
      page,
      HasSubstr("<td>collective all_gather<td>all<td class=n>12\u202f345<td class=n>2.00 ms<td "
                "class=n>3.00 ms<td class=n>40.0 ms<td class=n>400 ms<td class=n>20.0<td>rank 7: 55.0 ms"));
  EXPECT_THAT(page, Not(HasSubstr("none stands out")));
  gather.longest->p99_ms = 41;
  EXPECT_THAT(distributions_html(summary_of({gather})), HasSubstr("<td>none stands out</tr>"));
  EXPECT_THAT(page, HasSubstr("blocks.&lt;3&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<td>rare<td>"))) << "of 99 spans the rarest 1 % is none";
  EXPECT_THAT(page, HasSubstr("100 spans and more; 1 more: <code>summary --json</code> has all"));
  EXPECT_THAT(page, HasSubstr("kept of the whole run"));
  EXPECT_THAT(page, HasSubstr("within 2 %"));
}

TEST(DistributionsOnThePage, ManyAreCut) {
  std::vector<Distribution> all;
  for (int i = 0; i < 50; ++i) all.push_back(operation("operation " + std::to_string(i), 1, 1 + i));
  const std::string page = distributions_html(summary_of(all));
  EXPECT_THAT(page, HasSubstr("operation 49"));
  EXPECT_THAT(page, HasSubstr("operation 34"));
  EXPECT_THAT(page, Not(HasSubstr("operation 33")));
  EXPECT_THAT(page, HasSubstr("34 more"));
}

TEST(DistributionsOnThePage, WhereThereAreNoneItSaysWhy) {
  EXPECT_THAT(distributions_html(analysis::Summary()), HasSubstr("--max-age"));
  EXPECT_THAT(distributions_html(summary_of({operation("rare", 1, 2, 3)})),
              HasSubstr("No operation ended 100 times:"));
  EXPECT_THAT(distributions_html(summary_of({}, false)), HasSubstr("up to the last minute recorded"));
  EXPECT_THAT(distributions_html(summary_of({operation("step", 1, 2)}, false)),
              HasSubstr("up to the last minute recorded (it did not end, or goes on)"));
}

/// Two ranks of which one is slow.
TEST(DistributionsOnThePage, NameTheRankWhoseLongestAreTheLongest) {
  store::RecordingInfo info;
  info.limits.max_bytes = 1;
  info.complete = true;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    store::QuantileSketch sketch;
    for (int i = 0; i < 200; ++i) sketch.add(1'000'000 * (rank == 1 && i >= 150 ? 9 : 1));
    for (const auto kind : {store::ev::EventKind::step_begin, store::ev::EventKind::module_begin}) {
      const bool module = kind == store::ev::EventKind::module_begin;
      info.distributions.emplace_back(store::SketchKey{.rank = module ? store::ev::kNoId : rank,
                                                       .kind = kind,
                                                       .code = 0,
                                                       .module = module ? rank : store::ev::kNoId},
                                      sketch);
    }
  }
  const std::optional<analysis::Distributions> found = analysis::distributions(store::Store(), info);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->list.size(), 3U);
  const Distribution& step = found->list.front();
  EXPECT_EQ(step.count, 400U);
  EXPECT_NEAR(step.p50_ms, 1, 0.02);
  EXPECT_NEAR(step.p90_ms, 9, 0.18) << "50 of 400 are slow";
  ASSERT_TRUE(step.longest);
  EXPECT_EQ(step.longest->rank, 1U);
  EXPECT_NEAR(step.longest->p99_ms, 9, 0.18);
  EXPECT_FALSE(found->list.back().longest) << "a module is counted over all ranks";
}

TEST(DistributionsOnThePage, HaveASectionOfTheReport) {
  const std::string page = html_report(store::Store(), summary_of({operation("step", 1, 2)}), {});
  EXPECT_THAT(page, HasSubstr("<h2>How long operations took</h2><div"));
}

}  // namespace
}  // namespace shardscope::exporter
