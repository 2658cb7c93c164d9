// What the Memory, Communication, Compare, Stepper and What-if panels show, against the run it is of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "app/gui/model/alive_memory.h"
#include "app/gui/model/breakpoints.h"
#include "app/gui/model/communication_tables.h"
#include "app/gui/model/compare_tables.h"
#include "app/gui/model/ds_summary.h"
#include "app/gui/model/format.h"
#include "app/gui/model/gradient_states.h"
#include "app/gui/model/sample_run.h"
#include "app/gui/model/setting_search_run.h"
#include "app/gui/model/stage_memory.h"
#include "app/gui/model/what_if.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/instrumentation/packed_codes.h"

namespace shardscope::gui {
namespace {

using C = ev::MemoryCategory;

/// One rank: a shard for the whole run, a gathered parameter twice, an activation, some of it freed.
store::Store memory_run() {
  test::RunBuilder run(1);
  const auto change = [&](std::int64_t at, ev::EventKind kind, C category, std::uint32_t owner,
                          std::int64_t bytes) {
    run.instant(0, at, kind, ev::StreamId::host, owner, ev::kNoId, ev::kNoId,
                shardscope::test::memory_code(ev::MemoryPool::device, category), bytes, 0);
  };
  run.span(0, 0, 100, ev::EventKind::step_begin, ev::StreamId::host, 0);
  change(5, ev::EventKind::memory_alloc, C::param_shard, ev::kNoId, 1000);
  change(10, ev::EventKind::memory_alloc, C::param_gathered, 1, 400);
  change(20, ev::EventKind::memory_free, C::param_gathered, 1, 400);
  change(30, ev::EventKind::memory_alloc, C::param_gathered, 1, 400);
  change(40, ev::EventKind::memory_alloc, C::activation, 1, 50);
  change(50, ev::EventKind::memory_alloc, C::activation, 1, 70);
  change(60, ev::EventKind::memory_free, C::activation, 1, 50);
  return std::move(run.build());
}

const AliveBytes* part_of(const AliveMemory& alive, C category, std::uint32_t owner) {
  const auto found = std::ranges::find_if(
      alive.parts, [&](const AliveBytes& part) { return part.category == category && part.owner == owner; });
  return found == alive.parts.end() ? nullptr : &*found;
}

TEST(AliveMemory, IsWhatWasAllocatedAndNotFreedWithItsOwnerSinceWhen) {
  const store::Store store = memory_run();
  const AliveMemory at_55 = alive_memory(store, 0, ev::MemoryPool::device, 55);
  const AliveBytes* gathered = part_of(at_55, C::param_gathered, 1);
  ASSERT_NE(gathered, nullptr);
  EXPECT_EQ(gathered->bytes, 400);
  EXPECT_EQ(gathered->since_ns, 30) << "it was freed in between";
  const AliveBytes* activation = part_of(at_55, C::activation, 1);
  ASSERT_NE(activation, nullptr);
  EXPECT_EQ(activation->bytes, 120);
  EXPECT_EQ(activation->since_ns, 40) << "the older one is still there";
  EXPECT_EQ(part_of(alive_memory(store, 0, ev::MemoryPool::device, 25), C::param_gathered, 1), nullptr);
  EXPECT_EQ(alive_memory(store, 0, ev::MemoryPool::host, 55).parts.size(), 0U);
}

TEST_F(Model, AliveMemoryAddsUpToThePoolAtEveryTime) {
  const auto peak = data().memory_peak(0, ev::MemoryPool::device);
  ASSERT_TRUE(peak);
  for (const std::int64_t at : {peak->at_ns, data().end_ns() / 3, data().end_ns()}) {
    const AliveMemory alive = alive_memory(data(), 0, ev::MemoryPool::device, at);
    const store::MemorySample sample = data().memory_at(0, ev::MemoryPool::device, at);
    EXPECT_EQ(alive.total(), sample.total());
    for (const std::int64_t rest : alive.unexplained) EXPECT_EQ(rest, 0) << "at " << at;
    std::int64_t in_tree = 0;
    for (const AliveNode& node : alive_tree(*app_.run, 0, alive)) {
      in_tree += node.bytes;
      std::int64_t children = 0;
      for (const AliveNode& child : node.children) children += child.bytes;
      if (!node.children.empty()) {
        EXPECT_EQ(children, node.bytes) << node.label;
      }
    }
    EXPECT_EQ(in_tree, sample.total());
  }
}

TEST_F(Model, TheDifferenceOfTwoTimesHoldsWhatChangedAndNothingElse) {
  const std::int64_t end = data().end_ns();
  const AliveMemory before = alive_memory(data(), 0, ev::MemoryPool::device, end / 4);
  const AliveMemory after = alive_memory(data(), 0, ev::MemoryPool::device, end / 2);
  EXPECT_TRUE(alive_difference(*app_.run, 0, before, before).empty());
  std::int64_t change = 0;
  for (const AliveNode& node : alive_difference(*app_.run, 0, before, after))
    change += node.bytes - node.before;
  EXPECT_EQ(change, after.total() - before.total());
}

TEST_F(Model, CommunicationListsEveryRankAndEveryCollectiveOfTheRange) {
  const std::vector<LabelledRun> runs{{app_.run.get(), ""}};
  EXPECT_EQ(overlap_table(runs).rows.size(), data().ranks().size());
  const auto& ops = app_.run->summary().ops;
  ASSERT_FALSE(ops.empty());
  EXPECT_EQ(operation_table(runs).rows.size(), ops.size());
  const SpanTable all = collective_table(*app_.run, 0, 0, data().end_ns() + 1, 1'000'000);
  std::size_t spans = 0;
  for (const ev::StreamId stream : {ev::StreamId::gather, ev::StreamId::reduce, ev::StreamId::compute}) {
    const store::LaneId lane{0, stream};
    for (std::uint8_t depth = 0; depth < data().depth_count(lane); ++depth) {
      for (const store::Span& span : data().spans(lane, depth))
        spans += span.kind == ev::EventKind::collective_begin && span.end_ns != store::kOpen ? 1 : 0;
    }
  }
  EXPECT_EQ(all.places.size(), spans);
  EXPECT_FALSE(all.cut);
  const SpanTable some = collective_table(*app_.run, 0, 0, data().end_ns() + 1, 3);
  EXPECT_EQ(some.table.rows.size(), 3U);
  EXPECT_TRUE(some.cut);
}

TEST_F(Model, OfTwoRunsEveryRowSaysOfWhich) {
  Session other(store::make_synthetic_store());
  other.settle();
  const std::vector<LabelledRun> runs{{app_.run.get(), "A"}, {&other, "B"}};
  const Table ops = operation_table(runs);
  ASSERT_EQ(ops.columns.back().name, "run");
  EXPECT_EQ(ops.rows.size(), app_.run->summary().ops.size() + other.summary().ops.size());
  EXPECT_EQ(ops.rows[0].back().text, "A");
  EXPECT_EQ(ops.rows[1].back().text, "B") << "the same operation of the other run is below";
}

TEST(Change, OfAShareIsInPointsAndOfAllElseInPercent) {
  const auto from_to = [](const char* metric, const char* unit, std::optional<double> a, double b,
                          std::optional<analysis::ConfidenceInterval> interval) {
    return analysis::Difference{.metric = metric, .unit = unit, .a = a, .b = b, .interval = interval};
  };
  analysis::Difference overlap = from_to("overlap", "%", 47, 12, {{-35, -40, -30, 5}});
  overlap.lower_is_better = false;
  const auto points = change_of(overlap);
  ASSERT_TRUE(points);
  EXPECT_EQ(points->text, "\u221235 points");
  EXPECT_FALSE(points->better);
  EXPECT_FALSE(points->in_spread);
  const auto percent = change_of(from_to("step time", "ms", 10, 12.5, {{2.5, 2, 3, 5}}));
  ASSERT_TRUE(percent);
  EXPECT_EQ(percent->text, "+25 %");
  EXPECT_FALSE(percent->better);
  EXPECT_TRUE(change_of(from_to("step time", "ms", 10, 11, {{1, -1, 3, 5}}))->in_spread);
  EXPECT_FALSE(change_of(from_to("step time", "ms", 0, 11, {}))) << "no percentage of nothing";
  EXPECT_FALSE(change_of(from_to("step time", "ms", std::nullopt, 11, {})));
}

TEST(MedianDifference, HasAnIntervalAroundItThatIsTheSameEachTime) {
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 40; ++i) {
    a.push_back(100 + i % 5);
    b.push_back(110 + i % 5);
  }
  const auto interval = median_difference(a, b);
  ASSERT_TRUE(interval);
  EXPECT_LE(interval->low, 10);
  EXPECT_GE(interval->high, 10);
  EXPECT_GT(interval->low, 5);
  EXPECT_EQ(interval->low, median_difference(a, b)->low);
  const auto none = median_difference(a, a);
  EXPECT_LE(none->low, 0);
  EXPECT_GE(none->high, 0);
  EXPECT_FALSE(median_difference(std::vector<double>{1, 2}, a));
}

TEST_F(Model, AComparisonOfARunWithItselfFindsNoModuleThatDiffers) {
  Session other(store::make_synthetic_store());
  other.settle();
  const Table modules = module_table(*app_.run, other, 2);
  ASSERT_FALSE(modules.rows.empty());
  for (const auto& row : modules.rows) EXPECT_NEAR(*row[4].value, 0, 1e-9) << row[0].text;
}

TEST(SettingTable, TakesChangesApart) {
  const Table table = setting_table({"zero_optimization.overlap_comm: true -> false", "a: (absent) -> 3"});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][0].text, "zero_optimization.overlap_comm");
  EXPECT_EQ(table.rows[0][1].text, "true");
  EXPECT_EQ(table.rows[0][2].text, "false");
}

TEST_F(Model, ABreakpointIsHitWhereItsConditionFirstHolds) {
  const std::int64_t end = data().end_ns();
  const store::StepRow& second = data().steps()[1];
  const std::vector<Breakpoint> step{{BreakKind::step, second.step, 0, true}};
  const auto hit = next_hit(*app_.run, 0, step, 0, end);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->at_ns, second.begin_ns);
  EXPECT_FALSE(next_hit(*app_.run, 0, step, second.begin_ns, end)) << "it is passed";
  std::vector<Breakpoint> off = step;
  off[0].enabled = false;
  EXPECT_FALSE(next_hit(*app_.run, 0, off, 0, end));

  const auto waits = app_.run->index().waits(0);
  ASSERT_FALSE(waits.empty());
  const std::vector<Breakpoint> wait{{BreakKind::wait, ev::kNoId, 0, true}};
  EXPECT_EQ(next_hit(*app_.run, 0, wait, 0, end)->at_ns, waits.front().end_ns);
  const std::vector<Breakpoint> long_wait{{BreakKind::wait, ev::kNoId, 1e9, true}};
  EXPECT_FALSE(next_hit(*app_.run, 0, long_wait, 0, end));
}

TEST_F(Model, OfSeveralBreakpointsTheEarliestStops) {
  const std::vector<Breakpoint> both{{BreakKind::step, data().steps()[1].step, 0, true},
                                     {BreakKind::wait, ev::kNoId, 0, true}};
  const auto hit = next_hit(*app_.run, 0, both, 0, data().end_ns());
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->at_ns, std::min(data().steps()[1].begin_ns, app_.run->index().waits(0).front().end_ns));
}

TEST_F(Model, LiveElementsAboveAThresholdStopAtAGateWhereThereAreMore) {
  const std::vector<Breakpoint> any{{BreakKind::live_elements, ev::kNoId, 1, true}};
  const auto hit = next_hit(*app_.run, 0, any, 0, data().end_ns());
  ASSERT_TRUE(hit);
  const StatusLists lists = status_lists(data(), 0, hit->at_ns);
  EXPECT_GT(lists.available_elems + lists.persistent_elems + lists.in_flight_elems, 1);
  const std::vector<Breakpoint> never{{BreakKind::live_elements, ev::kNoId, 1e15, true}};
  EXPECT_FALSE(next_hit(*app_.run, 0, never, 0, data().end_ns()));
}

TEST(Playback, MovesBySpeedAndStopsAtTheEnd) {
  Playback playback{true, 0.01};
  EXPECT_EQ(playback.advance(1000, 0.5, 1'000'000'000), 1000 + 5'000'000);
  EXPECT_TRUE(playback.playing);
  EXPECT_EQ(playback.advance(1000, 0.5, 2000), 2000);
  EXPECT_FALSE(playback.playing);
}

TEST_F(Model, DsSummaryAgreesWithTheStore) {
  const auto field = [&](std::int64_t at, const char* label) {
    for (const Field& one : ds_summary(data(), 0, 0, at)) {
      if (one.label == label) return one.value;
    }
    return std::string("(none)");
  };
  const ev::ParamInfo& info = data().tables().params[0];
  EXPECT_EQ(field(0, "ds_tensor.shape"), "[" + std::to_string(info.shard_elems) + "]");
  bool here = false;
  bool gone = false;
  for (std::int64_t at = 0; at < data().end_ns(); at += data().end_ns() / 200 + 1) {
    const auto status = static_cast<plan::ParamStatus>(ev::status_of(data().param_state(0, 0, at).status));
    const bool available = status == plan::ParamStatus::available;
    EXPECT_EQ(field(at, "status") == "AVAILABLE", available) << at;
    EXPECT_EQ(field(at, "numel") != "0", available) << at;
    here |= available;
    gone |= !available;
  }
  EXPECT_TRUE(here && gone) << "both were seen";
}

std::string ds_field(const store::Store& store, std::int64_t at, const char* label) {
  for (const Field& one : ds_summary(store, 0, 0, at)) {
    if (one.label == label) return one.value;
  }
  return "(none)";
}

/// DeepSpeed gives up `param.grad` with the reduction in stage 3, and keeps it to the step in stage 0.
TEST_F(Model, DsSummaryHasTheGradientFromItsBackwardToItsReduction) {
  const store::StepRow& step = data().steps()[1];
  const std::string shape = shape_text(data().tables().params[0].shape);
  std::vector<std::string> seen;
  for (std::int64_t at = step.begin_ns; at < step.end_ns; at += (step.end_ns - step.begin_ns) / 400 + 1) {
    const std::string now = ds_field(data(), at, "grad_shape");
    if (seen.empty() || seen.back() != now) seen.push_back(now);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"None", shape, "None"}));
  EXPECT_EQ(ds_field(data(), 0, "ds_param_type"), "PARTITIONED");
  store::SyntheticOptions options;
  options.stage = 0;
  const store::Store whole = store::make_synthetic_store(options);
  const std::int64_t before_next = whole.steps()[2].begin_ns - 1;
  EXPECT_EQ(ds_field(whole, before_next, "grad_shape"), shape);
  EXPECT_EQ(ds_field(whole, whole.steps()[1].begin_ns, "grad_shape"), "None");
  EXPECT_EQ(ds_field(whole, 0, "ds_param_type"), "NORMAL");
  EXPECT_EQ(ds_field(whole, 0, "final_location"), "(none)") << "nothing is divided";
}

TEST_F(Model, OfTheFourStagesTheRunsOwnIsWhatItsSummarySays) {
  const auto rows = stage_memory(data(), app_.run->summary(), nullptr, nullptr);
  const auto stage = static_cast<std::size_t>(data().tables().stage);
  const analysis::MemoryModel& model = app_.run->summary().memory_model;
  EXPECT_NEAR(rows[stage].total(), static_cast<double>(model.bytes_per_rank), 1);
  EXPECT_EQ(rows[stage].expression, model.expression);
  EXPECT_EQ(rows[stage].measured, model.measured_bytes_per_rank);
  EXPECT_FALSE(rows[0].measured) << "no run of stage 0 was measured";
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i].total(), rows[i - 1].total());
}

/// Another world's measurement would stand beside an expression of this one.
TEST_F(Model, OfAComparedRunOnlyOneOfTheSameWorldIsAMeasurementOfItsStage) {
  for (const std::uint32_t world : {4U, 2U}) {
    store::SyntheticOptions options;
    options.stage = 2;
    options.world = world;
    options.straggler = ev::kNoId;
    Session other(store::make_synthetic_store(options));
    other.settle();
    ASSERT_TRUE(other.summary().memory_model.measured_bytes_per_rank);
    const auto rows = stage_memory(data(), app_.run->summary(), &other.store(), &other.summary());
    EXPECT_EQ(rows[2].measured.has_value(), world == data().tables().world) << world;
  }
}

TEST_F(Model, EveryTrainedGradientIsReducedWhenItsStepHasEndedAndNoneWhenItBegins) {
  const store::StepRow& step = data().steps()[1];
  for (const GradientState& state : gradient_states(data(), 0, step.begin_ns)) {
    EXPECT_EQ(state.status, GradientStatus::none);
  }
  const std::vector<GradientState> at_end = gradient_states(data(), 0, data().steps()[2].begin_ns - 1);
  ASSERT_EQ(at_end.size(), data().tables().params.size());
  for (std::size_t i = 0; i < at_end.size(); ++i) {
    EXPECT_EQ(at_end[i].status, GradientStatus::reduced) << data().tables().params[i].name;
  }
}

TEST_F(Model, KeptGradientsAreThoseOfTheTimeAndRankAskedFor) {
  const std::int64_t begin = data().steps()[1].begin_ns, end = data().steps()[2].begin_ns - 1;
  GradientStatesAt kept;
  const auto same = [](const std::vector<GradientState>& a, const std::vector<GradientState>& b) {
    return std::ranges::equal(a, b, [](const GradientState& x, const GradientState& y) {
      return x.status == y.status && x.bucket == y.bucket && x.since_ns == y.since_ns;
    });
  };
  // There and back, so that what was kept of another time or rank would be seen.
  bool differ = false;
  for (const std::int64_t at : {begin, end, begin}) {
    for (const std::uint32_t rank : {0U, 1U, 0U}) {
      EXPECT_TRUE(same(kept.of(data(), rank, at), gradient_states(data(), rank, at))) << rank << " at " << at;
    }
    differ |= !same(kept.of(data(), 0, at), gradient_states(data(), 0, begin));
  }
  EXPECT_TRUE(differ) << "the two times have different states";
}

TEST_F(Model, WhatTheStoreHasInABucketIsInItOnTheMap) {
  const store::StepRow& step = data().steps()[1];
  std::size_t seen_in_bucket = 0;
  for (int i = 0; i < 400; ++i) {
    const std::int64_t at = step.begin_ns + (step.end_ns - step.begin_ns) * i / 400;
    const std::vector<GradientState> states = gradient_states(data(), 0, at);
    for (const store::BucketState& bucket : data().buckets_at(0, at)) {
      for (const std::uint32_t param : bucket.params) {
        EXPECT_EQ(states[param].status, GradientStatus::in_bucket) << at;
        EXPECT_EQ(states[param].bucket, bucket.bucket) << at;
        ++seen_in_bucket;
      }
    }
  }
  EXPECT_GT(seen_in_bucket, 0U);
}

TEST_F(Model, FlushesAreAsManyAsTheRunHas) {
  const auto all = bucket_flushes(data(), 0, store::Store::kBegin, store::Store::kEnd);
  EXPECT_EQ(all.size(), data().instant_count(0, ev::EventKind::bucket_flush));
  for (const BucketFlush& flush : all) EXPECT_LE(flush.opened_ns, flush.at_ns);
}

ev::RunTables what_if_tables() {
  ev::RunTables tables;
  tables.world = 4;
  tables.local_world = 4;
  tables.stage = 3;
  tables.config_json =
      R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": 5e5}})";
  return tables;
}

TEST(WhatIf, NamesOnlyWhatDiffersFromTheRecording) {
  const ev::RunTables tables = what_if_tables();
  WhatIfChoice choice = as_recorded(tables);
  EXPECT_EQ(choice.values[0], "3");
  using Words = std::vector<std::string>;
  EXPECT_EQ(what_if_arguments("s", "r.zscope", tables, choice, ""),
            (Words{"s", "what-if", "r.zscope", "--json"}));
  for (std::size_t i = 0; i < what_if_settings().size(); ++i) {
    const std::string key = what_if_settings()[i].key;
    if (key == "zero_optimization.reduce_bucket_size") {
      EXPECT_EQ(choice.values[i], "500000") << "5e5 in the configuration is a whole number";
    }
    if (key == "zero_optimization.overlap_comm") choice.values[i] = "false";
  }
  choice.ranks = 8;
  choice.link_gb_per_s = 12.5;
  choice.link_latency_us = 20;
  choice.more = "gradient_clipping=0\nnot a setting\n";
  EXPECT_EQ(what_if_arguments("s", "r", tables, choice, "out"),
            (Words{"s", "what-if", "r", "--json", "--set", "zero_optimization.overlap_comm=false", "--set",
                   "gradient_clipping=0", "--ranks", "8", "--link", "12.5:20", "-o", "out"}));
}

TEST(WhatIf, ABoxThatTheConfigurationLeavesOutShowsItsDefault) {
  for (const int stage : {2, 3}) {
    ev::RunTables tables = what_if_tables();
    tables.stage = stage;
    tables.config_json = R"({"zero_optimization": {"stage": )" + std::to_string(stage) + "}}";
    const WhatIfChoice choice = as_recorded(tables);
    for (std::size_t i = 0; i < what_if_settings().size(); ++i) {
      if (what_if_settings()[i].key == std::string("zero_optimization.overlap_comm")) {
        EXPECT_EQ(choice.values[i], stage == 3 ? "true" : "false");
      }
    }
    EXPECT_EQ(what_if_arguments("s", "r", tables, choice, "").size(), 4U) << "nothing differs";
  }
}

TEST(WhatIf, ControlsThatCannotBeAskedOfAnAttachedRunHaveTheReason) {
  ev::RunTables tables = what_if_tables();
  const auto refused_of = [](const WhatIfRefusals& refusals, const std::string& key) {
    for (std::size_t i = 0; i < what_if_settings().size(); ++i)
      if (what_if_settings()[i].key == key) return refusals.settings[i];
    return std::string("no such setting");
  };
  const WhatIfRefusals own = what_if_refusals(tables);
  EXPECT_EQ(own.run + own.search + own.links + refused_of(own, "train_micro_batch_size_per_gpu"), "");
  tables.framework = "DeepSpeed 0.19.8";
  const WhatIfRefusals deepspeed = what_if_refusals(tables);
  EXPECT_EQ(deepspeed.run + refused_of(deepspeed, "zero_optimization.stage3_prefetch_bucket_size"), "");
  EXPECT_NE(refused_of(deepspeed, "train_micro_batch_size_per_gpu"), "");
  EXPECT_NE(deepspeed.search, "");
  EXPECT_NE(deepspeed.ranks, "");
  tables.framework = "FSDP2 (PyTorch 2.15.0)";
  const WhatIfRefusals fsdp2 = what_if_refusals(tables);
  EXPECT_NE(fsdp2.run.find("fully_shard"), std::string::npos);
  for (const std::string& reason : fsdp2.settings) EXPECT_EQ(reason, fsdp2.run);
  EXPECT_EQ(fsdp2.links, fsdp2.run);
}

TEST(WhatIf, EachSliderSaysWhatItCounts) {
  for (const WhatIfSetting& setting : what_if_settings()) {
    if (setting.kind != WhatIfSetting::Kind::count) continue;
    EXPECT_NE(std::string(setting.unit), "") << setting.key;
    EXPECT_EQ(text_of(setting, "500000000"), grouped(500'000'000) + " " + setting.unit);
    EXPECT_FALSE(text_of(setting, "1").ends_with("s")) << text_of(setting, "1");
    EXPECT_EQ(text_of(setting, ""), "default") << "not 0: the configuration does not say";
    EXPECT_EQ(text_of(setting, "auto"), "auto");
    EXPECT_EQ(as_format(text_of(setting, "12%s")), "12%%s");
  }
}

TEST(WhatIf, ReadsWhatTheCommandGivesAndSaysSoWhereItIsNothing) {
  const auto [result, problem] = read_what_if(
      R"({"recorded": {"step_ms": 10}, "modelled_step_ms": 11, "model_error_pct": 10, "changed": {"step_ms": 9},
          "predicted_step_ms": 8, "predicted_change_pct": -20, "comparison": {"verdict": "B is faster.",
          "metrics": [{"metric": "overlap", "unit": "%", "a": 47, "b": 12, "lower_is_better": false},
                      {"metric": "fetch wait", "unit": "ms", "a": null, "b": null}]}})");
  ASSERT_TRUE(result) << problem;
  EXPECT_DOUBLE_EQ(result->predicted_ms, 8);
  ASSERT_EQ(result->comparison.metrics.size(), 2U);
  EXPECT_EQ(change_of(result->comparison.metrics[0])->text, "\u221235 points");
  EXPECT_FALSE(result->comparison.metrics[1].a) << "null is missing, not 0";
  EXPECT_FALSE(read_what_if("no JSON").first);
  EXPECT_NE(read_what_if("{}").second, "");
}

std::shared_ptr<const WhatIfRun::Outcome> outcome_of(WhatIfRun& run) {
  while (run.running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return run.outcome();
}

TEST(WhatIf, WhatTheCommandSaysIsTheProblemWhereItFails) {
  WhatIfRun run;
  run.start({"/bin/sh", "-c", "echo 'shardscope: a.zscope: too few steps' >&2; exit 1"}, "");
  const auto failed = outcome_of(run);
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->result);
  EXPECT_EQ(failed->problem, "a.zscope: too few steps");
  run.start({"/no/such/program"}, "");
  EXPECT_NE(outcome_of(run)->problem.find("/no/such/program"), std::string::npos);
  run.start(
      {"/bin/sh", "-c", R"(echo '{"recorded":{"step_ms":1},"changed":{"step_ms":2}}'; echo warned >&2)"}, "");
  const auto done = outcome_of(run);
  ASSERT_TRUE(done->result);
  EXPECT_EQ(done->result->warnings, "warned");
}

TEST(WhatIf, OfAnotherRunThereIsNoOutcomeAndTheFileOfTheOneBeforeStays) {
  const std::string file = testing::TempDir() + "what-if-outcome.zscope";
  std::ofstream(file) << "written";
  WhatIfRun run;
  run.start({"/bin/sh", "-c", R"(echo '{"recorded":{"step_ms":1},"changed":{"step_ms":2}}')"}, file);
  ASSERT_TRUE(outcome_of(run));
  run.forget();
  EXPECT_EQ(run.outcome(), nullptr);
  EXPECT_TRUE(std::filesystem::exists(file)) << "it may be what is shown now";
  run.start({"/bin/sh", "-c", "sleep 1000"}, "");
  run.forget();
  EXPECT_FALSE(run.running());
  EXPECT_EQ(run.outcome(), nullptr) << "nor that it was ended";
  SettingSearchRun search;
  search.start({"/bin/sh", "-c", "exit 1"});
  while (search.running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_NE(search.ended(), nullptr);
  search.forget();
  EXPECT_EQ(search.ended(), nullptr);
}

TEST(WhatIf, IsEndedWithWhatItStarted) {
  WhatIfRun run;
  run.start({"/bin/sh", "-c", "sleep 1000 & sleep 1000"}, "");
  run.cancel();
  EXPECT_EQ(outcome_of(run)->problem, "ended before it was done");
}

// Its option names are the command's, and what it writes is a recording: in gui_window_test.
TEST(SampleRun, IsTakenOnceAndItsFileGoesWithIt) {
  const auto arguments = sample_arguments("shardscope", "/tmp/a.zscope");
  EXPECT_EQ(arguments.front(), "shardscope");
  EXPECT_EQ(arguments.back(), "/tmp/a.zscope");
  std::string recording;
  {
    SampleRun run;
    EXPECT_FALSE(run.take()) << "nothing was started";
    run.start();
    std::optional<SampleRun::Outcome> outcome;
    while (!outcome) {
      outcome = run.take();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_NE(outcome->recording.empty(), outcome->problem.empty());
    recording = outcome->recording;
    EXPECT_FALSE(run.take()) << "taken already";
    EXPECT_EQ(std::filesystem::exists(recording), !recording.empty());
  }
  EXPECT_FALSE(std::filesystem::exists(recording));
}

}  // namespace
}  // namespace shardscope::gui
