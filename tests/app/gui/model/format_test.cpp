#include "app/gui/model/format.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardscope::gui {
namespace {

TEST(Format, SignificantDigits) {
  EXPECT_EQ(significant(3e-4, 4), "0.0003");
  EXPECT_EQ(significant(2.71828, 4), "2.718");
  EXPECT_EQ(significant(std::nan(""), 4), kMissing);
}

TEST(Format, DurationsHaveThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(duration(0).text(), "0 ns");
  EXPECT_EQ(duration(999).text(), "999 ns");
  EXPECT_EQ(duration(1'420'000).text(), "1.42 ms");
  EXPECT_EQ(duration(14'240'000).text(), "14.2 ms");
  EXPECT_EQ(duration(312'400'000).text(), "312 ms");
  EXPECT_EQ(duration(-1'420'000).text(), "-1.42 ms");
  EXPECT_EQ(duration(3'661'000'000'000).text(), "1:01:01 h");
}

TEST(Format, NeverPrintsAThousandOfAUnit) {
  for (const std::int64_t ns : {999'600, 999'499, 999'999'999, 9'996, 99'960}) {
    EXPECT_EQ(duration(ns).number.find("1000"), std::string::npos) << ns << ": " << duration(ns).text();
  }
  EXPECT_EQ(bytes(1023 * 1024).unit, "MiB");
}

TEST(Format, BytesAreBinary) {
  EXPECT_EQ(bytes(512).text(), "512 B");
  EXPECT_EQ(bytes(1536).text(), "1.50 KiB");
  EXPECT_EQ(bytes(std::int64_t{3} << 30).text(), "3.00 GiB");
}

TEST(Format, MissingIsShownAsMissing) {
  EXPECT_EQ(milliseconds(std::nullopt).text(), kMissing);
  EXPECT_EQ(percent(std::nullopt).text(), kMissing);
  EXPECT_EQ(decimal(NAN, 3), kMissing);
  EXPECT_NE(percent(0.0).text(), kMissing);
}

TEST(Format, PathsAreShortenedFromTheLeft) {
  EXPECT_EQ(short_path("transformer.h.3.attn", 8), "h.3.attn");
  EXPECT_EQ(short_path("transformer.h.3.attn", 7), "attn") << "no number in front";
  EXPECT_EQ(short_path("transformer.h.3", 3), "h.3");
  EXPECT_EQ(short_path("transformer.h.3", 1), "3") << "the last component is its name";
  EXPECT_EQ(short_path("h.2.0.1", 6), "1");
  EXPECT_EQ(short_path("2.attn", 1), "attn");
  EXPECT_EQ(short_path("transformer", 3), "transformer");
  EXPECT_EQ(tail_path("transformer.h.3.attn"), "h.3.attn");
  EXPECT_EQ(tail_path("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(tail_path("h.1.qkv"), "h.1.qkv") << "the name of a list is no model's";
}

TEST(Format, GroupsDigitsByThree) {
  EXPECT_EQ(grouped(442368), "442\u00A0368");
  EXPECT_EQ(grouped(-1000), "-1\u00A0000");
  EXPECT_EQ(grouped(999), "999");
}

}  // namespace
}  // namespace shardscope::gui
