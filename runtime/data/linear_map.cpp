// Generated vectors with labels from a linear map, for any widths.
#include <cmath>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/data/dataset.h"

namespace shardscope::data {
namespace {

constexpr std::int64_t kSamples = 4096;
// Streams of `uniform`; sample i has stream kInputs + i.
constexpr std::uint64_t kMap = 3'000'000;
constexpr std::uint64_t kInputs = 3'000'001;

class LinearMap final : public Dataset {
 public:
  LinearMap(std::int64_t input_width, std::int64_t output_width)
      : in_(static_cast<std::size_t>(input_width)),
        out_(static_cast<std::size_t>(output_width)),
        map_(in_ * out_) {
    const double scale = 1 / std::sqrt(static_cast<double>(in_));
    for (std::size_t i = 0; i < map_.size(); ++i) map_[i] = base::uniform(kMap, i) * scale;
  }

  [[nodiscard]] std::int64_t samples() const override { return kSamples; }
  [[nodiscard]] std::int64_t length(std::int64_t /*index*/) const override { return 1; }
  void read(std::int64_t index, std::int64_t row, HostBatch& batch) const override {
    float* const x = batch.inputs.data() + static_cast<std::size_t>(row) * in_;
    float* const y = batch.labels.data() + static_cast<std::size_t>(row) * out_;
    const std::uint64_t stream = kInputs + static_cast<std::uint64_t>(index);
    for (std::size_t j = 0; j < in_; ++j) x[j] = static_cast<float>(base::uniform(stream, j));
    for (std::size_t k = 0; k < out_; ++k) {
      double sum = 0;
      for (std::size_t j = 0; j < in_; ++j) sum += map_[k * in_ + j] * x[j];
      y[k] = static_cast<float>(sum);
    }
  }
  [[nodiscard]] std::string describe() const override {
    return std::to_string(kSamples) + " generated vectors of width " + std::to_string(in_) +
           ", labels by a linear map";
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return base::hash64(in_ * 1000003U + out_); }

 private:
  std::size_t in_, out_;
  std::vector<double> map_;  // [out, in]
};

}  // namespace

std::unique_ptr<Dataset> make_linear_map(std::int64_t input_width, std::int64_t output_width) {
  return std::make_unique<LinearMap>(input_width, output_width);
}

}  // namespace shardscope::data
