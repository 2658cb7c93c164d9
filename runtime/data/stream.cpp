#include "runtime/data/stream.h"

#include <algorithm>
#include <span>

#include "runtime/base/checksum.h"
#include "runtime/base/hash.h"
#include "runtime/data/dataset.h"
#include "runtime/data/permutation.h"

namespace shardscope::data {
namespace {

/// See [Note: sampling].
class SampledStream final : public BatchStream {
 public:
  SampledStream(std::unique_ptr<Dataset> data, const plan::ModelSpec& model, const StreamOptions& options)
      : data_(std::move(data)), model_(model), options_(options) {}

  void next(HostBatch& batch) override {
    shape(batch, options_.micro_batch);
    const std::int64_t B = options_.micro_batch;
    advance(B * options_.rank);
    for (std::int64_t row = 0; row < B; ++row) {
      data_->read(order_(state_.position), row, batch);
      advance(1);
    }
    advance(B * (options_.world - 1 - options_.rank));
  }

  [[nodiscard]] StreamState state() const override { return state_; }
  void restore(StreamState state) override {
    if (state.epoch < 0 || state.position < 0 || state.position >= data_->samples()) {
      throw DataError("data: cannot continue at sample " + std::to_string(state.position) + " of epoch " +
                      std::to_string(state.epoch) + ": the data has " + std::to_string(data_->samples()) +
                      " samples; continue with the data the run began with");
    }
    state_ = state;
    order_ = Permutation(data_->samples(), options_.seed, state_.epoch);
  }
  [[nodiscard]] std::int64_t samples() const override { return data_->samples(); }
  [[nodiscard]] std::string describe() const override { return data_->describe(); }
  [[nodiscard]] std::uint64_t fingerprint() const override { return data_->fingerprint(); }
  [[nodiscard]] std::uint64_t sample_checksum() const override {
    constexpr std::int64_t kMost = 64;
    const std::int64_t samples = data_->samples();
    const std::int64_t taken = std::min(samples, kMost);
    HostBatch one;
    shape(one, 1);
    std::uint64_t sum = 0;
    const auto add = [&sum](const auto& values) {
      sum = base::hash64(sum ^ base::checksum(std::as_bytes(std::span(values))));
    };
    for (std::int64_t i = 0; i < taken; ++i) {
      // The first and the last one among them.
      data_->read(
          taken == 1 ? 0 : (samples - 1) / (taken - 1) * i + (samples - 1) % (taken - 1) * i / (taken - 1), 0,
          one);
      add(one.tokens);
      add(one.targets);
      add(one.inputs);
      add(one.labels);
    }
    return sum;
  }

 private:
  void advance(std::int64_t samples) {
    state_.position += samples;
    if (state_.position < data_->samples()) return;
    state_.epoch += state_.position / data_->samples();
    state_.position %= data_->samples();
    order_ = Permutation(data_->samples(), options_.seed, state_.epoch);
  }

  void shape(HostBatch& batch, std::int64_t samples) const {
    batch.B = samples;
    if (model_.input == plan::InputKind::tokens) {
      batch.T = options_.context;
      batch.tokens.resize(static_cast<std::size_t>(batch.B * batch.T));
      batch.targets.resize(batch.tokens.size());
    } else {
      batch.T = 1;
      batch.inputs.resize(static_cast<std::size_t>(batch.B * model_.input_width));
      batch.labels.resize(static_cast<std::size_t>(batch.B * model_.output_width));
    }
  }

  std::unique_ptr<Dataset> data_;
  plan::ModelSpec model_;
  StreamOptions options_;
  StreamState state_;
  Permutation order_{data_->samples(), options_.seed, 0};
};

}  // namespace

std::unique_ptr<BatchStream> open_stream(const plan::ModelSpec& model, const StreamOptions& given) {
  StreamOptions options = given;
  if (options.micro_batch < 1)
    throw DataError("data: the micro-batch is " + std::to_string(options.micro_batch) +
                    "; it must be at least 1");
  if (options.world < 1 || options.rank >= options.world) {
    throw DataError("data: there is no rank " + std::to_string(options.rank) + " among " +
                    std::to_string(options.world));
  }
  const bool tokens = model.input == plan::InputKind::tokens;
  if (tokens) {
    if (options.context == 0) options.context = model.context;
    if (options.context < 1 || options.context > model.context) {
      throw DataError("data: sequences of " + std::to_string(options.context) +
                      " tokens do not fit the model's context of " + std::to_string(model.context));
    }
  }
  constexpr const char* kGolden = "golden:";
  const bool golden = options.path.rfind(kGolden, 0) == 0;
  if (golden && options.part != Part::all) {
    throw DataError("data: " + options.path +
                    " has no end of which a part could be held out for evaluation; give --eval-data, e.g. " +
                    options.path + ", or set shardscope.eval_interval to 0");
  }
  if (golden) return make_golden_stream(options.path.substr(7), model, options);
  if (tokens && options.path.empty())
    throw DataError("data: " + model.name +
                    " reads tokens; give a text file, a folder or a .bin file of tokens");
  std::unique_ptr<Dataset> data;
  if (tokens)
    data = open_token_windows(options.path, options.context, model.vocabulary);
  else if (options.path.empty())
    data = make_linear_map(model.input_width, model.output_width);
  else
    data = open_vectors(options.path, model.input_width, model.output_width, options);
  if (options.part != Part::all) data = make_part(std::move(data), options.part, options.held_out);
  return std::make_unique<SampledStream>(std::move(data), model, options);
}

}  // namespace shardscope::data
