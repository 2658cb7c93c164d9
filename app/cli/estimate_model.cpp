#include "app/cli/estimate_model.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "app/cli/verb.h"
#include "runtime/base/open_file.h"
#include "runtime/plan/encoder_decoder.h"

namespace shardscope::cli {
namespace {

/// A whole number, in digits or like 2851e6, as in the documents.
std::int64_t parse_count(const char* option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || value > 9e15 ||
      value != std::floor(value)) {
    throw UserError(fmt::format("{} {}: not a number of parameters; give a whole number, for example "
                                "2851598336 or 2851e6",
                                option, text),
                    2);
  }
  return static_cast<std::int64_t>(value);
}

/// "Divide the size of the state_dict file by 4" (docs/zero.md M1).
std::int64_t params_of_weights(const ModelSource& source) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(source.weights, error);
  if (error)
    throw UserError(fmt::format("--state-dict {}: {}; give the file of the model's weights", source.weights,
                                error.message()));
  return static_cast<std::int64_t>(bytes) / source.weight_bytes;
}

/// Counts of a model that is only counted, not trained; nullopt for other names or files.
std::optional<plan::ParameterCounts> counts_of(const ModelSource& source, const std::string& text) {
  try {
    const auto shape =
        text.empty() ? plan::named_encoder_decoder(source.model) : plan::parse_encoder_decoder(text);
    return shape ? std::optional(plan::count_parameters(*shape)) : std::nullopt;
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("--model {}: {}", source.model, error.what()));
  }
}

}  // namespace

std::optional<plan::ModelPlan> take_model(ModelSource& source) {
  source.input.formula =
      source.formula == "doc" ? plan::EstimateFormula::doc : plan::EstimateFormula::deepspeed_0_19;
  if (source.model.empty()) {
    if (source.params.empty() == source.weights.empty()) {
      throw UserError(source.params.empty()
                          ? "--params: give the number of parameters, or a model with --model"
                          : "--state-dict: its size says how many parameters there are; leave out --params",
                      2);
    }
    source.input.params =
        source.weights.empty() ? parse_count("--params", source.params) : params_of_weights(source);
    if (source.input.params == 0) {
      throw UserError(
          source.weights.empty()
              ? "--params 0: a model without parameters needs no estimate; give a number above 0"
              : fmt::format("--state-dict {}: holds no weight; give the file of the model's weights",
                            source.weights),
          source.weights.empty() ? 2 : 1);
    }
    if (!source.largest_layer.empty()) {
      source.input.largest_layer_params = parse_count("--largest-layer", source.largest_layer);
      if (source.input.largest_layer_params > source.input.params) {
        throw UserError(fmt::format("--largest-layer {}: more than the {} parameters of the model",
                                    source.largest_layer, source.input.params),
                        2);
      }
    }
    return std::nullopt;
  }
  if (!source.params.empty() || !source.largest_layer.empty() || !source.weights.empty()) {
    throw UserError(fmt::format("--model {}: says how many parameters there are; leave out --params, "
                                "--largest-layer and --state-dict",
                                source.model),
                    2);
  }
  const auto take = [&](const plan::ParameterCounts& counts) {
    source.input.params = counts.params;
    source.input.largest_layer_params = counts.largest_layer;
    return std::nullopt;
  };
  if (const auto counts = counts_of(source, "")) return take(*counts);
  plan::ModelSpec spec;
  if (source.model.ends_with(".json")) {
    std::string text;
    try {
      text = base::read_file(source.model);
    } catch (const base::FileError& error) {
      throw UserError(fmt::format("--model {}: {}", source.model, error.what()));
    }
    if (const auto counts = counts_of(source, text)) return take(*counts);
    try {
      spec = plan::parse_model_spec(text);
    } catch (const std::invalid_argument& error) {
      throw UserError(fmt::format("--model {}: {}", source.model, error.what()));
    }
  } else {
    try {
      spec = plan::named_model(source.model);
    } catch (const std::invalid_argument& error) {
      throw UserError(error.what(), 2);
    }
  }
  plan::ModelPlan model = plan::build_model_plan(std::move(spec));
  const plan::EstimateInput of_model = plan::estimate_input(model);
  source.input.params = of_model.params;
  source.input.largest_layer_params = of_model.largest_layer_params;
  return model;
}

}  // namespace shardscope::cli
