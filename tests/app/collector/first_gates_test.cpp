// The first gate at which ranks differ is found, however late a rank comes.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/collector/collector.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

void pass(Rank& rank, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& numbers_and_modules) {
  std::vector<Event> events;
  const std::int64_t begin = monotonic_now_ns();
  for (const auto& [number, module] : numbers_and_modules)
    events.push_back(event_of(EventKind::gate, begin + number, StreamId::host, number, module,
                              static_cast<std::uint8_t>(GateKind::pre_forward)));
  rank.link->push(std::move(events), 0, begin, begin + 100, 25);
  rank.settle();
}

/// The warning about gates; empty if there is none yet.
std::string said(const Collector& collector) {
  std::string found;
  collector.read([&](const store::Store& store) {
    for (const auto& message : store.messages())
      if (message.text.find("ranks pass different gates") != std::string::npos) found = message.text;
  });
  return found;
}

TEST(FirstGates, OfARankThatComesAfterOthersHavePassedThemAreCompared) {
  Collector collector(local());
  Rank early(collector.publish_endpoint(), 0, 2);
  pass(early, {{1, 0}, {2, 0}, {3, 1}});
  Rank late(collector.publish_endpoint(), 1, 2);
  pass(late, {{1, 0}, {2, 1}});
  pass(early, {{4, 0}});
  pass(late, {{3, 0}, {4, 1}});
  ASSERT_TRUE(eventually([&] { return !said(collector).empty(); }));
  EXPECT_NE(
      said(collector).find("as gate 2 rank 0 passed before the forward of Root, rank 1 passed before the "
                           "forward of fc"),
      std::string::npos)
      << said(collector);
}

}  // namespace
}  // namespace shardscope::collector
