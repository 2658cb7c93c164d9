// Durations and sizes of the options about what a recording keeps.
#include "app/cli/retention_options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;

TEST(RetentionOptions, ReadsDurations) {
  EXPECT_EQ(duration_of("90"), 90 * kSecond_ns);
  EXPECT_EQ(duration_of("90s"), 90 * kSecond_ns);
  EXPECT_EQ(duration_of("250ms"), kSecond_ns / 4);
  EXPECT_EQ(duration_of("10m"), 600 * kSecond_ns);
  EXPECT_EQ(duration_of("10 min"), 600 * kSecond_ns);
  EXPECT_EQ(duration_of("1.5h"), 5400 * kSecond_ns);
  EXPECT_EQ(duration_of("7d"), 7 * 86'400 * kSecond_ns);
}

TEST(RetentionOptions, ReadsSizesWithTheirUnits) {
  EXPECT_EQ(size_of("1000B"), 1000U);
  EXPECT_EQ(size_of("500MB"), 500'000'000U);
  EXPECT_EQ(size_of("2GB"), 2'000'000'000U);
  EXPECT_EQ(size_of("1GiB"), std::uint64_t{1} << 30);
  EXPECT_EQ(size_of("0.5TiB"), std::uint64_t{1} << 39);
}

TEST(RetentionOptions, RefusesWhatIsNone) {
  for (const char* text : {"", "s", "-1s", "0", "10 parsecs", "1e99d", "nan", "1s2"})
    EXPECT_THROW(static_cast<void>(duration_of(text)), CLI::ValidationError) << text;
  for (const char* text : {"", "500", "MB", "-1MB", "0B", "1e99GB", "inf"})
    EXPECT_THROW(static_cast<void>(size_of(text)), CLI::ValidationError) << text;
}

/// The options of a verb as `words` set them.
RetentionOptions parsed(const std::string& words) {
  CLI::App verb;
  RetentionOptions options;
  add_retention_options(verb, options, nullptr);
  verb.parse(words);
  check(options);
  return options;
}

TEST(RetentionOptions, LimitsAreThoseGiven) {
  const store::Retention limits =
      parsed("--max-age 10m --max-size 2GB --moments 5 --moment-around 1m").limits;
  EXPECT_EQ(limits.max_age_ns, 600 * kSecond_ns);
  EXPECT_EQ(limits.max_bytes, 2'000'000'000U);
  EXPECT_EQ(limits.moments, 5U);
  EXPECT_EQ(limits.around_ns, 60 * kSecond_ns);
  EXPECT_FALSE(parsed("").limits.limited());
}

TEST(RetentionOptions, MomentsNeedALimitAndALimitRoom) {
  EXPECT_THROW(parsed("--moments 5"), UserError);
  EXPECT_THROW(parsed("--moment-triggers hang"), CLI::ValidationError) << "no trigger of this name";
  EXPECT_THROW(parsed("--max-size 7MB"), CLI::ValidationError);
  EXPECT_THROW(parsed("--max-size 500"), CLI::ValidationError) << "without a unit";
}

}  // namespace
}  // namespace shardscope::cli
