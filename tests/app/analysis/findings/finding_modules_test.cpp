// Findings name the modules with most of their cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

enum class Says : std::uint8_t { parts, statuses, nothing };

/// Ten steps of 20 ms on two ranks. Gathers of as many layers take `ms` each, one after the other
/// and with nothing beside them; the first layer's gather runs for 1 ms beside computation.
std::string evidence(const std::vector<std::int64_t>& ms, Says says, const std::string& device = "cpu") {
  const auto layers = static_cast<std::uint32_t>(ms.size());
  RunBuilder run(2, 3, "FSDP2 (PyTorch 2.15.0)");
  run.on(device);
  run.change_tables([&](ev::RunTables& tables) {
    tables.modules = {{0, ev::kNoId, "", "Root", {}, true}};
    tables.params.clear();
    for (std::uint32_t i = 0; i < layers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      tables.modules.push_back({i + 1, 0, name, "Linear", {i}, true});
      tables.params.push_back({i, name + ".weight", "f32", {1000}, 1000, 500, 0, {i + 1}, false});
    }
  });
  std::uint32_t sequence = 0;
  for (std::uint32_t step = 0; step < 10; ++step) {
    const std::int64_t begin = step * 20 * kMs;
    std::int64_t at = begin + kMs;
    for (std::uint32_t layer = 0; layer < layers; ++layer, ++sequence) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        if (says == Says::parts)
          run.instant(rank, at, EventKind::collective_part, StreamId::host, sequence, layer);
        if (says == Says::statuses)
          run.instant(rank, at, EventKind::param_status, StreamId::gather, layer, layer + 1, 100 + sequence,
                      ev::status_code(static_cast<std::uint8_t>(plan::ParamStatus::in_flight),
                                      ev::StatusCause::fetch),
                      1000);
        run.span(rank, at, at + ms[layer] * kMs, EventKind::collective_begin, StreamId::gather, sequence,
                 100 + sequence, kGatherOp, 1000, 4000);
      }
      at += ms[layer] * kMs;
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      run.span(rank, begin, begin + 2 * kMs, EventKind::module_begin, StreamId::compute, 1, step);
      run.span(rank, at, begin + 20 * kMs, EventKind::module_begin, StreamId::compute, 1, step);
      run.span(rank, begin, begin + 20 * kMs, EventKind::step_begin, StreamId::host, step);
    }
  }
  const store::Store& store = run.build();
  const std::vector<Finding> all = find(store, summarize(store));
  const auto found = std::ranges::find(all, "exposed_communication", &Finding::id);
  if (found != all.end()) return found->evidence;
  std::string others = "other findings:";
  for (const Finding& other : all) others += " " + other.id + " (" + other.title + ")";
  return others;
}

TEST(FindingModules, TheWorstTwoWithTheirExposedTime) {
  for (const Says says : {Says::parts, Says::statuses}) {
    const std::string text = evidence({2, 2, 1}, says);
    EXPECT_NE(
        text.find(" Longest exposed collectives, with waiting for other ranks: layer1 (2.0 of 4.0 ms of a "
                  "step, in the last typical ones), layer0 (1.0 ms)."),
        std::string::npos)
        << text;
  }
}

TEST(FindingModules, AnotherThatIsSmallIsNotNamed) {
  const std::string text = evidence({1, 4, 0}, Says::parts);
  EXPECT_NE(text.find("ranks: layer1 (4.0 of 4.0 ms of a step, in the last typical ones)."),
            std::string::npos)
      << text;
}

/// The first two of equal ones are not most of the time, and the text has what they are a part of.
TEST(FindingModules, NineEqualOnesHaveTheirPart) {
  const std::string text = evidence({1, 1, 1, 1, 1, 1, 1, 1, 1}, Says::parts);
  EXPECT_NE(text.find("ranks: layer1 (1.0 of 8.0 ms of a step, in the last typical ones), layer2 (1.0 ms)."),
            std::string::npos)
      << text;
}

TEST(FindingModules, NothingIsNamedThatWasNotRecorded) {
  EXPECT_EQ(evidence({2, 2, 1}, Says::nothing).find("Longest"), std::string::npos);
  // Spans of modules and collectives are the host's there.
  EXPECT_EQ(evidence({2, 2, 1}, Says::parts, "cuda:0").find("Longest"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::analysis
