// Memory by category where events are missing: the pool's bytes are those that the rank counted, at every
// recorded change.
#include "app/store/memory_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace shardscope::store {
namespace {

using ev::MemoryCategory;
using Change = MemoryIndex::Change;

constexpr std::array kCategories = {MemoryCategory::param_shard, MemoryCategory::param_gathered,
                                    MemoryCategory::activation, MemoryCategory::grad_full,
                                    MemoryCategory::temporary};

/// What a rank really did: what it holds is freed as what it was allocated as.
class Rank {
 public:
  explicit Rank(unsigned seed) : random_(seed) {}
  Change next() {
    at_ns_ += 10;
    if (held_.empty() || random_() % 9 < 5) {
      const auto category = kCategories[random_() % kCategories.size()];
      const auto bytes = static_cast<std::int64_t>(1 + random_() % 1000);
      held_.push_back({category, bytes});
      return count(category, bytes);
    }
    const std::size_t which = random_() % held_.size();
    const auto [category, bytes] = held_[which];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
    return count(category, -bytes);
  }
  std::uint32_t random() { return static_cast<std::uint32_t>(random_()); }

 private:
  Change count(MemoryCategory category, std::int64_t delta) {
    total_ += delta;
    return {.at_ns = at_ns_, .delta = delta, .after = total_, .category = category};
  }
  std::mt19937 random_;
  std::vector<std::pair<MemoryCategory, std::int64_t>> held_;
  std::int64_t at_ns_ = 0, total_ = 0;
};

class Dropped : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(, Dropped, testing::Range(0U, 40U));

TEST_P(Dropped, TotalsAreThoseThatTheRankCounted) {
  Rank rank(GetParam());
  const std::uint32_t most_missing = 1 + rank.random() % 60;  // events of a gap
  MemoryIndex index;
  std::vector<Change> kept;
  bool gaps = false;
  for (int batch = 0; batch < 200; ++batch) {
    for (std::uint32_t n = rank.random() % 40; n > 0; --n) {
      if (rank.random() % 12 == 0) {
        for (std::uint32_t missing = rank.random() % most_missing + 1; missing > 0; --missing) rank.next();
        index.gap();
        gaps = true;
      }
      kept.push_back(rank.next());
      index.push(kept.back());
    }
    if (rank.random() % 5 == 0) {  // events are found missing, and none came since
      rank.next();
      index.gap();
    }
    index.settle();
  }
  ASSERT_TRUE(gaps);
  std::size_t wrong = 0;
  std::int64_t highest = 0;
  for (const Change& change : kept) {
    const MemorySample sample = index.at(change.at_ns);
    wrong += sample.total() == change.after ? 0 : 1;
    highest = std::max({highest, change.after, change.after - change.delta});
    for (const std::int64_t bytes : sample.bytes) EXPECT_GE(bytes, 0);
  }
  EXPECT_EQ(wrong, 0U) << "of " << kept.size();
  EXPECT_EQ(index.peak()->total(), highest);
}

TEST_P(Dropped, NothingIsCorrectedWhereThreadsOnlyCountInAnotherOrder) {
  Rank rank(GetParam());
  MemoryIndex index;
  for (int batch = 0; batch < 50; ++batch) {
    std::vector<Change> changes;
    for (int n = 0; n < 30; ++n) changes.push_back(rank.next());
    for (std::size_t i = 1; i + 2 < changes.size(); i += 3) {
      std::swap(changes[i], changes[i + 1]);
      std::swap(changes[i].at_ns, changes[i + 1].at_ns);
    }
    for (const Change& change : changes) index.push(change);
    if (batch == 20) index.gap();  // of what was no change of memory
    index.settle();
  }
  EXPECT_EQ(index.corrections().size(), 0U);
}

TEST(MemoryIndex, WhatIsFreedAsAnotherCategoryWasOfThatCategory) {
  MemoryIndex index;
  index.push({.at_ns = 10, .delta = 100, .after = 100, .category = MemoryCategory::param_shard});
  index.settle();
  index.gap();  // activations of 40 bytes
  index.push({.at_ns = 30, .delta = 5, .after = 145, .category = MemoryCategory::temporary});
  index.settle();
  const auto of = [&](std::int64_t at, MemoryCategory category) {
    return index.at(at).bytes[static_cast<std::size_t>(category)];
  };
  EXPECT_EQ(of(30, MemoryCategory::other), 40);
  index.push({.at_ns = 50, .delta = -30, .after = 115, .category = MemoryCategory::activation});
  index.settle();
  EXPECT_EQ(index.at(50).total(), 115);
  EXPECT_EQ(of(50, MemoryCategory::other), 10);
  EXPECT_EQ(of(50, MemoryCategory::activation), 0);
  EXPECT_EQ(of(50, MemoryCategory::temporary), 5);
}

TEST(MemoryIndex, AStretchThatIsReadAgainHasTheSameCorrections) {
  Rank rank(7);
  MemoryIndex index;
  for (int n = 0; n < 50; ++n) index.push(rank.next());
  index.settle();
  index.begin_next_stretch();
  const MemoryIndex::Keyframe begin = index.keyframe();
  std::vector<Change> kept;
  for (int gap = 0; gap < 10; ++gap) {
    for (int missing = 0; missing < 20; ++missing) rank.next();
    index.gap();
    for (int n = 0; n < 7; ++n) {
      kept.push_back(rank.next());
      index.push(kept.back());
    }
    index.settle();
  }
  ASSERT_FALSE(index.corrections().empty());
  MemoryIndex again(begin, index.corrections());
  for (const Change& change : kept) again.push(change);
  again.settle();
  for (const Change& change : kept) {
    EXPECT_EQ(again.at(change.at_ns).bytes, index.at(change.at_ns).bytes) << change.at_ns;
    EXPECT_EQ(again.at(change.at_ns).total(), change.after);
  }
  EXPECT_EQ(again.peak()->total(), index.peak()->total());
}

}  // namespace
}  // namespace shardscope::store
