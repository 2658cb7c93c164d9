// Where buckets are cut and what each cut sends, against DeepSpeed's rule written down a second time (S8,
// S10, S11), over random layouts in which many gradients are larger than a bucket and span several ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "runtime/plan/partition.h"
#include "runtime/plan/stage12.h"
#include "tests/runtime/plan/gradient_reducer.h"

namespace shardscope::plan {
namespace {

/// Destination (-1: all ranks) and elements of a collective.
using testing_support::GradientReducer;
using Sent = std::pair<std::int64_t, std::int64_t>;

/// A gradient joins the bucket unless both together are larger than `limit`: then the bucket is reduced
/// first. One that is larger alone stays alone, because the next one finds the bucket too full. At a
/// reduction the bucket is divided into runs of one owner; the runs of a key (the owner, or one key for all)
/// are sent together, and whatever has been gathered is sent as soon as it is more than `limit`.
class Rule {
 public:
  Rule(std::int64_t partition, std::int64_t limit, bool all_reduce)
      : partition_(partition), limit_(limit), all_reduce_(all_reduce) {}

  void arrive(std::int64_t begin, std::int64_t elems) {
    if (elems_ + elems > limit_) reduce();
    grads_.emplace_back(begin, elems);
    elems_ += elems;
  }
  void reduce() {
    std::vector<Sent> runs;
    for (const auto& [begin, elems] : grads_) {
      for (std::int64_t at = begin; at < begin + elems;) {
        const std::int64_t owner = at / partition_;
        const std::int64_t end = std::min(begin + elems, (owner + 1) * partition_);
        if (!runs.empty() && runs.back().first == owner) {
          runs.back().second += end - at;
        } else {
          runs.emplace_back(owner, end - at);
        }
        at = end;
      }
    }
    std::vector<std::int64_t> keys;
    for (const Sent& run : runs) {
      const std::int64_t key = all_reduce_ ? -1 : run.first;
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    for (const std::int64_t key : keys) {
      std::int64_t gathered = 0;
      for (const Sent& run : runs) {
        if (!all_reduce_ && run.first != key) continue;
        gathered += run.second;
        if (gathered > limit_) sent.emplace_back(key, std::exchange(gathered, 0));
      }
      if (gathered > 0) sent.emplace_back(key, gathered);
    }
    grads_.clear();
    elems_ = 0;
  }

  std::vector<Sent> sent;

 private:
  const std::int64_t partition_, limit_;
  const bool all_reduce_;
  std::vector<std::pair<std::int64_t, std::int64_t>> grads_;
  std::int64_t elems_ = 0;
};

TEST(BucketCuts, AreThoseOfDeepSpeedForEveryGradientSize) {
  std::mt19937 random(20);
  const auto upto = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  std::int64_t extra_large = 0, spanning_cuts = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const auto world = static_cast<std::uint32_t>(upto(5));
    const std::int64_t limit = upto(120);
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(upto(12)));
    for (std::int64_t& size : sizes) size = upto(4) == 1 ? upto(400) : upto(40);
    const FlatLayout layout = make_flat_layout(sizes, world);
    for (const bool all_reduce : {false, true}) {
      Rule rule(layout.shard_elems, limit, all_reduce);
      GradientReducer reducer(layout, {.stage = 2,
                                       .bucket_elems = limit,
                                       .overlap_comm = trial % 2 == 0,
                                       .mode = all_reduce ? ReduceMode::multi_rank : ReduceMode::to_owners});
      std::vector<Sent> sent;
      const auto take = [&](const std::vector<DueFlush>& due) {
        for (const DueFlush& one : due) {
          extra_large += one.flush.reason == FlushReason::extra_large ? 1 : 0;
          spanning_cuts += one.collectives.size() > 1 ? 1 : 0;
          for (const ReduceCollective& c : one.collectives) {
            sent.emplace_back(c.op == ReduceCollective::Op::all_reduce ? -1 : std::int64_t{c.rank}, c.elems);
          }
        }
      };
      for (std::size_t i = sizes.size(); i-- > 0;) {  // backward's order
        rule.arrive(layout.param_offset[i], sizes[i]);
        take(reducer.gradient_ready(ParamId{static_cast<std::uint32_t>(i)}));
      }
      rule.reduce();
      take(reducer.end_backward());
      ASSERT_EQ(sent, rule.sent) << "trial " << trial << ", world " << world << ", bucket of " << limit
                                 << (all_reduce ? ", all-reduce" : ", to owners");
    }
  }
  EXPECT_GT(extra_large, 1000);
  EXPECT_GT(spanning_cuts, 1000);
}

}  // namespace
}  // namespace shardscope::plan
