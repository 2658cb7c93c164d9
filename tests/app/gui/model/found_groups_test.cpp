// Figures of what is found, by group.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/find_names.h"
#include "app/gui/model/find_spans.h"
#include "app/gui/model/finder.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_family.h"
#include "tests/app/gui/model/searched_spans.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/odd_ends.h"
#include "tests/app/store/own_spans.h"

namespace shardscope::gui {
namespace {

class FoundGroups : public Model {};

void expect_figures(const SpanGroup& group, std::vector<Walked> walked, const std::string& what) {
  std::vector<double> times;
  std::int64_t self_ns = 0;
  for (const Walked& one : walked) {
    times.push_back(static_cast<double>(one.time_ns));
    self_ns += one.self_ns;
  }
  ASSERT_FALSE(times.empty()) << what;
  EXPECT_EQ(group.times.count(), times.size()) << what;
  EXPECT_EQ(group.times.total(), std::accumulate(times.begin(), times.end(), 0.0)) << what;
  EXPECT_EQ(group.times.least(), *std::ranges::min_element(times)) << what;
  EXPECT_EQ(group.times.most(), *std::ranges::max_element(times)) << what;
  EXPECT_EQ(group.self_ns, self_ns) << what;
  EXPECT_DOUBLE_EQ(group.p50, analysis::quantile(times, 0.5)) << what;
  EXPECT_DOUBLE_EQ(group.p95, analysis::quantile(times, 0.95)) << what;
  EXPECT_DOUBLE_EQ(group.p99, analysis::quantile(times, 0.99)) << what;
}

TEST_F(FoundGroups, FiguresOfEachGroupAreThoseOfItsSpans) {
  const std::vector<Walked> all = walk(data());
  const SpanSearch search = searched(data(), {});
  const auto key = [&](GroupBy by, const Walked& one) -> std::string {
    switch (by) {
      case GroupBy::name:
        return shared_name(data(), one.lane.rank, one.span);
      case GroupBy::rank:
        return "rank " + std::to_string(one.lane.rank);
      case GroupBy::module:
        return module_name(data(), module_of(one.span));
      case GroupBy::step: {
        std::string last = "before the first step";
        for (const store::StepRow& step : data().steps()) {
          if (step.begin_ns <= one.span.begin_ns) last = "step " + std::to_string(step.step);
        }
        return last;
      }
      case GroupBy::stream:
        return word(one.lane.stream);
      case GroupBy::parent: {
        const SpanFamily family = family_of(data(), one.lane, one.span);
        return family.parents.empty() ? "in no other span"
                                      : shared_name(data(), one.lane.rank, family.parents.front());
      }
    }
    return {};
  };
  for (const GroupBy by :
       {GroupBy::name, GroupBy::rank, GroupBy::module, GroupBy::step, GroupBy::stream, GroupBy::parent}) {
    std::map<std::string, std::vector<Walked>> expected;
    for (const Walked& one : all) expected[key(by, one)].push_back(one);
    const SpanStatistics statistics = counted(search, by);
    expect_figures(statistics.whole(), all, "all");
    std::vector<double> times;
    for (const Walked& one : all) times.push_back(static_cast<double>(one.time_ns));
    std::map<std::uint32_t, std::int64_t> by_step;
    for (const Walked& one : all) {
      const auto steps = data().steps();
      for (const store::StepRow& step : steps) {
        const std::int64_t next = &step == &steps.back() ? store::Store::kEnd : (&step + 1)->begin_ns;
        if (one.span.begin_ns >= step.begin_ns && one.span.begin_ns < next) by_step[step.step] += one.time_ns;
      }
    }
    EXPECT_EQ(statistics.by_step(), by_step);
    EXPECT_DOUBLE_EQ(statistics.whole().p90, analysis::quantile(times, 0.9));
    ASSERT_EQ(statistics.groups().size(), expected.size()) << word(by);
    for (const SpanGroup& group : statistics.groups()) {
      const std::string name = group_name(data(), search, by, group.key);
      expect_figures(group, expected[name], name);
    }
  }
}

TEST_F(FoundGroups, AFilterLeavesWhatAGroupHas) {
  const SpanSearch search = searched(data(), {"all-gather"});
  SpanFilter filter;
  filter.narrow(GroupBy::rank, 2);
  std::vector<Walked> expected = walk(data());
  std::erase_if(expected, [&](const Walked& one) {
    return one.lane.rank != 2 || shared_name(data(), 2, one.span).find("all-gather") == std::string::npos;
  });
  expect_figures(counted(search, GroupBy::name, filter).whole(), expected, "rank 2");
  HitRows rows;
  rows.start(filter, HitOrder::time, true);
  while (rows.advance(search, kAll)) {
  }
  std::int64_t before = INT64_MAX;
  for (const HitRef& ref : rows.rows()) {
    const SpanHit& hit = search.lanes()[ref.lane].hits[ref.hit];
    EXPECT_EQ(search.lanes()[ref.lane].id.rank, 2U);
    EXPECT_LE(hit.time_ns, before);
    before = hit.time_ns;
  }
  EXPECT_EQ(rows.rows().size(), expected.size());
  // A bar of the histogram is a filter too: what it counts is what is left.
  const TimeHistogram bars = histogram(counted(search, GroupBy::name).whole().times, 12);
  for (std::size_t i = 0; i < bars.counts.size(); ++i) {
    SpanFilter bar;
    bar.time_ns = std::pair(static_cast<std::int64_t>(std::ceil(bars.edges[i])),
                            static_cast<std::int64_t>(std::ceil(bars.edges[i + 1])));
    EXPECT_EQ(counted(search, GroupBy::name, bar).whole().times.count(), bars.counts[i]) << i;
  }
}

TEST(FindSpansOfManyRanks, AreGroupedByRank) {
  store::SyntheticOptions options;
  options.world = 24;
  options.steps = 2;
  const store::Store store = store::make_synthetic_store(options);
  const SpanStatistics statistics = counted(searched(store, {"reduce-scatter"}), GroupBy::rank);
  ASSERT_EQ(statistics.groups().size(), 24U);
  for (const SpanGroup& group : statistics.groups())
    EXPECT_EQ(group.times.count(), statistics.groups().front().times.count());
}

TEST(TimeSamples, HaveTheQuantilesOfAllTheirTimes) {
  std::mt19937_64 random(7);
  for (const std::size_t count : {1U, 2U, 3U, 1000U, 16384U, 16385U, 70000U}) {
    TimeSample sample;
    std::vector<double> all;
    for (std::size_t i = 0; i < count; ++i) {
      const auto ns = static_cast<std::int64_t>(random() % (i % 3 == 0 ? 50U : 9'000'000U));
      sample.add(ns);
      all.push_back(static_cast<double>(ns));
    }
    sample.settle();
    for (const double q : {0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 1.0})
      EXPECT_DOUBLE_EQ(sample.quantile(q), analysis::quantile(all, q)) << count << " " << q;
    EXPECT_EQ(sample.below(40), std::ranges::count_if(all, [](double ns) { return ns < 40; }));
    const TimeHistogram bars = histogram(sample, 20);
    EXPECT_EQ(std::accumulate(bars.counts.begin(), bars.counts.end(), std::size_t{0}), count);
    EXPECT_TRUE(std::ranges::is_sorted(bars.edges));
  }
}

TEST(GroupCsv, HasNanosecondsAndQuotesNames) {
  store::Store store;
  store::ChunkBuilder events;
  for (const int ns : {100, 300}) {
    events.compute(ns * 10, ev::EventKind::module_begin, 3);
    events.compute(ns * 11, ev::EventKind::module_end, 3);
  }
  store.ingest(events.chunk);
  const SpanSearch search = searched(store, {"module"});
  EXPECT_EQ(groups_csv(store, search, counted(search, GroupBy::rank)),
            "rank,count,total_ns,self_ns,mean_ns,p50_ns,p95_ns,p99_ns,min_ns,max_ns\n"
            "rank 0,2,400,400,200.0,200.0,290.0,298.0,100,300\n");
}

}  // namespace
}  // namespace shardscope::gui
