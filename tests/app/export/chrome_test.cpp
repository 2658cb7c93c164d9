// Chrome JSON: parsed again by a JSON parser and checked as Perfetto, HTA and TraceLens read it.
#include "app/export/chrome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "app/export/json_text.h"
#include "app/export/span_walk.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/temporary_folder.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using nlohmann::json;

json exported(const store::Store& store, const ExportPart& part = {}) {
  std::ostringstream out;
  write_chrome(out, store, part);
  return json::parse(out.str());  // throws on anything that is not JSON
}

std::int64_t ns(const json& us) { return std::llround(us.get<double>() * 1000); }

TEST(JsonText, EscapesAnything) {
  std::string out;
  append_json(out, std::string_view("a\"b\\c\n\x01\xff\xc3\xa9\xed\xa0\x80 \x7f", 16));
  const json parsed = json::parse(out);
  EXPECT_EQ(parsed.get<std::string>().substr(0, 7), std::string("a\"b\\c\n\x01"));
  EXPECT_NE(parsed.get<std::string>().find("\xc3\xa9"), std::string::npos);
  EXPECT_NE(parsed.get<std::string>().find("\xef\xbf\xbd"), std::string::npos);
}

TEST(JsonText, TimesAreExact) {
  for (const auto& [value, text] : std::map<std::int64_t, std::string>{{0, "0.000"},
                                                                       {7, "0.007"},
                                                                       {1'234'567, "1234.567"},
                                                                       {-1'001, "-1.001"},
                                                                       {1LL << 60, "1152921504606846.976"}}) {
    std::string out;
    append_us(out, value);
    EXPECT_EQ(out, text);
  }
}

/// Without names of threads and what has two ends: flows and gaps.
std::vector<json> timed(const json& trace) {
  std::vector<json> out;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X" || event["ph"] == "i" || event["ph"] == "C") out.push_back(event);
  return out;
}

TEST(Chrome, ARangeIsWhatOverlapsItOfTheWhole) {
  const store::Store store = store::make_synthetic_store();
  const std::vector<json> whole = timed(exported(store));
  const std::int64_t length = store.end_ns();
  for (const auto& [from, to] : {std::pair(length / 3, length / 2),
                                 {length / 3, length / 3 + 1000},
                                 {std::int64_t{0}, length / 5},
                                 {length / 2, length * 2}}) {
    std::vector<json> expected;
    for (const json& event : whole) {
      const std::int64_t begin = ns(event["ts"]),
                         end = begin + (event.contains("dur") ? ns(event["dur"]) : 0);
      if (begin < to && (end > from || begin >= from)) expected.push_back(event);
    }
    ASSERT_LT(expected.size(), whole.size());
    EXPECT_GT(expected.size(), 4U);
    // Counters of memory have a value where the range begins as well, of every rank.
    std::vector<json> got = timed(exported(store, {.range = {from, to}}));
    std::set<int> begun;
    std::erase_if(got, [&](const json& event) {
      if (event["cat"] != "memory" || ns(event["ts"]) != from || from == 0) return false;
      std::int64_t sum = 0;
      for (const auto& [name, bytes] : event["args"].items()) sum += bytes.get<std::int64_t>();
      const std::uint32_t rank = event["pid"];
      EXPECT_EQ(sum, store.memory_at(rank, ev::MemoryPool::device, from).total());
      begun.insert(static_cast<int>(rank));
      return std::ranges::find(whole, event) == whole.end();
    });
    EXPECT_EQ(begun.size(), from == 0 ? 0U : 4U);
    EXPECT_EQ(got, expected) << from << " to " << to;
  }
}

TEST(SpanWalk, OfARangeLittleElseIsVisited) {
  const store::Store store = store::make_synthetic_store();
  const store::LaneId lane{0, ev::StreamId::compute};
  const std::int64_t from = store.end_ns() * 9 / 10, to = from + store.end_ns() / 50;
  std::size_t all = 0, visited = 0, overlapping = 0;
  walk_spans(store, lane, [&](const WalkedSpan&) { ++all; });
  walk_overlapping(store, lane, from, to, [&](const WalkedSpan& walked) {
    ++visited;
    overlapping += walked.span->begin_ns < to && walked.end_ns > from ? 1 : 0;
  });
  EXPECT_GT(overlapping, 0U);
  EXPECT_LT(visited, all / 4) << "of " << all << ", " << overlapping << " overlap";
}

TEST(SpanWalk, FlowsOfARangeAreThoseOfTheWholeInIt) {
  const store::Store store = store::make_synthetic_store({.steps = 6});
  const auto ends = [](const std::vector<Flow>& flows, std::int64_t from, std::int64_t to) {
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    for (const Flow& flow : flows)
      if (flow.from_ns >= from && flow.to_ns < to) out.emplace_back(flow.from_ns, flow.to_ns);
    std::ranges::sort(out);
    return out;
  };
  const std::vector<Flow> whole = flows_to_waits(store, 0);
  std::size_t seen = 0;
  for (const store::StepRow& step : store.steps()) {
    const std::int64_t third = (step.end_ns - step.begin_ns) / 3;
    for (const std::int64_t to : {step.begin_ns + third, step.end_ns, step.end_ns + third}) {
      const std::vector<Flow> part = flows_to_waits(store, 0, step.begin_ns, to);
      EXPECT_EQ(ends(part, store::Store::kBegin, store::Store::kEnd), ends(whole, step.begin_ns, to));
      seen += part.size();
    }
  }
  EXPECT_GT(seen, 10U);
}

TEST(Chrome, EveryThreadNests) {
  const json trace = exported(store::make_synthetic_store());
  std::map<std::pair<int, int>, std::vector<std::int64_t>> stacks;  // ends of open slices
  std::size_t slices = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    if (event["cat"] == "cuda_runtime") continue;  // zero long, inside whatever runs
    ++slices;
    const std::int64_t begin = ns(event["ts"]);
    const std::int64_t end = begin + ns(event["dur"]);
    auto& stack = stacks[{event["pid"], event["tid"]}];
    while (!stack.empty() && stack.back() <= begin) stack.pop_back();
    if (!stack.empty()) {
      ASSERT_LE(end, stack.back()) << event.dump();
    }
    stack.push_back(end);
  }
  EXPECT_GT(slices, 2000U);
}

TEST(Chrome, NothingIsLeftOut) {
  const store::Store store = store::make_synthetic_store();
  const json trace = exported(store);
  std::size_t spans = 0;
  for (const store::LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) spans += store.spans(lane, d).size();
  }
  std::size_t slices = 0;
  std::map<std::string, int> phases;
  for (const json& event : trace["traceEvents"]) {
    ++phases[event["ph"]];
    slices += event["ph"] == "X" && event["cat"] != "cuda_runtime" ? 1 : 0;
  }
  EXPECT_EQ(slices, spans);
  EXPECT_GT(phases["C"], 100);
  EXPECT_GT(phases["i"], 10);
  EXPECT_EQ(phases["s"], phases["f"]);
  EXPECT_GT(phases["s"], 100);
}

TEST(Chrome, IsReadableByHtaAndTraceLens) {
  const store::Store store = store::make_synthetic_store();
  const json trace = exported(store, {.ranks = {2}});
  EXPECT_EQ(trace["distributedInfo"]["rank"], 2);
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 4);
  EXPECT_EQ(trace["baseTimeNanoseconds"], store.origin_ns());
  std::set<std::string> steps;
  std::int64_t communication = 0;
  std::set<std::int64_t> launched, ran;
  for (const json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["pid"], 2);
    const std::string name = event["name"];
    if (name.rfind("ProfilerStep#", 0) == 0) steps.insert(name);
    if (event["cat"] == "cuda_runtime") launched.insert(event["args"]["correlation"].get<std::int64_t>());
    if (event["cat"] != "kernel") continue;
    ASSERT_TRUE(event["args"].contains("stream")) << event.dump();
    if (name.rfind("nccl", 0) != 0) continue;
    ++communication;
    ran.insert(event["args"]["correlation"].get<std::int64_t>());
    EXPECT_EQ(event["args"]["Group size"], 4);
    EXPECT_GE(event["args"]["Out msg nelems"].get<std::int64_t>(), 0);
  }
  EXPECT_THAT(steps,
              testing::ElementsAre("ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"));
  EXPECT_GT(communication, 100);
  EXPECT_EQ(launched, ran);
}

TEST(Chrome, FlowsRunForwardAndBindToSlices) {
  const json trace = exported(store::make_synthetic_store());
  std::map<std::uint64_t, std::int64_t> starts;
  std::vector<json> slices;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") slices.push_back(event);
  }
  std::size_t bound = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") starts[event["id"]] = ns(event["ts"]);
    if (event["ph"] != "f") continue;
    ASSERT_EQ(starts.count(event["id"]), 1U);
    EXPECT_LE(starts[event["id"]], ns(event["ts"]));
    if (bound > 40) continue;  // looking in every slice is slow
    bool inside = false;
    for (const json& slice : slices) {
      inside = inside ||
               (slice["pid"] == event["pid"] && slice["tid"] == event["tid"] && slice["cat"] == "wait" &&
                ns(slice["ts"]) <= ns(event["ts"]) && ns(event["ts"]) < ns(slice["ts"]) + ns(slice["dur"]));
    }
    EXPECT_TRUE(inside) << event.dump();
    ++bound;
  }
  EXPECT_GT(bound, 40U);
}

TEST(Chrome, MemoryCountersAddUpToThePool) {
  const store::Store store = store::make_synthetic_store({.world = 1, .steps = 1, .straggler = ev::kNoId});
  const json trace = exported(store);
  std::int64_t highest = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "C" || event["cat"] != "memory") continue;
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : event["args"].items()) sum += bytes.get<std::int64_t>();
    EXPECT_EQ(sum, store.memory_at(0, ev::MemoryPool::device, ns(event["ts"])).total());
    highest = std::max(highest, sum);
  }
  // One sample for each instant: a peak between two changes of the same nanosecond is not in the counter.
  const std::int64_t peak = store.memory_peak(0, ev::MemoryPool::device)->total();
  EXPECT_LE(highest, peak);
  EXPECT_GT(highest, peak / 100 * 98);
}

TEST(Chrome, OddNamesAndMissingNumbersStayValid) {
  store::Store store;
  ev::RunTables tables;
  tables.modules.push_back(
      {.id = 0, .parent = ev::kNoId, .path = "bad\"name\\\n\xff", .type = "T", .params = {}});
  tables.link_gbps = std::nan("");
  store.set_tables(0, tables);
  store::Chunk chunk;
  const auto add = [&](std::uint64_t at, ev::EventKind kind, ev::StreamId stream, std::int64_t v0 = 0) {
    chunk.events.push_back({at, kind, stream, 0, 0, ev::kNoId, ev::kNoId, v0, 0});
  };
  add(10, ev::EventKind::step_begin, ev::StreamId::host);
  add(11, ev::EventKind::module_begin, ev::StreamId::compute);
  add(12, ev::EventKind::loss, ev::StreamId::host, std::bit_cast<std::int64_t>(std::nan("")));
  add(20, ev::EventKind::step_end, ev::StreamId::host);
  store.ingest(chunk);
  store::Chunk later;
  later.sequence = 1;
  later.dropped_before = 3;
  store.ingest(later);
  store.add_message(
      {.at_ns = 5, .rank = 0, .severity = ev::Severity::error, .text = "line\nline \"quoted\""});
  const json trace = exported(store);
  int open = 0;
  int gap = 0;
  for (const json& event : trace["traceEvents"]) {
    open += event.contains("args") && event["args"].contains("not_ended") ? 1 : 0;
    gap += event["cat"] == "gap" ? 1 : 0;
    EXPECT_NE(event["name"], "loss");
  }
  EXPECT_EQ(gap, 2);
  EXPECT_EQ(open + gap, 2);  // the module was cut at the gap: known no further
  EXPECT_NO_THROW((void)exported(store::Store()));
}

TEST(Chrome, FileAppearsWholeOrNotAtAll) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  const std::string path = (folder / "trace.json").string();
  write_chrome(path, store::make_synthetic_store({.steps = 1}));
  std::ifstream file(path);
  EXPECT_TRUE(json::parse(file).is_object());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  try {
    write_chrome((folder / "no/such/folder.json").string(), store::Store());
    ADD_FAILURE() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("no/such/folder.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardscope::exporter
