// A data set in two parts: one to train on, and its end, which training never sees.
#include <algorithm>
#include <utility>

#include "runtime/base/hash.h"
#include "runtime/data/dataset.h"

namespace shardscope::data {
namespace {

class DatasetPart final : public Dataset {
 public:
  DatasetPart(std::unique_ptr<Dataset> whole, Part part, std::int64_t begin, std::int64_t end)
      : whole_(std::move(whole)), part_(part), begin_(begin), end_(end) {}

  [[nodiscard]] std::int64_t samples() const override { return end_ - begin_; }
  [[nodiscard]] std::int64_t length(std::int64_t index) const override {
    return whole_->length(begin_ + index);
  }
  void read(std::int64_t index, std::int64_t row, HostBatch& batch) const override {
    whole_->read(begin_ + index, row, batch);
  }
  [[nodiscard]] std::string describe() const override {
    return whole_->describe() + "; of them " + std::to_string(samples()) +
           (part_ == Part::held_out ? " held out for evaluation" : " to train on");
  }
  [[nodiscard]] std::uint64_t fingerprint() const override {
    return base::hash64(base::hash64(whole_->fingerprint() ^ static_cast<std::uint64_t>(begin_)) ^
                        static_cast<std::uint64_t>(end_));
  }

 private:
  std::unique_ptr<Dataset> whole_;
  Part part_;
  std::int64_t begin_, end_;
};

}  // namespace

std::unique_ptr<Dataset> make_part(std::unique_ptr<Dataset> whole, Part part, double fraction) {
  const std::int64_t samples = whole->samples();
  const auto held_out = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(samples) * fraction), 1, samples);
  if (held_out == samples) {
    throw DataError(
        "data: " + whole->describe() + ": holding out " + std::to_string(held_out) +
        " for evaluation leaves none to train on; lower shardscope.eval_fraction or give --eval-data");
  }
  const std::int64_t middle = samples - held_out;
  const bool training = part == Part::training;
  return std::make_unique<DatasetPart>(std::move(whole), part, training ? 0 : middle,
                                       training ? middle : samples);
}

}  // namespace shardscope::data
