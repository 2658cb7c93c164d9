#include "runtime/data/npy.h"

#include <cctype>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/finite.h"
#include "runtime/base/float16.h"
#include "runtime/data/input_file.h"

namespace shardscope::data {
namespace {

/// The header is a Python dict literal; the three keys are found by name, which is all a writer may vary.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  std::string quoted(1, '\'');
  quoted.append(key).push_back('\'');
  std::size_t at = header.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  at = header.find(':', at);
  if (at == std::string_view::npos) return std::nullopt;
  at = header.find_first_not_of(' ', at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  return header.substr(at);
}

std::vector<std::int64_t> parse_shape(const std::string& path, std::string_view text) {
  if (text.empty() || text.front() != '(') fail_file(path, "its header has no shape");
  std::vector<std::int64_t> shape;
  std::size_t at = 1;
  while (at < text.size() && text[at] != ')') {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
      fail_file(path, "its shape is not a tuple of numbers");
    }
    std::int64_t extent = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
      extent = extent * 10 + (text[at++] - '0');
      if (extent > (std::int64_t{1} << 40)) fail_file(path, "its shape is too large");
    }
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

NpyArray::NpyArray(const std::string& path) : path_(path), file_(open_input(path)) {
  const std::span<const std::byte> bytes = file_.bytes();
  constexpr std::string_view kMagic = "\x93NUMPY";
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  if (bytes.size() < 12 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    fail_file(path, "is not a .npy file; write it with numpy.save");
  }
  const std::size_t length_bytes = byte(6) == 1 ? 2 : 4;
  std::size_t header_bytes = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) header_bytes |= byte(8 + i) << (8 * i);
  data_begin_ = 8 + length_bytes + header_bytes;
  if (data_begin_ > bytes.size()) fail_file(path, "is cut inside its header");
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + 8 + length_bytes, header_bytes);

  const auto type = value_of(header, "descr");
  const auto order = value_of(header, "fortran_order");
  const auto shape_value = value_of(header, "shape");
  if (!type || !order || !shape_value) fail_file(path, "its header lacks descr, fortran_order or shape");
  const std::string name(type->substr(0, 5));
  if (name == "'<f4'") {
    element_bytes_ = 4;
  } else if (name == "'<f8'") {
    element_bytes_ = 8;
  } else if (name == "'<f2'") {
    element_bytes_ = 2;
  } else {
    fail_file(path, "holds elements of type " + name + "; save it as float32");
  }
  if (order->substr(0, 5) != "False") fail_file(path, "is in Fortran order; save numpy.ascontiguousarray(x)");
  const std::vector<std::int64_t> shape = parse_shape(path, *shape_value);
  if (shape.empty() || shape.size() > 2) {
    fail_file(path, "has " + std::to_string(shape.size()) + " dimensions; [rows] or [rows, width] is needed");
  }
  rows_ = shape[0];
  width_ = shape.size() == 2 ? shape[1] : 1;
  // Otherwise a file without rows could claim any width, and the first batch would be allocated for it.
  if (rows_ == 0 || width_ == 0) {
    fail_file(path, "holds nothing: its shape is [" + std::to_string(rows_) + ", " + std::to_string(width_) +
                        "]; save at least one row");
  }
  std::int64_t needed = 0;
  if (__builtin_mul_overflow(rows_, width_, &needed) ||
      __builtin_mul_overflow(needed, static_cast<std::int64_t>(element_bytes_), &needed) ||
      static_cast<std::size_t>(needed) > bytes.size() - data_begin_) {
    fail_file(path, "has " + std::to_string(bytes.size() - data_begin_) +
                        " bytes of data, fewer than its shape [" + std::to_string(rows_) + ", " +
                        std::to_string(width_) + "] needs; the file is cut");
  }
}

void NpyArray::read(std::int64_t row, std::span<float> out) const {
  const std::byte* at =
      file_.bytes().data() + data_begin_ + static_cast<std::size_t>(row * width_) * element_bytes_;
  for (float& value : out) {
    if (element_bytes_ == 4) {
      std::memcpy(&value, at, 4);
    } else if (element_bytes_ == 8) {
      double wide = 0;
      std::memcpy(&wide, at, 8);
      value = static_cast<float>(wide);
    } else {
      std::uint16_t half = 0;
      std::memcpy(&half, at, 2);
      value = base::from_f16(half);
    }
    at += element_bytes_;
  }
  if (const auto bad = base::first_not_finite(out)) {
    fail_file(path_, "column " + std::to_string(*bad) + " of row " + std::to_string(row) + " is " +
                         base::not_finite_text(out[*bad]) +
                         " as fp32; every value must be a finite number, so leave such rows out");
  }
}

}  // namespace shardscope::data
