// Batch sizes: what follows of those that are given, and which do not agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/runtime/config/parse_text.h"

namespace shardscope::config {
namespace {

using namespace test;
using ::testing::HasSubstr;

struct BatchCase {
  const char* text;
  std::int64_t train, micro, steps;
};

TEST(Config, BatchSizesFollowDeepSpeedsRules) {
  // World 4; deepspeed/runtime/config.py, _set_batch_related_parameters.
  const BatchCase cases[] = {
      {R"({"train_batch_size": 32})", 32, 8, 1},
      {R"({"train_micro_batch_size_per_gpu": 3})", 12, 3, 1},
      {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2})", 32, 2, 4},
      {R"({"train_batch_size": 32, "gradient_accumulation_steps": 4})", 32, 2, 4},
      {R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})", 24, 2, 3},
      {R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})",
       24, 2, 3},
      {R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"})", 16, 4, 1},
      {R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": "auto"})",
       8, 2, 1},
  };
  for (const BatchCase& expected : cases) {
    const TrainingConfig config = parse(expected.text);
    EXPECT_EQ(config.batch.train_batch_size, expected.train) << expected.text;
    EXPECT_EQ(config.batch.micro_batch_size, expected.micro) << expected.text;
    EXPECT_EQ(config.batch.accumulation_steps, expected.steps) << expected.text;
    EXPECT_EQ(config.zero.gradient_accumulation_steps, expected.steps);
  }
}

TEST(Config, InconsistentBatchSizesAreNamed) {
  EXPECT_THAT(error_of(R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 2})"),
              HasSubstr("30 is not micro batch x accumulation steps x ranks = 2 x 3 x 4"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 2})"), HasSubstr("train_batch_size"));
  EXPECT_THAT(error_of("{}"), HasSubstr("train_batch_size: missing"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 0})"), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace shardscope::config
