// What grows with what goes wrong in a run stays within bounds, and says what it leaves out.
#include "app/store/run_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "app/store/gap_text.h"
#include "app/store/losses.h"

namespace shardscope::store {
namespace {

Gap dropped(std::uint32_t rank, std::int64_t at_ns, std::uint64_t events) {
  return {.rank = rank, .begin_ns = at_ns, .end_ns = at_ns + 5, .events = events, .shed = 1};
}

TEST(GapList, KeepsEachOfAFew) {
  GapList list;
  for (int i = 0; i < 1000; ++i) list.add(dropped(0, i * 10, 3));
  ASSERT_EQ(list.gaps().size(), 1000U);
  EXPECT_EQ(list.gaps()[7].begin_ns, 70);
  EXPECT_EQ(what_is_missing(list.gaps()[7]), "2 events dropped by the rank, 1 event shed by a collector");
}

TEST(GapList, OfMillionsKeepsTheNumbersAndTheTimes) {
  constexpr std::int64_t kGaps = 1'000'000;
  GapList list;
  for (std::int64_t i = 0; i < kGaps; ++i) {
    list.add(dropped(static_cast<std::uint32_t>(i % 3), i * 10, 2));
    if (i % 100'000 == 0) {
      list.add({.rank = 1, .begin_ns = i * 10, .end_ns = i * 10 + 1, .events = 4, .damaged = true});
      list.add({.rank = 2, .begin_ns = i * 10, .end_ns = i * 10 + 1});  // an unknown number
    }
    ASSERT_LE(list.gaps().size(), GapList::kMost);
  }
  std::uint64_t events = 0, shed = 0, stretches = 0;
  int damaged = 0, unknown = 0;
  std::int64_t last_begin[3] = {-1, -1, -1};
  for (const Gap& gap : list.gaps()) {
    damaged += gap.damaged ? 1 : 0;
    unknown += gap.events == 0 ? 1 : 0;
    if (gap.damaged || gap.events == 0) continue;
    events += gap.events;
    shed += gap.shed;
    stretches += gap.stretches;
    EXPECT_GT(gap.begin_ns, last_begin[gap.rank]);  // neighbours, not any two
    last_begin[gap.rank] = gap.begin_ns;
    EXPECT_EQ(gap.events, 2U * gap.stretches);
  }
  EXPECT_EQ(events, 2U * kGaps);
  EXPECT_EQ(shed, std::uint64_t{kGaps});
  EXPECT_EQ(stretches, std::uint64_t{kGaps});
  EXPECT_EQ(damaged, 10);
  EXPECT_EQ(unknown, 10);
  EXPECT_THAT(what_is_missing(list.gaps()[0]), testing::HasSubstr(" stretches"));
}

TEST(MessageList, ForgetsTheOldestInfosFirstAndSaysHowMany) {
  constexpr std::size_t kBytes = 64 << 10;
  MessageList list(kBytes);
  list.add({.at_ns = 1, .rank = 3, .severity = ev::Severity::error, .text = "rank 3 is gone"});
  constexpr std::uint64_t kTexts = 10'000;
  for (std::uint64_t i = 0; i < kTexts; ++i) {
    const auto at = static_cast<std::int64_t>(i) + 2;
    list.add({.at_ns = at, .severity = ev::Severity::info, .text = "step " + std::to_string(i)});
  }
  std::size_t bytes = 0;
  std::uint64_t reported = 0;
  for (const Message& message : list.messages()) {
    bytes += sizeof message + message.text.size();
    reported += message.stands_for;
  }
  EXPECT_LE(bytes, kBytes);
  EXPECT_EQ(reported + list.messages().size() - 1, kTexts + 1);  // the one that says so is not one of them
  EXPECT_EQ(list.messages().front().text, "rank 3 is gone");
  EXPECT_EQ(list.messages().back().text, "step " + std::to_string(kTexts - 1));
  EXPECT_THAT(list.messages()[1].text, testing::StartsWith(std::to_string(reported) + " texts"));
  EXPECT_EQ(list.messages()[1].severity, ev::Severity::warning);
}

TEST(MessageList, EvenErrorsStayWithinTheBound) {
  constexpr std::size_t kBytes = 64 << 10;
  MessageList list(kBytes);
  for (std::int64_t i = 0; i < 10'000; ++i) {
    list.add({.at_ns = i, .severity = ev::Severity::error, .text = std::string(100, 'x')});
  }
  EXPECT_LE(list.messages().size() * (sizeof(Message) + 100), kBytes);
  EXPECT_EQ(list.messages().back().at_ns, 9'999);
}

}  // namespace
}  // namespace shardscope::store
