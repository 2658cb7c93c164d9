// Whether a rank failed, or was waited for until the others gave up: the finding names the cause of the two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/store/silences.h"
#include "tests/app/analysis/hang/hang_runs.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr const char* kTimedOut = "RuntimeError: Timed out waiting 6000ms for recv operation to complete";
constexpr const char* kClosed = "RuntimeError: Connection closed by peer";

/// Ranks 0 and 2 fail at 7 and 8 ms in a gather to which rank 1 never came.
struct Ended {
  const char* error = kTimedOut;
  std::int64_t gone_ns = 9 * kMs;  ///< when rank 1 was seen to be gone; 0: it was not
  std::int32_t exit_code = 0;      ///< of rank 1; 0: it never reported one
};

std::vector<Finding> findings_of(const Ended& ended) {
  RunBuilder run(3);
  gathers_fail(run);
  store::Store& store = run.build();
  for (const std::uint32_t rank : {0U, 2U}) {
    over(store, rank, 1);
    store::RankRow row = store.ranks()[rank];
    row.exit_message = ended.error;
    store.set_rank(row);
    store.add_message({.at_ns = 7 * kMs + rank,
                       .rank = rank,
                       .severity = ev::Severity::error,
                       .text = ended.error,
                       .stands_for = 0});
  }
  over(store, 1, ended.exit_code);
  store::RankRow row = store.ranks()[1];
  row.finished = false;
  store.set_rank(row);
  if (ended.gone_ns > 0) {
    store.add_message({.at_ns = ended.gone_ns,
                       .rank = 1,
                       .severity = ev::Severity::error,
                       .text = store::gone_message(1, "process 7"),
                       .stands_for = 0});
  }
  return find(store, summarize(store));
}

TEST(FindingEnds, ARankThatNeverCameIsTheCauseOfTheTimeOuts) {
  for (const Ended& ended : {Ended{}, Ended{.gone_ns = 0, .exit_code = 128 + 15}}) {
    const auto findings = findings_of(ended);
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].id, "hang");
    EXPECT_EQ(findings[0].rank, 1U);
    ASSERT_EQ(findings[0].explains.size(), 1U);
    EXPECT_TRUE(findings[0].explains[0].ends_with(std::string("then failed: ") + kTimedOut))
        << findings[0].explains[0];
    EXPECT_EQ(std::ranges::find(findings, "rank_failed", &Finding::id), findings.end());
  }
}

/// Ended by the launcher or by Ctrl-C after waits of milliseconds, in the middle of a healthy run; killed;
/// seen to be gone before the others gave up or failed because of it.
TEST(FindingEnds, ARankThatFailedByItselfIsTheFailure) {
  for (const Ended& ended :
       {Ended{.gone_ns = 4 * kMs}, Ended{.gone_ns = 0, .exit_code = 128 + 9}, Ended{.error = kClosed},
        Ended{.error = kClosed, .gone_ns = 0, .exit_code = 128 + 9},
        Ended{.error = kClosed, .gone_ns = 0, .exit_code = 128 + 15}}) {
    const auto findings = findings_of(ended);
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].id, "rank_failed") << ended.error << ended.gone_ns;
    EXPECT_EQ(findings[0].rank, 1U);
    EXPECT_EQ(std::ranges::find(findings, "hang", &Finding::id), findings.end());
  }
}

/// Its own time-out of something else, as of its loader.
TEST(FindingEnds, ATimeOutOutsideOfACollectiveIsARanksOwnFailure) {
  for (const bool of_loader : {false, true}) {
    RunBuilder run(3);
    gathers_fail(run);
    store::Store& store = run.build();
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      over(store, rank, 1);
      store::RankRow row = store.ranks()[rank];
      row.exit_message = rank == 1   ? "RuntimeError: DataLoader timed out after 5 seconds"
                         : of_loader ? kClosed
                                     : kTimedOut;
      store.set_rank(row);
    }
    const auto findings = find(store, summarize(store));
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].id, "rank_failed");
  }
}

}  // namespace
}  // namespace shardscope::analysis
