// Cuts an input into values, for targets whose input is a list of things rather than one file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace shardscope::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  [[nodiscard]] bool empty() const noexcept { return left_ == 0; }

  /// The next value; what is missing at the end is zero.
  template <typename T>
  [[nodiscard]] T number() {
    T value{};
    const std::size_t bytes = std::min(sizeof value, left_);
    std::memcpy(&value, data_, bytes);
    skip(bytes);
    return value;
  }
  /// A length in two bytes, then that many bytes, or as many as there are.
  [[nodiscard]] std::string_view block() {
    const std::size_t bytes = std::min<std::size_t>(number<std::uint16_t>(), left_);
    const std::string_view out(reinterpret_cast<const char*>(data_), bytes);
    skip(bytes);
    return out;
  }

 private:
  void skip(std::size_t bytes) {
    data_ += bytes;
    left_ -= bytes;
  }

  const std::uint8_t* data_;
  std::size_t left_;
};

}  // namespace shardscope::fuzz
