// NumPy's .npy files (numpy.lib.format, versions 1.0 to 3.0), two-dimensional and floating point. Foreign
// input: every size is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/mapped_file.h"

namespace shardscope::data {

class NpyArray {
 public:
  /// Shape [rows, width]; a one-dimensional file has width 1. '<f4', '<f8' and '<f2', C order. Throws
  /// DataError.
  explicit NpyArray(const std::string& path);
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t width() const noexcept { return width_; }
  /// Row `row` as fp32; out.size() is width(). Throws DataError on a NaN or an infinity, naming row and
  /// column.
  void read(std::int64_t row, std::span<float> out) const;

 private:
  std::string path_;
  base::MappedFile file_;
  std::size_t data_begin_ = 0;
  std::size_t element_bytes_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t width_ = 1;
};

}  // namespace shardscope::data
