// Parameter counts of encoder-decoder transformers (T5's architecture) in closed form, for the estimates in
// DeepSpeed's documents ("t5-3b", "t5-large"). This runtime does not train such models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::plan {

/// As in the model's config.json (Raffel et al. 2020; transformers' T5Config has the names in brackets).
struct EncoderDecoderShape {
  std::int64_t vocabulary = 32128;     ///< [vocab_size]
  std::int64_t hidden = 512;           ///< [d_model]
  std::int64_t feed_forward = 2048;    ///< [d_ff]
  std::int64_t heads = 8;              ///< [num_heads]
  std::int64_t head_width = 64;        ///< [d_kv]
  std::int64_t encoder_layers = 6;     ///< [num_layers]
  std::int64_t decoder_layers = 6;     ///< [num_decoder_layers]
  std::int64_t relative_buckets = 32;  ///< of positions, one table per stack [relative_attention_num_buckets]
  bool gated = false;                  ///< two input matrices per feed-forward ("gated-gelu")
  bool tied_output = true;             ///< the output is the embedding [tie_word_embeddings]
};

/// "t5-small", "t5-base", "t5-large", "t5-3b", "t5-11b".
[[nodiscard]] std::optional<EncoderDecoderShape> named_encoder_decoder(const std::string& name) noexcept;

/// Shape from the text of a config.json with "is_encoder_decoder": true; keys that do not count parameters
/// are ignored. nullopt for any other model. Throws std::invalid_argument naming key, value and valid range.
[[nodiscard]] std::optional<EncoderDecoderShape> parse_encoder_decoder(const std::string& json_text);

struct ParameterCounts {
  std::int64_t params = 0;         ///< shared ones once
  std::int64_t largest_layer = 0;  ///< largest number of direct parameters of a module
};
/// No biases; each layer and each stack ends in a norm of `hidden`; the first layer of a stack has the table
/// of relative positions.
[[nodiscard]] ParameterCounts count_parameters(const EncoderDecoderShape& shape) noexcept;

}  // namespace shardscope::plan
