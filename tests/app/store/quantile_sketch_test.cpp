// Quantiles of a sketch against those of the values themselves.
#include "app/store/quantile_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace shardscope::store {
namespace {

std::vector<std::int64_t> values_of(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> one(13, 2), other(17, 0.1);
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(static_cast<std::int64_t>(i % 3 == 0 ? other(random) : one(random)));
  return out;
}

void expect_quantiles(const QuantileSketch& sketch, std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  ASSERT_EQ(sketch.count(), values.size());
  EXPECT_EQ(sketch.min_ns(), values.front());
  EXPECT_EQ(sketch.max_ns(), values.back());
  for (const double q : {0.0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    const auto exact =
        static_cast<double>(values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))]);
    EXPECT_NEAR(sketch.quantile(q), exact, QuantileSketch::kError * exact + 1e-6) << q;
  }
}

TEST(QuantileSketch, IsWithinItsErrorForEverySpreadOfValues) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    QuantileSketch sketch;
    const std::vector<std::int64_t> values = values_of(seed, 20'000);
    for (const std::int64_t value : values) sketch.add(value);
    expect_quantiles(sketch, values);
  }
  for (const std::int64_t value :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{1'000'000'007}, INT64_MAX / 2}) {
    QuantileSketch sketch;
    sketch.add(value, 5);
    expect_quantiles(sketch, std::vector<std::int64_t>(5, value));
  }
}

TEST(QuantileSketch, PartsAddUpToTheWholeAndComeBackAsWritten) {
  QuantileSketch whole, a, b;
  std::vector<std::int64_t> values = values_of(4, 10'000);
  values.push_back(0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    whole.add(values[i]);
    (i % 2 == 0 ? a : b).add(values[i]);
  }
  a.merge(b);
  a.merge(QuantileSketch());
  EXPECT_EQ(a.encode(), whole.encode());
  const QuantileSketch read = QuantileSketch::decode(a.encode());
  EXPECT_EQ(read.encode(), whole.encode());
  expect_quantiles(read, values);
  EXPECT_LT(whole.encode().size(), 1200U) << "whatever the number of values";
}

/// As counts of a damaged file may add up to.
TEST(QuantileSketch, CountsMoreThanCanBeAsTheMostThatCan) {
  QuantileSketch a, b;
  a.add(1000, UINT64_MAX - 1);
  b.add(1000, 10);
  a.merge(b);
  EXPECT_EQ(a.count(), UINT64_MAX);
  EXPECT_NEAR(a.quantile(0.5), 1000, 20);
}

TEST(QuantileSketch, RefusesWhatItDoesNotWrite) {
  EXPECT_THROW((void)QuantileSketch::decode(QuantileSketch().encode()), std::runtime_error) << "of nothing";
  QuantileSketch sketch;
  for (const std::int64_t value : values_of(5, 100)) sketch.add(value);
  const std::vector<std::byte> good = sketch.encode();
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_THROW((void)QuantileSketch::decode(std::span(good).first(cut)), std::runtime_error) << cut;
  std::mt19937_64 random(6);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bad = good;
    bad[random() % bad.size()] = static_cast<std::byte>(random());
    try {
      const QuantileSketch read = QuantileSketch::decode(bad);
      EXPECT_TRUE(std::isfinite(read.quantile(0.5)));
    } catch (const std::runtime_error&) {
    }
  }
}

}  // namespace
}  // namespace shardscope::store
