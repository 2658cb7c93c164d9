// Pairs of .npy arrays: inputs x[rows, input_width] and labels y[rows, output_width].
#include <algorithm>
#include <filesystem>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/data/dataset.h"
#include "runtime/data/npy.h"

namespace shardscope::data {
namespace {

class Vectors final : public Dataset {
 public:
  Vectors(const std::string& x_path, const std::string& y_path, std::int64_t input_width,
          std::int64_t output_width, const StreamOptions& options)
      : x_path_(x_path), x_(x_path), y_(y_path) {
    check_width(x_path, x_, input_width, "input");
    check_width(y_path, y_, output_width, "output");
    if (x_.rows() != y_.rows()) {
      throw DataError("data: " + x_path + " has " + std::to_string(x_.rows()) + " rows, but " + y_path +
                      " has " + std::to_string(y_.rows()));
    }
    if (x_.rows() == 0) throw DataError("data: " + x_path + " has no rows");
    // The ranks divide the rows, so that each value is checked before the first step.
    const auto first = [&](std::uint32_t rank) {
      const auto ranks = static_cast<std::int64_t>(options.world);
      return x_.rows() / ranks * rank + std::min<std::int64_t>(x_.rows() % ranks, rank);
    };
    check_finite(x_, first(options.rank), first(options.rank + 1));
    check_finite(y_, first(options.rank), first(options.rank + 1));
  }

  [[nodiscard]] std::int64_t samples() const override { return x_.rows(); }
  [[nodiscard]] std::int64_t length(std::int64_t /*index*/) const override { return 1; }
  void read(std::int64_t index, std::int64_t row, HostBatch& batch) const override {
    const auto width = static_cast<std::size_t>(x_.width());
    const auto labels = static_cast<std::size_t>(y_.width());
    x_.read(index, std::span(batch.inputs).subspan(static_cast<std::size_t>(row) * width, width));
    y_.read(index, std::span(batch.labels).subspan(static_cast<std::size_t>(row) * labels, labels));
  }
  [[nodiscard]] std::string describe() const override {
    return std::to_string(x_.rows()) + " vectors of width " + std::to_string(x_.width()) + " from " + x_path_;
  }
  [[nodiscard]] std::uint64_t fingerprint() const override {
    return base::hash64(static_cast<std::uint64_t>(x_.rows()) * 1000003U +
                        static_cast<std::uint64_t>(x_.width()));
  }

 private:
  static void check_finite(const NpyArray& array, std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(array.width()));
    for (std::int64_t i = begin; i < end; ++i) array.read(i, row);
  }
  static void check_width(const std::string& path, const NpyArray& array, std::int64_t wanted,
                          const char* what) {
    if (array.width() == wanted) return;
    throw DataError("data: " + path + ": its rows have width " + std::to_string(array.width()) +
                    ", but the model's " + what + " width is " + std::to_string(wanted));
  }
  std::string x_path_;
  NpyArray x_;
  NpyArray y_;
};

}  // namespace

std::unique_ptr<Dataset> open_vectors(const std::string& path, std::int64_t input_width,
                                      std::int64_t output_width, const StreamOptions& options) {
  const std::size_t comma = path.find(',');
  std::string x = path.substr(0, comma);
  std::string y = comma == std::string::npos ? "" : path.substr(comma + 1);
  std::error_code ignored;
  if (comma == std::string::npos && std::filesystem::is_directory(path, ignored)) {
    x = (std::filesystem::path(path) / "x.npy").string();
    y = (std::filesystem::path(path) / "y.npy").string();
  }
  if (y.empty()) {
    throw DataError("data: " + path +
                    ": a model of vectors reads two arrays; give \"x.npy,y.npy\" or a folder with both");
  }
  return std::make_unique<Vectors>(x, y, input_width, output_width, options);
}

}  // namespace shardscope::data
