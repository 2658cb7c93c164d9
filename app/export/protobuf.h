// An encoder for the part of the protobuf wire format that a trace needs (protobuf.dev, "Encoding").
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::exporter {

class Protobuf {
 public:
  void varint(unsigned field, std::uint64_t value) {
    raw(static_cast<std::uint64_t>(field) << 3);
    raw(value);
  }
  void fixed64(unsigned field, std::uint64_t value) {
    raw(static_cast<std::uint64_t>(field) << 3 | 1U);
    for (int i = 0; i < 8; ++i, value >>= 8) bytes_ += static_cast<char>(value & 0xFFU);
  }
  void real(unsigned field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void string(unsigned field, std::string_view text) {
    raw(static_cast<std::uint64_t>(field) << 3 | 2U);
    raw(text.size());
    bytes_ += text;
  }
  void message(unsigned field, const Protobuf& body) { string(field, body.bytes_); }
  void append(const Protobuf& fields) { bytes_ += fields.bytes_; }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  void raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7FU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace shardscope::exporter
