// Times of frames and of their parts.
#include "app/gui/model/frame_times.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace shardscope::gui {
namespace {

/// The words of the line that begins with a name.
std::vector<std::string> line_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name, 0) != 0) continue;
    std::istringstream rest(line.substr(name.size()));
    std::vector<std::string> words;
    for (std::string word; rest >> word;) words.push_back(word);
    return words;
  }
  return {};
}

TEST(FrameTimes, QuantilesAreOfWholeFrames) {
  FrameTimes times;
  EXPECT_EQ(times.quantile(0.5), 0);
  for (const float ms : {3.0F, 1.0F, 2.0F}) times.add(ms);
  EXPECT_EQ(times.quantile(0), 1);
  EXPECT_EQ(times.quantile(0.5), 2);
  EXPECT_EQ(times.quantile(1), 3);
  EXPECT_EQ(times.parts_text(), "");
}

TEST(FrameTimes, APartIsCountedInTheFramesThatHaveIt) {
  FrameTimes times;
  times.add_part("timeline", 1);
  times.add_part("memory", 2);
  times.add_part("timeline", 1);
  times.add(5);
  times.add_part("timeline", 4);
  times.add(9);
  const std::string text = times.parts_text();
  EXPECT_EQ(line_of(text, "timeline"), (std::vector<std::string>{"2", "2.000", "2.000", "4.000", "4.000"}));
  // Not drawn in the second frame, which was the worst.
  EXPECT_EQ(line_of(text, "memory"), (std::vector<std::string>{"1", "2.000", "2.000", "2.000", "0.000"}));
  EXPECT_EQ(line_of(text, "the rest"), (std::vector<std::string>{"2", "1.000", "1.000", "5.000", "5.000"}));
}

TEST(FrameTimes, ThePartWithTheLongestTimeComesFirst) {
  FrameTimes times;
  times.add_part("often", 2);
  times.add(2);
  times.add_part("often", 2);
  times.add_part("once", 7);
  times.add(9);
  const std::string text = times.parts_text();
  EXPECT_LT(text.find("once"), text.find("often"));
}

/// After hours of CPU time too.
TEST(FrameTimes, ACpuTimeIsInNanoseconds) {
  const double hours = 10 * 3'600'000.0;
  EXPECT_GT(hours + 1e-6, hours) << "the least difference, in ms";
  static_assert(std::is_same_v<decltype(thread_cpu_ms()), double>);
  const double began = thread_cpu_ms();
  double now = began;
  while (now == began) now = thread_cpu_ms();
  EXPECT_LT(now - began, 1);
}

TEST(FrameTimes, KeepsTheNewestFrames) {
  FrameTimes times;
  times.add(1000);
  for (int i = 0; i < 5000; ++i) times.add(1);
  EXPECT_LE(times.size(), 4096U);
  EXPECT_EQ(times.quantile(1), 1);
}

}  // namespace
}  // namespace shardscope::gui
