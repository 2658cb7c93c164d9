// Generated data, the same as in the recorded DeepSpeed runs (tests/golden/losses.json, "data mlp" and "data
// gpt"), so that a run's losses can be compared with theirs.
#include <algorithm>

#include "runtime/base/hash.h"
#include "runtime/data/dataset.h"

namespace shardscope::data {
namespace {

class GoldenStream : public BatchStream {
 public:
  explicit GoldenStream(const StreamOptions& options) : options_(options) {}
  void next(HostBatch& batch) final {
    const plan::MicroBatches& sizes = options_.micro_batches;
    fill(batch, micro_,
         sizes.shapes.empty() ? plan::MicroBatchShape{options_.micro_batch, options_.context}
                              : sizes.shape(micro_, options_.rank));
    ++micro_;
  }
  [[nodiscard]] StreamState state() const final { return {0, micro_, micro_}; }
  void restore(StreamState state) final {
    if (state.epoch != 0 || state.position < 0)
      throw DataError("data: a generated stream has no epoch " + std::to_string(state.epoch));
    micro_ = state.position;
  }
  [[nodiscard]] std::int64_t samples() const final { return 0; }
  [[nodiscard]] std::string describe() const final { return "generated, " + options_.path; }
  [[nodiscard]] std::uint64_t fingerprint() const final {
    return base::hash64(static_cast<std::uint64_t>(options_.path.size()));
  }

 protected:
  virtual void fill(HostBatch& batch, std::int64_t micro, plan::MicroBatchShape shape) const = 0;
  [[nodiscard]] std::uint64_t stream_number(std::int64_t base, std::int64_t micro) const noexcept {
    return static_cast<std::uint64_t>(base + 1000 * micro + static_cast<std::int64_t>(options_.rank));
  }
  StreamOptions options_;

 private:
  std::int64_t micro_ = 0;
};

class GoldenMlp final : public GoldenStream {
 public:
  using GoldenStream::GoldenStream;

 private:
  void fill(HostBatch& batch, std::int64_t micro, plan::MicroBatchShape shape) const override {
    constexpr std::size_t kWidth = 10;
    const std::uint64_t stream = stream_number(1'000'000, micro);
    const auto rows = static_cast<std::size_t>(shape.samples);
    batch.B = shape.samples;
    batch.T = 1;
    batch.inputs.resize(rows * kWidth);
    batch.labels.resize(rows);
    for (std::size_t b = 0; b < rows; ++b) {
      double sum = 0;  // exact: ten multiples of 2^-23 below 1
      for (std::size_t j = 0; j < kWidth; ++j) {
        const double x = base::uniform(stream, kWidth * b + j);
        batch.inputs[kWidth * b + j] = static_cast<float>(x);
        sum += x;
      }
      batch.labels[b] = static_cast<float>(sum);
    }
  }
};

class GoldenGpt final : public GoldenStream {
 public:
  using GoldenStream::GoldenStream;

 private:
  void fill(HostBatch& batch, std::int64_t micro, plan::MicroBatchShape shape) const override {
    constexpr std::uint64_t kVocabulary = 59;
    const std::uint64_t stream = stream_number(2'000'000, micro);
    const auto rows = static_cast<std::size_t>(shape.samples);
    const auto width = static_cast<std::size_t>(shape.tokens);
    batch.B = shape.samples;
    batch.T = shape.tokens;
    batch.tokens.resize(rows * width);
    batch.targets.resize(rows * width);
    for (std::size_t b = 0; b < rows; ++b) {
      const std::uint64_t start = base::hash64((stream << 32) + 2 * b) % kVocabulary;
      const std::uint64_t stride = 1 + base::hash64((stream << 32) + 2 * b + 1) % 3;
      for (std::size_t k = 0; k <= width; ++k) {
        const auto token = static_cast<std::int32_t>((start + k * stride) % kVocabulary);
        if (k < width) batch.tokens[b * width + k] = token;
        if (k > 0) batch.targets[b * width + k - 1] = token;
      }
    }
  }
};

}  // namespace

std::unique_ptr<BatchStream> make_golden_stream(const std::string& name, const plan::ModelSpec& model,
                                                const StreamOptions& options) {
  auto require = [&](bool fits, const std::string& what) {
    if (!fits)
      throw DataError("data: golden:" + name + " needs " + what + ", which the model " + model.name +
                      " is not");
  };
  if (name == "mlp") {
    require(model.input == plan::InputKind::vectors && model.input_width == 10 && model.output_width == 1,
            "a model from vectors of width 10 to width 1");
    return std::make_unique<GoldenMlp>(options);
  }
  if (name == "gpt") {
    require(model.input == plan::InputKind::tokens && model.vocabulary >= 59,
            "a model of tokens with a vocabulary of 59 or more");
    return std::make_unique<GoldenGpt>(options);
  }
  throw DataError("data: golden:" + name + " is unknown; give golden:mlp or golden:gpt");
}

}  // namespace shardscope::data
