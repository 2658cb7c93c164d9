// What the page of a run calls the spans that it draws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "app/analysis/summary.h"
#include "app/export/html_parts.h"
#include "app/export/html_report.h"
#include "app/store/chunk.h"
#include "app/store/store.h"
#include "runtime/plan/prefetch_outcome.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using ev::StreamId;
using nlohmann::json;

/// A rank with one step of a millisecond, in which `events` happen.
store::Store one_step(const std::vector<ev::Event>& events, const char* framework = "") {
  store::Store store;
  ev::RunTables tables;
  tables.run_id = "test";
  tables.framework = framework;
  tables.world = tables.local_world = 1;
  tables.stage = 3;
  tables.elems = 10;
  tables.modules = {{0, ev::kNoId, "", "Root", {0}, true}};
  tables.params = {{0, "weight", "f32", {10}, 10, 10, 0, {0}, false}};
  store.set_tables(0, tables);
  store::Chunk chunk;
  chunk.rank = 0;
  chunk.events = events;
  chunk.events.push_back({0, EventKind::step_begin, StreamId::host, 0, 0, ev::kNoId, ev::kNoId, 0, 0});
  chunk.events.push_back({1'000'000, EventKind::step_end, StreamId::host, 0, 0, ev::kNoId, ev::kNoId, 0, 0});
  std::ranges::stable_sort(chunk.events, {}, &ev::Event::ticks);
  store.ingest(chunk);
  return store;
}

/// What the page's script draws from.
json timeline_of(const std::string& page) {
  const std::string before = "<script type=\"application/json\" id=timeline-data>";
  const std::size_t begin = page.find(before) + before.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

/// "name length" of the spans of all lanes of a name in the first step, as assets/report/report.js reads
/// them.
std::vector<std::string> said(const json& data, const std::string& lane_name) {
  std::vector<std::string> out;
  for (const json& rank : data["steps"][0]["ranks"]) {
    for (std::size_t l = 1; l < rank.size(); ++l) {
      const json& lane = rank[l];
      if (lane[0] != lane_name) continue;
      for (std::size_t i = 1; i < lane.size(); i += 5)
        out.push_back(data["names"][lane[i + 4].get<std::size_t>()].get<std::string>() + " " +
                      lane[i + 2].dump());
    }
  }
  return out;
}

/// The held-out loss is drawn on the loss's scale, where it was measured, and named.
TEST(Report, DrawsTheHeldOutLossOverTheLoss) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string chart = loss_html({4, 3, 2, 1, 0}, {none, 4, none, 2, none});
  EXPECT_THAT(chart, testing::HasSubstr(R"(<path d="M250.0 0.0L750.0 60.0" class="line held-out"/>)"));
  EXPECT_THAT(chart,
              testing::HasSubstr(R"(<path d="M250.0 0.0h0M750.0 60.0h0" class="line held-out dots"/>)"));
  EXPECT_THAT(chart, testing::HasSubstr("lowest 2, last 2"));
  EXPECT_THAT(loss_html({4, 3}, {none, none}), testing::Not(testing::HasSubstr("held-out")));
  EXPECT_THAT(loss_html({1, 3}, {none, 5}), testing::HasSubstr("<span class=high>5</span>"));
}

TEST(Report, NamesWaitsThatAreForNoModuleAndSpansWithoutAnEnd) {
  const auto event = [](std::uint64_t at, EventKind kind, std::uint32_t a, std::uint32_t b) {
    return ev::Event{at, kind, StreamId::compute, 0, a, b, ev::kNoId, 0, 0};
  };
  const store::Store store = one_step({
      event(100'000, EventKind::fetch_wait_begin, 0, 6),
      event(200'000, EventKind::fetch_wait_end, 0, 6),
      event(300'000, EventKind::fetch_wait_begin, ev::kNoId, 7),
      event(400'000, EventKind::fetch_wait_end, ev::kNoId, 7),
      event(500'000, EventKind::data_wait_begin, 0, 0),
      event(600'000, EventKind::data_wait_end, 0, 0),
      event(700'000, EventKind::module_begin, 0, 0),
  });
  const std::string page = html_report(store, analysis::summarize(store), {});
  const json data = timeline_of(page);
  EXPECT_THAT(
      said(data, "compute"),
      testing::IsSupersetOf({"waits for parameters of model, gather 6 100000",
                             "waits for persistent parameters, gather 7 100000", "waits for data 100000"}));
  EXPECT_THAT(
      said(data, "compute"),
      testing::Contains(testing::StartsWith("model forward: not ended, 300 µs up to the last event (")));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("4294967295")));
}

TEST(Report, NamesAWaitInTheFrameworksWords) {
  const store::Store store =
      one_step({{100'000, EventKind::fetch_wait_begin, StreamId::compute, 0, 0, 6, ev::kNoId, 0, 0},
                {200'000, EventKind::fetch_wait_end, StreamId::compute, 0, 0, 6, ev::kNoId, 0, 0}},
               "FSDP2 (PyTorch 2.15.0)");
  EXPECT_THAT(said(timeline_of(html_report(store, analysis::summarize(store), {})), "compute"),
              testing::Contains("waits for unshard of group model, unshard 6 100000"));
}

TEST(Report, SaysWhereAFindingIsToBeSeen) {
  const store::Store store = one_step({});
  const auto page = [&](std::int64_t at_ns, std::uint32_t rank) {
    analysis::Finding finding;
    finding.title = "Something";
    finding.at_ns = at_ns;
    finding.rank = rank;
    const ReportFindings findings{{finding}, {}};
    return html_report(store, analysis::summarize(store), {}, std::nullopt, {}, &findings);
  };
  EXPECT_THAT(page(500'000, 0), testing::HasSubstr("<br>Seen at 0.001 s, in step 0, on rank 0."));
  EXPECT_THAT(page(2'000'000, ev::kNoId), testing::HasSubstr("<br>Seen at 0.002 s."));
  EXPECT_THAT(page(0, 3), testing::HasSubstr("<br>Seen on rank 3."));
  EXPECT_THAT(page(0, ev::kNoId), testing::Not(testing::HasSubstr("Seen ")));
}

TEST(Report, HasWhatWhatIfPredictsForTheOptionsOfFindings) {
  const store::Store store = one_step({});
  ReportFindings findings{{analysis::Finding{}}, {}};
  findings.findings[0].id = "small_bucket";
  findings.findings[0].title = "Many <small> reductions";
  EXPECT_THAT(html_report(store, analysis::summarize(store), {}, std::nullopt, {}, &findings),
              testing::Not(testing::HasSubstr("<h2>What if</h2>")))
      << "no finding has options";
  findings.tried.recorded = {.step_ms = 100, .peak_bytes = 2048, .model_error_pct = -3.2};
  findings.tried.options = {{"small_bucket", {{"bucket", "1"}}, {.step_ms = 90, .peak_bytes = 4096}, true},
                            {"small_bucket", {{"bucket", "2"}}, {.refused = "the time was over"}, false}};
  const std::string page = html_report(store, analysis::summarize(store), {}, std::nullopt, {}, &findings);
  EXPECT_THAT(page, testing::HasSubstr("<h2>What if</h2>"));
  EXPECT_THAT(page,
              testing::HasSubstr("scope=rowgroup>Many &lt;small&gt; reductions</tr><tr><td class=n>90.00 ms"
                                 "<td class=n>-10.0 %<td class=n>4.00 KiB<td><code>bucket=1</code><br>"
                                 "<b>advised</b>"));
  EXPECT_THAT(page, testing::HasSubstr("<code>bucket=2</code><br><span class=missing>not predicted: the time "
                                       "was over"));
  EXPECT_THAT(page, testing::HasSubstr(
                        "a step of 100.00 ms, 2.00 KiB at the peak of a rank's device, which is the "
                        "column memory. The model's error: played with the recorded settings a step is "
                        "-3.2 % off the recorded one."));
  // Of an attached run: a part of the peak.
  findings.tried.recorded = {.step_ms = 100, .held_bytes = 2048};
  findings.tried.options = {{"small_bucket", {{"bucket", "1"}}, {.step_ms = 100, .held_bytes = 1024}, false}};
  const std::string part = html_report(store, analysis::summarize(store), {}, std::nullopt, {}, &findings);
  EXPECT_THAT(part, testing::HasSubstr("<td class=n>+0.0 %<td class=n>1.00 KiB"));
  EXPECT_THAT(part,
              testing::HasSubstr("2.00 KiB of model states and gathered parameters of a rank, which are the "
                                 "column memory: the device's peak is not predicted."));
}

/// Copies have the detail of memory events: where there is none of these, they lie in what looks idle.
TEST(Report, DoesNotCallIdleWhatMayHaveBeenCopying) {
  std::vector<ev::Event> events{
      {100'000, EventKind::module_begin, StreamId::compute, 0, 0, ev::kNoId, ev::kNoId, 0, 0},
      {400'000, EventKind::module_end, StreamId::compute, 0, 0, ev::kNoId, ev::kNoId, 0, 0}};
  const auto page = [&] {
    const store::Store store = one_step(events);
    return html_report(store, analysis::summarize(store), {});
  };
  EXPECT_THAT(page(), testing::HasSubstr("title=\"idle or copying: 700 µs"));
  events.push_back(
      {50'000, EventKind::memory_alloc, StreamId::host, 0, ev::kNoId, ev::kNoId, ev::kNoId, 64, 64});
  EXPECT_THAT(page(), testing::HasSubstr("title=\"idle: 700 µs"));
}

TEST(Report, ListsTheUsersNotesAndHasNoSectionWithoutAny) {
  const store::Store store = one_step({});
  const analysis::Summary summary = analysis::summarize(store);
  EXPECT_THAT(html_report(store, summary, {}), testing::Not(testing::HasSubstr("<h2>Notes</h2>")));
  std::vector<Note> notes(2);
  notes[0] = {"a", 1'500'000, 1'500'000, "<b>late</b> & slow", 3};
  notes[1] = {"b", 2'000'000, 2'250'000, "", std::nullopt};
  const std::string page = html_report(store, summary, {}, std::nullopt, notes);
  EXPECT_THAT(page, testing::HasSubstr("<h2>Notes</h2>"));
  EXPECT_THAT(page,
              testing::HasSubstr(
                  "<td class=n>1.50 ms<td class=n><td class=n>3<td>&lt;b&gt;late&lt;/b&gt; &amp; slow</tr>"));
  EXPECT_THAT(page, testing::HasSubstr("<td class=n>2.00 ms<td class=n>250 µs<td class=n><td>bookmark</tr>"));
}

/// Prefetches are summed over ranks, collectives are one rank's: each says so, for the counts do not match.
TEST(Report, SaysOfWhichRanksPrefetchesAndCollectivesAre) {
  test::RunBuilder run(2);
  const auto early = static_cast<std::uint8_t>(plan::PrefetchOutcome::early);
  const auto late = static_cast<std::uint8_t>(plan::PrefetchOutcome::late);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t step = 0; step < 2; ++step) {
      const std::int64_t at = step * 1000;
      run.span(rank, at, at + 900, EventKind::step_begin, StreamId::host, step);
      run.span(rank, at + 100, at + 800, EventKind::module_begin, StreamId::compute, 1);
      for (std::uint32_t gather = 0; gather < 3; ++gather) {
        const std::uint32_t id = 3 * step + gather;
        run.instant(rank, at + 10 + gather, EventKind::prefetch_issued, StreamId::host, id, 1);
        run.span(rank, at + 200 + 50 * gather, at + 240 + 50 * gather, EventKind::collective_begin,
                 StreamId::gather, id, id, static_cast<std::uint8_t>(ev::CollectiveOp::all_gather), 100, 400);
        run.instant(rank, at + 500 + gather, EventKind::prefetch_outcome, StreamId::compute, id, 1, 1,
                    rank == 1 && gather == 0 ? late : early, rank == 1 && gather == 0 ? -2'000'000 : 30);
      }
    }
  }
  const store::Store& store = run.build();
  const std::string page = html_report(store, analysis::summarize(store), {});
  EXPECT_THAT(page, testing::HasSubstr("<tr><td>all_gather<td class=n>3<"));
  EXPECT_THAT(page, testing::HasSubstr("<p>Collectives of rank 0.</p>"));
  EXPECT_THAT(page,
              testing::HasSubstr("<p>Prefetches of all ranks, all steps: 10 early, 0 just in time, 2 late "
                                 "(4.00 ms waited), 0 mistargeted, 0 unused. "));
}

TEST(Report, MemoryOfARankHasWhatIsOutside) {
  const auto page_with = [](const std::vector<ev::Event>& events) {
    const store::Store store = one_step(events, "FSDP2 (PyTorch 2.15.0)");
    return html_report(store, analysis::summarize(store), {});
  };
  EXPECT_THAT(page_with({}), testing::Not(testing::HasSubstr("Outside memory")));
  const std::vector<ev::Event> sampled = {{1'500'000, EventKind::outside_memory, StreamId::host, 0, ev::kNoId,
                                           ev::kNoId, ev::kNoId, 3 << 20, 8 << 20}};
  EXPECT_THAT(page_with(sampled),
              testing::HasSubstr("<p>Outside memory, in none of these: 3.00 MiB at most, "
                                 "1.50 ms into the run, of 8.00 MiB in use: of the process"));
}

/// Every span of the steps that it shows, where they are few enough; where each lies, to the nanosecond.
TEST(Report, ItsTimelineHasTheSpansOfTheStep) {
  const store::Store store = store::make_synthetic_store();
  const json data = timeline_of(html_report(store, analysis::summarize(store), {}));
  ASSERT_EQ(data["steps"].size(), 2U) << "a typical step and the longest";
  for (const json& step : data["steps"]) {
    ASSERT_EQ(step["ranks"].size(), 4U);
    std::int64_t path = 0;
    for (std::size_t i = 0; i < step["path"].size(); i += 4) {
      EXPECT_EQ(step["path"][i], path) << "without a gap";
      path += step["path"][i + 1].get<std::int64_t>();
    }
    EXPECT_EQ(step["length"], path);
    for (const json& rank : step["ranks"]) {
      for (std::size_t l = 1; l < rank.size(); ++l) {
        std::int64_t at = 0;
        for (std::size_t i = 1; i < rank[l].size(); i += 5) {
          at += rank[l][i + 1].get<std::int64_t>();
          EXPECT_GE(rank[l][i + 1], 0);
          EXPECT_LE(at + rank[l][i + 2].get<std::int64_t>(), step["length"].get<std::int64_t>());
          EXPECT_LT(rank[l][i + 4].get<std::size_t>(), data["names"].size());
        }
      }
    }
  }
}

/// The page of many ranks, of many steps and of very many spans stays small.
TEST(Report, StaysSmall) {
  const store::Store wide = store::make_synthetic_store({.world = 40, .steps = 2, .layers = 12});
  analysis::Summary summary = analysis::summarize(wide);
  summary.loss.assign(200'000, 1.0);
  for (std::size_t i = 0; i < summary.loss.size(); ++i) summary.loss[i] += static_cast<double>(i % 1000);
  const std::string page = html_report(wide, summary, {});
  EXPECT_LT(page.size(), std::size_t{1'500'000});
  EXPECT_LE(timeline_of(page)["steps"][0]["ranks"].size(), 8U);
  const store::Store deep =
      store::make_synthetic_store({.world = 8, .steps = 2, .micro_steps = 6, .layers = 48});
  const std::string deep_page = html_report(deep, analysis::summarize(deep), {});
  EXPECT_LT(deep_page.size(), std::size_t{2'000'000});
  const json joined = timeline_of(deep_page);
  std::size_t numbers = 0;
  for (const json& rank : joined["steps"][0]["ranks"]) {
    for (std::size_t l = 1; l < rank.size(); ++l) numbers += rank[l].size() - 1;
  }
  EXPECT_LE(numbers, 5U * 24'000U);
  EXPECT_GT(numbers, 5U * 6'000U);
  EXPECT_THAT(joined["names"].dump(), testing::HasSubstr("short spans"));
  std::set<std::size_t> used;
  for (const json& step : joined["steps"]) {
    for (std::size_t i = 3; i < step["path"].size(); i += 4) used.insert(step["path"][i].get<std::size_t>());
    for (const json& rank : step["ranks"]) {
      for (std::size_t l = 1; l < rank.size(); ++l) {
        for (std::size_t i = 5; i < rank[l].size(); i += 5) used.insert(rank[l][i].get<std::size_t>());
      }
    }
  }
  EXPECT_EQ(used.size(), joined["names"].size()) << "no name of what was joined";
}

/// Elements of a page that show what they show only to eyes, as far as the end of their first tag.
std::vector<std::string> drawings(const std::string& page) {
  std::vector<std::string> out;
  for (const char* tag : {"<svg", "<canvas", "<img"}) {
    for (std::size_t at = page.find(tag); at != std::string::npos; at = page.find(tag, at + 1))
      out.push_back(page.substr(at, page.find('>', at) - at));
  }
  return out;
}

TEST(Report, EveryDrawingHasANameOrIsLeftToTheWordsBesideIt) {
  const store::Store store = store::make_synthetic_store({.world = 4, .steps = 12});
  const std::string page = html_report(store, analysis::summarize(store), {});
  const std::vector<std::string> all = drawings(page);
  EXPECT_GE(all.size(), 4U) << "partition of time, partition map, memory, timeline";
  for (const std::string& drawing : all) {
    EXPECT_TRUE(drawing.find("aria-label=") != std::string::npos ||
                drawing.find("aria-hidden=true") != std::string::npos)
        << drawing;
  }
}

TEST(Report, NamesInItsDataEndNoElement) {
  test::RunBuilder run(1);
  run.span(0, 0, 900, EventKind::step_begin, StreamId::host, 0);
  run.span(0, 100, 800, EventKind::kernel_begin, StreamId::compute, 5);
  store::Store& store = run.build();
  store.add_name(0, 5, "</script><b>");
  const std::string page = html_report(store, analysis::summarize(store), {});
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("</script><b>")));
  EXPECT_THAT(said(timeline_of(page), "compute"), testing::ElementsAre("</script><b> 700"));
}

TEST(Report, SaysWhyModelStatesWereNotMeasured) {
  test::RunBuilder run(1);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  run.instant(0, 1, EventKind::detail_changed, StreamId::host,
              static_cast<std::uint32_t>(ev::Detail::modules), ev::kNoId, ev::kNoId,
              static_cast<std::uint8_t>(ev::Detail::kernels));
  run.instant(0, 2, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
              static_cast<std::uint8_t>(ev::MemoryCategory::grad_full), 2048, 2048);
  const store::Store& store = run.build();
  EXPECT_THAT(html_report(store, analysis::summarize(store), {}),
              testing::HasSubstr("not measured: part of them was allocated or freed where events are missing "
                                 "or less detail was recorded.</p>"));
}

TEST(Report, CallsNothingBetterOrWorseThatIsWithinTheSpread) {
  const store::Store store = store::make_synthetic_store();
  ReportComparison comparison{.figures = {}, .a = "one", .b = "<other>"};
  comparison.figures.metrics = {
      {.metric = "step time", .unit = "ms", .a = 100, .b = 101, .interval = {{1, -2, 4, 5}}},
      {.metric = "idle", .unit = "ms", .a = 100, .b = 120, .interval = {{20, 15, 25, 5}}},
      {.metric = "overlap",
       .unit = "%",
       .a = 47,
       .b = 12,
       .lower_is_better = false,
       .interval = {{-35, -40, -30, 5}}}};
  const std::string page = html_report(store, analysis::summarize(store), {}, comparison);
  EXPECT_THAT(page, testing::HasSubstr("+1.0 % (no significant difference)"));
  EXPECT_THAT(page, testing::HasSubstr("+20.0 % (worse)"));
  EXPECT_THAT(page, testing::HasSubstr("-35.0 points (worse)"));
  EXPECT_THAT(page, testing::HasSubstr("<p>A: one. B: &lt;other&gt;.</p>"));
}

TEST(Report, SetsItBesideABaseline) {
  const store::Store store = store::make_synthetic_store({.steps = 10}),
                     other = store::make_synthetic_store({.steps = 10, .prefetch_elems = 0});
  const analysis::Summary summary = analysis::summarize(store), other_summary = analysis::summarize(other);
  EXPECT_THAT(html_report(store, summary, {}), testing::Not(testing::HasSubstr("<h2>A beside B</h2>")));
  const std::string page =
      html_report(store, summary, {},
                  ReportComparison{analysis::compare({{&other, &other_summary}}, {{&store, &summary}}),
                                   "the baseline", "this run"});
  EXPECT_THAT(page, testing::HasSubstr("<h2>A beside B</h2>"));
  EXPECT_THAT(page, testing::HasSubstr("(better)"));
}

}  // namespace
}  // namespace shardscope::exporter
