// The text of a file: what is a value, what is a key, and where in it a message points.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/runtime/config/parse_text.h"

namespace shardscope::config {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(Config, SyntaxErrorsNameLineAndColumn) {
  EXPECT_THAT(error_of("{\n  \"train_batch_size\": 8,\n  \"fp16\": {,}\n}"),
              HasSubstr("ds.json:3:12: not valid JSON"));
  EXPECT_THAT(error_of(""), HasSubstr("ds.json:1:1"));
  EXPECT_THAT(error_of("{\"a\": 1, \"a\": 2}"), HasSubstr("given twice"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("nested deeper"));
}

TEST(Config, CommentsAreReadOver) {
  const std::string text =
      "// a run, \"quoted\" {\n{ /* two\n lines */ \"train_batch_size\": 8, // ranks: 4\n"
      "  \"zero_optimization\"/*:*/: {\"stage\": 2/**/, // }\n    \"overlap_comm\": true}\n} // end";
  const TrainingConfig config = parse(text);
  EXPECT_EQ(config.batch.train_batch_size, 8);
  EXPECT_EQ(config.zero.stage, 2U);
  EXPECT_TRUE(config.zero.overlap());
  // "//" inside a string is no comment.
  EXPECT_EQ(
      parse(R"({"train_batch_size": 8, "_why": "see https://example.org /* x"})").batch.micro_batch_size, 2);
  // Messages still count the lines and columns of the file as it is.
  std::string wrong = text;
  wrong.replace(wrong.find("true"), 4, "1");
  EXPECT_THAT(error_of(wrong), HasSubstr("ds.json:5:5: zero_optimization.overlap_comm: is 1"));
  EXPECT_THAT(error_of("{\"a\": /* 1\n */ 1, /**/ \"a\": 2}"), HasSubstr("ds.json:1:2: a: is given twice"));
  // The parser ends a comment at a carriage return too.
  EXPECT_EQ(parse("{ // here\r\"train_batch_size\": 8}").batch.train_batch_size, 8);
  EXPECT_THAT(error_of("{ // here\n  /* no end"), HasSubstr("ds.json:2:"));
  EXPECT_THAT(error_of("{ // here\n  /* there */ \"a\" 1}"), HasSubstr("ds.json:2:19: not valid JSON"));
}

// The parser takes a zero byte for the end of the text: what follows would be ignored.
TEST(Config, AZeroByteIsRefusedWhereItStands) {
  const std::string zero(1, '\0');
  const std::string text = R"({"train_batch_size": 8})";
  for (const std::string& wrong :
       {text + zero, text + zero + zero, text + "\n" + zero + R"(, "optimizer": {}})",
        "{ // here" + zero + R"("train_batch_size": 8})"}) {
    EXPECT_THAT(error_of(wrong), HasSubstr("not valid JSON: holds a zero byte"));
  }
  EXPECT_THAT(error_of(text + "\n" + zero), HasSubstr("ds.json:2:1: "));
}

// Where DeepSpeed's default is None, null says it; elsewhere it is no value.
TEST(Config, NullIsTheDefaultOnlyWhereDeepSpeedHasIt) {
  const auto zero = [](const std::string& key) {
    return R"({"train_batch_size": 8, "zero_optimization": {"stage": 1, )" + key + "}}";
  };
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "zero_optimization": {"stage": null}})"),
              HasSubstr("zero_optimization.stage: is null; give a value, or leave the key out"));
  for (const char* key : {"reduce_scatter", "reduce_bucket_size", "leaf_module", "mics_shard_size"}) {
    EXPECT_THAT(error_of(zero('"' + std::string(key) + "\": null")),
                HasSubstr(std::string(key) + ": is null"));
  }
  for (const char* key :
       {"optimizer", "scheduler", "zero_optimization", "gradient_clipping", "fp16", "shardscope"}) {
    EXPECT_THAT(error_of(R"({"train_batch_size": 8, ")" + std::string(key) + "\": null}"),
                HasSubstr(std::string(key) + ": is null"));
  }
  for (const char* key :
       {"overlap_comm", "offload_param", "offload_optimizer", "zenflow", "zeropp_loco_param"}) {
    EXPECT_EQ(parse(zero('"' + std::string(key) + "\": null")).zero.stage, 1U) << key;
  }
  EXPECT_EQ(parse(R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": null,
                      "gradient_accumulation_steps": null, "communication_data_type": null,
                      "data_types": {"grad_accum_dtype": null}, "flops_profiler": null})")
                .batch.micro_batch_size,
            2);
}

TEST(Config, ANumberBeyondItsRangeIsRefusedWithItsKey) {
  const auto zero = [](const std::string& size) {
    return "{\"train_batch_size\": 8,\n \"zero_optimization\": {\"reduce_bucket_size\": " + size + "}}";
  };
  EXPECT_EQ(parse(zero("5e8")).zero.reduce_bucket_size, 500'000'000);
  EXPECT_EQ(parse(zero("9223372036854775807")).zero.reduce_bucket_size,
            std::numeric_limits<std::int64_t>::max());
  for (const char* size : {"1e30", "9223372036854775808", "18446744073709551616", "9.3e18"}) {
    EXPECT_THAT(error_of(zero(size)),
                ::testing::AllOf(HasSubstr("ds.json:2:24: zero_optimization.reduce_bucket_size: is "),
                                 HasSubstr("but must be at most 9223372036854775807")))
        << size;
  }
  EXPECT_THAT(error_of(zero("-1e30")), HasSubstr("must be at least 1"));
  // Beyond a double: the parser has no value to show.
  EXPECT_EQ(
      error_of(zero("1e999")),
      "ds.json:2:46: zero_optimization.reduce_bucket_size: is 1e999, which is beyond every number that a "
      "configuration can hold; give a smaller one");
  EXPECT_THAT(error_of(R"({"_a": "1e999", /* 1e999 */ "train_batch_size": 8, "optimizer": {"type": "Adam",
                           "params": {"betas": [0.9, -1e400]}}})"),
              HasSubstr("optimizer.params.betas[1]: is -1e400, which is beyond"));
}

TEST(Config, FloatsWithoutAFractionAreCounts) {
  EXPECT_EQ(parse(R"({"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 5e8}})")
                .zero.reduce_bucket_size,
            500'000'000);
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 1.5}})"),
              HasSubstr("whole number"));
}

TEST(Config, UnknownKeysNameTheNearestOne) {
  const std::string text =
      "{\n  \"train_batch_size\": 8,\n  \"zero_optimization\": {\n    \"overlap_com\": true\n  }\n}";
  EXPECT_THAT(
      error_of(text),
      HasSubstr("ds.json:4:5: zero_optimization.overlap_com: unknown key; did you mean \"overlap_comm\"?"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "optimzer": {}})"),
              HasSubstr("did you mean \"optimizer\"?"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "qqqqqqqqqqqq": 1})"), HasSubstr("docs/configuration.md"));
}

}  // namespace
}  // namespace shardscope::config
