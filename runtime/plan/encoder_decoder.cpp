#include "runtime/plan/encoder_decoder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace shardscope::plan {
namespace {

/// `most` of each key is chosen so that no sum below exceeds 63 bits.
void read(const nlohmann::json& json, const char* key, std::int64_t least, std::int64_t most,
          std::int64_t& value) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return;
  if (!found->is_number_integer() || *found < least || *found > most) {
    throw std::invalid_argument(std::string(key) + ": " + found->dump() + "; give a whole number from " +
                                std::to_string(least) + " to " + std::to_string(most));
  }
  value = found->get<std::int64_t>();
}

}  // namespace

std::optional<EncoderDecoderShape> named_encoder_decoder(const std::string& name) noexcept {
  EncoderDecoderShape shape;
  if (name == "t5-small") return shape;
  shape.feed_forward = 3072, shape.hidden = 768, shape.heads = 12;
  shape.encoder_layers = shape.decoder_layers = 12;
  if (name == "t5-base") return shape;
  shape.feed_forward = 4096, shape.hidden = 1024, shape.heads = 16;
  shape.encoder_layers = shape.decoder_layers = 24;
  if (name == "t5-large") return shape;
  shape.feed_forward = 16384, shape.heads = 32, shape.head_width = 128;
  if (name == "t5-3b") return shape;
  shape.feed_forward = 65536, shape.heads = 128;
  if (name == "t5-11b") return shape;
  return std::nullopt;
}

std::optional<EncoderDecoderShape> parse_encoder_decoder(const std::string& json_text) {
  const nlohmann::json json = nlohmann::json::parse(json_text, nullptr, false);
  if (!json.is_object() || !json.contains("is_encoder_decoder") || json["is_encoder_decoder"] != true)
    return std::nullopt;
  EncoderDecoderShape shape;
  for (const char* key : {"vocab_size", "d_model", "d_ff", "num_heads", "d_kv", "num_layers"}) {
    if (!json.contains(key) || json[key].is_null())
      throw std::invalid_argument(std::string(key) + ": is not there; it is needed");
  }
  read(json, "vocab_size", 1, 1 << 27, shape.vocabulary);
  read(json, "d_model", 1, 1 << 20, shape.hidden);
  read(json, "d_ff", 1, 1 << 22, shape.feed_forward);
  read(json, "num_heads", 1, 1 << 12, shape.heads);
  read(json, "d_kv", 1, 1 << 12, shape.head_width);
  read(json, "num_layers", 0, 1 << 13, shape.encoder_layers);
  shape.decoder_layers = shape.encoder_layers;
  read(json, "num_decoder_layers", 0, 1 << 13, shape.decoder_layers);
  read(json, "relative_attention_num_buckets", 0, 1 << 16, shape.relative_buckets);
  const auto activation = json.find("feed_forward_proj");
  if (activation != json.end() && activation->is_string())
    shape.gated = activation->get<std::string>().starts_with("gated");
  const auto tied = json.find("tie_word_embeddings");
  if (tied != json.end() && tied->is_boolean()) shape.tied_output = tied->get<bool>();
  return shape;
}

ParameterCounts count_parameters(const EncoderDecoderShape& s) noexcept {
  const std::int64_t projection = s.hidden * s.heads * s.head_width;  // one of query, key, value, output
  const std::int64_t input = s.hidden * s.feed_forward;
  const std::int64_t feed_forward = (s.gated ? 3 : 2) * input;
  const std::int64_t encoder_layer = 4 * projection + feed_forward + 2 * s.hidden;
  const std::int64_t decoder_layer = 8 * projection + feed_forward + 3 * s.hidden;
  const std::int64_t table = s.relative_buckets * s.heads;
  const std::int64_t embedding = s.vocabulary * s.hidden;
  ParameterCounts counts;
  counts.params = embedding * (s.tied_output ? 1 : 2) + s.encoder_layers * encoder_layer +
                  s.decoder_layers * decoder_layer + 2 * s.hidden + (s.encoder_layers > 0 ? table : 0) +
                  (s.decoder_layers > 0 ? table : 0);
  counts.largest_layer = std::max({embedding, projection, input, s.hidden, table});
  return counts;
}

}  // namespace shardscope::plan
