// T5's models against the numbers of parameters that their authors' checkpoints have.
#include "runtime/plan/encoder_decoder.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::plan {
namespace {

constexpr const char* kSmall =
    R"({"is_encoder_decoder": true, "vocab_size": 32128, "d_model": 512, "d_ff": 2048, "num_heads": 8, "d_kv": 64, "num_layers": 6)";

TEST(EncoderDecoder, CountsWhatTheCheckpointsHold) {
  const std::vector<std::pair<std::string, std::int64_t>> published{{"t5-small", 60'506'624},
                                                                    {"t5-base", 222'903'552},
                                                                    {"t5-large", 737'668'096},
                                                                    {"t5-3b", 2'851'598'336},
                                                                    {"t5-11b", 11'307'321'344}};
  for (const auto& [name, params] : published) {
    const auto shape = named_encoder_decoder(name);
    ASSERT_TRUE(shape) << name;
    EXPECT_EQ(count_parameters(*shape).params, params) << name;
  }
  EXPECT_EQ(count_parameters(*named_encoder_decoder("t5-large")).largest_layer, 32'899'072);
  EXPECT_FALSE(named_encoder_decoder("gpt2"));
}

TEST(EncoderDecoder, ReadsAConfiguration) {
  const auto shape = parse_encoder_decoder(std::string(kSmall) + "}");
  ASSERT_TRUE(shape);
  EXPECT_EQ(count_parameters(*shape).params, 60'506'624);
  // flan-t5-small: gated, 8 layers, 6 heads, d_ff 1024, an output of its own: 76,961,152.
  const auto flan = parse_encoder_decoder(
      R"({"is_encoder_decoder": true, "vocab_size": 32128, "d_model": 512, "d_ff": 1024, "num_heads": 6, "d_kv": 64,
          "num_layers": 8, "num_decoder_layers": 8, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})");
  EXPECT_EQ(count_parameters(*flan).params, 76'961'152);
  EXPECT_FALSE(parse_encoder_decoder(R"({"root": {}})"));
  EXPECT_FALSE(parse_encoder_decoder("not json"));
}

TEST(EncoderDecoder, NamesAWrongKey) {
  const auto error_of = [](const std::string& more) -> std::string {
    try {
      (void)parse_encoder_decoder(kSmall + more);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_NE(error_of(R"(, "d_kv": 0})").find("d_kv: 0"), std::string::npos);
  EXPECT_NE(error_of(R"(, "num_decoder_layers": 1e9})").find("num_decoder_layers"), std::string::npos);
  EXPECT_NE(error_of(R"(, "d_ff": "big"})").find("d_ff: \"big\""), std::string::npos);
  try {
    (void)parse_encoder_decoder(R"({"is_encoder_decoder": true})");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "vocab_size: is not there; it is needed");
  }
}

}  // namespace
}  // namespace shardscope::plan
