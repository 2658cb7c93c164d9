// What is alive at a time, and the four stages side by side.
#include "app/gui/model/alive_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "app/gui/model/names.h"
#include "app/gui/model/stage_memory.h"
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

/// So that a row can select its parameter or module.
TEST_F(Model, RowsOfOneOwnerNameIt) {
  const AliveMemory alive = alive_memory(data(), 0, ev::MemoryPool::device,
                                         data().memory_peak(0, ev::MemoryPool::device).value().at_ns);
  std::size_t named = 0;
  const std::function<void(const std::vector<AliveNode>&)> look = [&](const std::vector<AliveNode>& nodes) {
    for (const AliveNode& node : nodes) {
      look(node.children);
      if (node.owner == ev::kNoId || !node.children.empty()) continue;
      ++named;
      const bool param = owner_kind(node.category) == OwnerKind::param;
      const std::string name = param ? param_name(data(), node.owner) : module_name(data(), node.owner);
      EXPECT_TRUE(node.label == name || node.why.starts_with(name)) << node.label << " is " << name;
    }
  };
  look(alive_tree(*app_.run, 0, alive));
  EXPECT_GT(named, 10U);
}

TEST_F(Model, ByOwnerFirstTheSameBytesAreInBlocksThenCategories) {
  const AliveMemory alive = alive_memory(data(), 0, ev::MemoryPool::device,
                                         data().memory_peak(0, ev::MemoryPool::device).value().at_ns);
  const std::vector<AliveNode> nodes = alive_by_owner(*app_.run, 0, alive);
  ASSERT_FALSE(nodes.empty());
  std::int64_t sum = 0;
  bool block_found = false;
  for (const AliveNode& node : nodes) {
    sum += node.bytes;
    std::int64_t inside = 0;
    std::set<std::string> categories;
    for (const AliveNode& category : node.children) {
      inside += category.bytes;
      EXPECT_TRUE(categories.insert(category.label).second) << "a category comes once in a block";
      EXPECT_EQ(category.label, word(category.category));
      EXPECT_FALSE(category.children.empty());
    }
    EXPECT_EQ(node.children.empty() ? node.bytes : inside, node.bytes) << node.label;
    block_found |= categories.size() > 1;
  }
  EXPECT_TRUE(block_found) << "a block has states of several categories";
  EXPECT_EQ(sum, alive.total());
  EXPECT_TRUE(std::ranges::is_sorted(nodes, std::greater{}, &AliveNode::bytes));
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

}  // namespace
}  // namespace shardscope::gui
