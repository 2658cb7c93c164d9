// OpenTelemetry spans: each line is parsed again, and ids, parents and times are closed forms of the run.
#include "app/export/otlp.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/app/analysis/run_builder.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::exporter {
namespace {

using nlohmann::json;
using test::EventKind;
using test::RunBuilder;
using test::StreamId;

constexpr std::int64_t kMs = 1'000'000;

struct Exported {
  std::vector<json> lines;
  std::map<std::string, json> by_id;  ///< trace and span id
  std::vector<json> spans;            ///< with "instance" of their resource
};

std::string attribute(const json& of, const std::string& key) {
  for (const json& one : of.at("attributes")) {
    if (one.at("key") == key) return one.at("value").begin()->dump();
  }
  return "";
}

Exported otlp_of(const store::Store& store, const OtlpOptions& options = {}) {
  std::ostringstream out;
  write_otlp(out, store, options);
  Exported result;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) {
    result.lines.push_back(json::parse(line));
    for (const json& resource : result.lines.back().at("resourceSpans")) {
      for (const json& scope : resource.at("scopeSpans")) {
        for (json span : scope.at("spans")) {
          span["instance"] = attribute(resource.at("resource"), "service.instance.id");
          const std::string id = span.at("traceId").get<std::string>() + span.at("spanId").get<std::string>();
          EXPECT_TRUE(result.by_id.emplace(id, span).second) << "twice: " << id;
          result.spans.push_back(std::move(span));
        }
      }
    }
  }
  return result;
}

const json& named(const Exported& all, const std::string& name, const std::string& instance) {
  for (const json& span : all.spans) {
    if (span.at("name") == name && span.at("instance") == '"' + instance + '"') return span;
  }
  throw std::runtime_error("no span " + name + " of " + instance);
}

std::int64_t at(const json& span, const char* key) { return std::stoll(span.at(key).get<std::string>()); }

/// Of each of two ranks a step of 100 ms with a micro-step, a phase, and a collective that ends after it.
store::Store& two_ranks(RunBuilder& run) {
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::int64_t begin = rank * kMs;
    run.span(rank, begin, begin + 100 * kMs, EventKind::step_begin, StreamId::host, 7);
    run.span(rank, begin + 2 * kMs, begin + 60 * kMs, EventKind::micro_step_begin, StreamId::host, 0, 7);
    run.span(rank, begin + 3 * kMs, begin + 50 * kMs, EventKind::phase_begin, StreamId::compute, 7, 0,
             static_cast<std::uint8_t>(test::ev::Phase::forward));
    run.span(rank, begin + 10 * kMs, begin + 70 * kMs, EventKind::collective_begin, StreamId::gather, 5, 0,
             test::kGatherOp, 1000, 4000);
    run.span(rank, begin + 80 * kMs, begin + 90 * kMs, EventKind::collective_begin, StreamId::gather, 6, 0,
             test::kGatherOp, 1000, 4000);
    run.span(rank, begin + 120 * kMs, begin + 130 * kMs, EventKind::collective_begin, StreamId::gather, 8, 0,
             test::kGatherOp, 1000, 4000);
  }
  return run.build();
}

TEST(Otlp, EachSpanIsBelowTheInnermostThatItBeginsIn) {
  RunBuilder run(2);
  const Exported all =
      otlp_of(two_ranks(run), {.ranks = {}, .steps = {}, .unix_offset_ns = {}, .version = "1"});
  const json& root = named(all, "step of all ranks", "run");
  EXPECT_FALSE(root.contains("parentSpanId"));
  EXPECT_EQ(at(root, "endTimeUnixNano") - at(root, "startTimeUnixNano"), 101 * kMs);
  for (const char* rank : {"rank 0", "rank 1"}) {
    const auto parent = [&](const json& span) { return span.at("parentSpanId"); };
    const json& step = named(all, "step", rank);
    EXPECT_EQ(parent(step), root.at("spanId"));
    EXPECT_EQ(step.at("traceId"), root.at("traceId"));
    EXPECT_EQ(attribute(step, "shardscope.step"), "\"7\"");
    const json& micro = named(all, "micro-step", rank);
    EXPECT_EQ(parent(micro), step.at("spanId"));
    const json& phase = named(all, "forward", rank);
    EXPECT_EQ(parent(phase), micro.at("spanId"));
    std::map<std::string, json> collectives;
    for (const json& span : all.spans) {
      if (span.at("name") == "all_gather" && span.at("instance") == step.at("instance"))
        collectives[attribute(span, "shardscope.sequence")] = span;
    }
    ASSERT_EQ(collectives.size(), 3U);
    EXPECT_EQ(parent(collectives.at("\"5\"")), phase.at("spanId"));
    EXPECT_EQ(at(collectives.at("\"5\""), "endTimeUnixNano") - at(phase, "startTimeUnixNano"), 67 * kMs);
    EXPECT_EQ(attribute(collectives.at("\"5\""), "shardscope.bytes"), "\"4000\"");
    EXPECT_EQ(parent(collectives.at("\"6\"")), step.at("spanId")) << "the phase and the micro-step had ended";
    EXPECT_FALSE(collectives.at("\"8\"").contains("parentSpanId")) << "it is in no step";
    EXPECT_NE(collectives.at("\"8\"").at("traceId"), root.at("traceId"));
  }
}

TEST(Otlp, TimesAreThoseOfTheWallClock) {
  RunBuilder run(2);
  const store::Store& store = two_ranks(run);
  const std::int64_t offset = 1'800'000'000'000'000'123;
  const Exported all = otlp_of(store, {.ranks = {}, .steps = {}, .unix_offset_ns = offset, .version = ""});
  EXPECT_EQ(at(named(all, "step", "rank 1"), "startTimeUnixNano"), store.origin_ns() + offset + kMs);
  EXPECT_EQ(attribute(all.lines[0]["resourceSpans"][0]["resource"], "shardscope.wall_clock"), "");
  const Exported without = otlp_of(store);
  EXPECT_EQ(at(named(without, "step", "rank 1"), "startTimeUnixNano"), kMs);
  EXPECT_NE(attribute(without.lines[0]["resourceSpans"][0]["resource"], "shardscope.wall_clock"), "");
}

TEST(Otlp, OneResourceALineAndNoneEmpty) {
  RunBuilder run(2);
  const Exported all = otlp_of(two_ranks(run));
  ASSERT_EQ(all.lines.size(), 3U);
  std::set<std::string> instances;
  for (const json& line : all.lines) {
    ASSERT_EQ(line.at("resourceSpans").size(), 1U);
    instances.insert(attribute(line["resourceSpans"][0]["resource"], "service.instance.id"));
    EXPECT_FALSE(line["resourceSpans"][0]["scopeSpans"][0]["spans"].empty());
  }
  EXPECT_EQ(instances, (std::set<std::string>{"\"run\"", "\"rank 0\"", "\"rank 1\""}));
}

TEST(Otlp, RanksAndStepsAreThoseChosen) {
  const store::Store store = store::make_synthetic_store();
  const Exported whole = otlp_of(store);
  ASSERT_GE(store.steps().size(), 2U);
  const std::uint32_t step = store.steps()[1].step;
  const Exported part =
      otlp_of(store, {.ranks = {1}, .steps = std::pair{step, step}, .unix_offset_ns = {}, .version = ""});
  EXPECT_LT(part.spans.size(), whole.spans.size());
  ASSERT_FALSE(part.spans.empty());
  std::set<std::string> traces, instances;
  for (const auto& [id, span] : part.by_id) {
    traces.insert(span.at("traceId"));
    instances.insert(span.at("instance"));
    // The ids stay, but for where a rank's spans begin to be counted.
    EXPECT_TRUE(span.at("name") != "step of all ranks" || whole.by_id.contains(id));
  }
  EXPECT_EQ(traces.size(), 1U);
  EXPECT_EQ(instances, (std::set<std::string>{"\"run\"", "\"rank 1\""}));
  EXPECT_THROW((void)otlp_of(store, {.ranks = {999}, .steps = {}, .unix_offset_ns = {}, .version = ""}),
               std::runtime_error);
  EXPECT_THROW(
      (void)otlp_of(store,
                    {.ranks = {}, .steps = std::pair{90000U, 90001U}, .unix_offset_ns = {}, .version = ""}),
      std::runtime_error);
}

TEST(Otlp, ParentsAreThereAndBeginBeforeTheirChildren) {
  const Exported all = otlp_of(store::make_synthetic_store());
  std::size_t children = 0;
  for (const json& span : all.spans) {
    EXPECT_LE(at(span, "startTimeUnixNano"), at(span, "endTimeUnixNano"));
    if (!span.contains("parentSpanId")) continue;
    ++children;
    const std::string id = span.at("traceId").get<std::string>() + span.at("parentSpanId").get<std::string>();
    ASSERT_TRUE(all.by_id.contains(id)) << span;
    EXPECT_LE(at(all.by_id.at(id), "startTimeUnixNano"), at(span, "startTimeUnixNano")) << span;
    EXPECT_LT(at(span, "startTimeUnixNano"), at(all.by_id.at(id), "endTimeUnixNano")) << span;
  }
  EXPECT_GT(children, 20U);
}

TEST(Otlp, WhatIsMissingAndWhatHasNotEndedIsSaid) {
  RunBuilder run(1);
  run.span(0, 0, 10 * kMs, EventKind::step_begin, StreamId::host, 0);
  run.build();
  run.drop(0, 25);
  run.instant(0, 30 * kMs, EventKind::step_begin, StreamId::host, 1);
  run.instant(0, 40 * kMs, EventKind::micro_step_begin, StreamId::host, 0, 1);
  const Exported all = otlp_of(run.build());
  const json& missing = named(all, "events missing", "rank 0");
  EXPECT_NE(attribute(missing, "shardscope.missing").find("25 events dropped"), std::string::npos);
  bool open = false;
  for (const json& span : all.spans) {
    if (span.at("name") == "step" && attribute(span, "shardscope.step") == "\"1\"")
      open = !attribute(span, "shardscope.not_ended").empty();
  }
  EXPECT_TRUE(open);
}

TEST(Otlp, NamesMayHoldAnything) {
  RunBuilder run(1);
  run.on("cpu");
  store::Store& store = run.build();
  auto tables = store.tables();
  tables.model = "a\"b\n\xff";
  store.set_tables(0, tables);
  run.span(0, 0, 10 * kMs, EventKind::step_begin, StreamId::host, 0);
  const Exported all = otlp_of(run.build());
  EXPECT_EQ(all.spans.size(), 2U);
}

}  // namespace
}  // namespace shardscope::exporter
