// Where spans are drawn that are shorter than a pixel.
#include "app/gui/model/span_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace shardscope::gui {
namespace {

// 4,000 spans side by side on 1,000 pixels: each stays at its place, and all of the row is drawn.
TEST(SpanPlaces, ShortSpansMoveNoneAfterThem) {
  SpanPlaces places(100, 1100);
  std::vector<bool> covered(1000);
  for (int i = 0; i < 4000; ++i) {
    const float begin = 100 + 0.25F * static_cast<float>(i);
    const std::optional<SpanPlaces::Place> place = places.next(begin, begin + 0.25F);
    if (!place) continue;
    ASSERT_LT(place->x0, begin + 1) << i;
    EXPECT_GE(place->x0, begin) << i;
    EXPECT_LE(place->x1, begin + 1) << i;
    covered[static_cast<std::size_t>(place->x0 - 100)] = true;
  }
  EXPECT_EQ(std::ranges::count(covered, false), 0);
}

// One long span after many short ones begins where it begins.
TEST(SpanPlaces, ALongSpanKeepsItsPlace) {
  SpanPlaces places(0, 1000);
  for (int i = 0; i < 300; ++i)
    (void)places.next(0.1F * static_cast<float>(i), 0.1F * static_cast<float>(i) + 0.1F);
  const std::optional<SpanPlaces::Place> place = places.next(500, 600);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->x0, 500);
  EXPECT_EQ(place->x1, 600);
}

TEST(SpanPlaces, EndAtTheEdgesOfTheRow) {
  SpanPlaces places(10, 20);
  const std::optional<SpanPlaces::Place> before = places.next(-5, 12);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->x0, 10);
  EXPECT_EQ(before->x1, 12);
  EXPECT_FALSE(places.next(10.8F, 11.4F)) << "within a pixel that is drawn";
  const std::optional<SpanPlaces::Place> last = places.next(19.5F, 40);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->x1, 20);
  EXPECT_FALSE(places.next(25, 30));
}

TEST(FewSpans, AreTwoOnFivePixels) {
  EXPECT_TRUE(few_spans(400, 1000));
  EXPECT_FALSE(few_spans(401, 1000));
}

}  // namespace
}  // namespace shardscope::gui
