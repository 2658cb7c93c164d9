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
    for (std::uint32_t rank = 0; rank < options_.world; ++rank) {
      if (rank == options_.rank) {
        take(rows_of(rank), batch);
      } else {
        advance(rows_of(rank));
      }
    }
    ++state_.micro_step;
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
    std::uint64_t sum = 0;
    const auto add = [&sum](const auto& values) {
      sum = base::hash64(sum ^ base::checksum(std::as_bytes(std::span(values))));
    };
    for (std::int64_t i = 0; i < taken; ++i) {
      // The first and the last one among them.
      const std::int64_t sample =
          taken == 1 ? 0 : (samples - 1) / (taken - 1) * i + (samples - 1) % (taken - 1) * i / (taken - 1);
      shape(one, 1, data_->length(sample));
      data_->read(sample, 0, one);
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

  [[nodiscard]] std::int64_t rows_of(std::uint32_t rank) const {
    const plan::MicroBatches& sizes = options_.micro_batches;
    return sizes.shapes.empty() ? options_.micro_batch : sizes.shape(state_.micro_step, rank).samples;
  }

  /// This rank's micro-batch: the next B samples.
  void take(std::int64_t B, HostBatch& batch) {
    const plan::MicroBatches& sizes = options_.micro_batches;
    taken_.clear();
    std::int64_t longest = 0;
    for (std::int64_t row = 0; row < B; ++row) {
      taken_.push_back(order_(state_.position));
      longest = std::max(longest, data_->length(taken_.back()));
      advance(1);
    }
    const std::int64_t multiple = sizes.pad_to_multiple_of;
    std::int64_t T = std::min((longest + multiple - 1) / multiple * multiple, options_.context);
    if (!sizes.shapes.empty()) T = sizes.shape(state_.micro_step, options_.rank).tokens;
    shape(batch, B, T);
    for (std::int64_t row = 0; row < B; ++row) data_->read(taken_[static_cast<std::size_t>(row)], row, batch);
  }

  void shape(HostBatch& batch, std::int64_t samples, std::int64_t T) const {
    batch.B = samples;
    if (model_.input == plan::InputKind::tokens) {
      batch.T = T;
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
  std::vector<std::int64_t> taken_;  ///< samples of the micro-batch in progress
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
  const plan::MicroBatches& sizes = options.micro_batches;
  if (const std::string wrong = plan::validate(sizes, model, options.context); !wrong.empty()) {
    throw DataError("data: " + wrong);
  }
  const bool documents = sizes.packing != plan::Packing::fixed;
  constexpr const char* kGolden = "golden:";
  const bool golden = options.path.rfind(kGolden, 0) == 0;
  if (golden && options.part != Part::all) {
    throw DataError("data: " + options.path +
                    " has no end of which a part could be held out for evaluation; give --eval-data, e.g. " +
                    options.path + ", or set shardscope.eval_interval to 0");
  }
  if (golden && documents) {
    throw DataError("data: " + options.path +
                    " has no documents; set shardscope.micro_batches.packing to \"fixed\"");
  }
  if (golden) return make_golden_stream(options.path.substr(7), model, options);
  if (tokens && options.path.empty())
    throw DataError("data: " + model.name +
                    " reads tokens; give a text file, a folder or a .bin file of tokens");
  std::unique_ptr<Dataset> data;
  if (documents)
    data = open_documents(options.path, options.context, model.vocabulary, sizes);
  else if (tokens)
    data = open_token_windows(options.path, sizes.largest({0, options.context}).tokens, model.vocabulary);
  else if (options.path.empty())
    data = make_linear_map(model.input_width, model.output_width);
  else
    data = open_vectors(options.path, model.input_width, model.output_width, options);
  if (options.part != Part::all) data = make_part(std::move(data), options.part, options.held_out);
  return std::make_unique<SampledStream>(std::move(data), model, options);
}

}  // namespace shardscope::data
