// Little-endian bytes and variable-length integers, with every read checked against the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardscope::store {

/// Zigzag: 0, -1, 1, -2, 2 ... become 0, 1, 2, 3, 4 ..., so that values near 0 of either sign take few bytes
/// as varints. A varint is LEB128: seven bits a byte, lowest first, the high bit set on all but the last; 1
/// to 10 bytes.
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1U);
}

static_assert(std::endian::native == std::endian::little, "integers are read eight bytes at once");

/// Appends to a byte vector.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}

  // Lowest byte first, on any machine.
  template <typename T>
  void fixed(T value) {
    auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8)
      out_.push_back(static_cast<std::byte>(bits & 0xFFU));
  }
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      out_.push_back(static_cast<std::byte>((value & 0x7FU) | 0x80U));
      value >>= 7;
    }
    out_.push_back(static_cast<std::byte>(value));
  }

 private:
  std::vector<std::byte>& out_;
};

/// Reads what ByteWriter wrote. Reading past the end or a malformed integer throws std::runtime_error
/// with `what` of the constructor, which names the part that is damaged.
class ByteReader {
 public:
  ByteReader(const std::byte* data, std::size_t bytes, const char* what)
      : at_(data), end_(data + bytes), what_(what) {}

  template <typename T>
  [[nodiscard]] T fixed() {
    if (left() < sizeof(T)) fail("ends too early");
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits |= static_cast<std::uint64_t>(*at_++) << (8 * i);
    return static_cast<T>(bits);
  }
  [[nodiscard]] std::uint64_t varint() {
    if (at_ == end_) fail("ends too early");
    auto byte = static_cast<std::uint64_t>(*at_++);
    if (byte < 0x80) return byte;
    std::uint64_t value = byte & 0x7FU;
    for (unsigned shift = 7; shift < 64; shift += 7) {
      if (at_ == end_) fail("ends too early");
      byte = static_cast<std::uint64_t>(*at_++);
      if (shift == 63 && byte > 1) fail("holds an integer over 64 bits");
      value |= (byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    fail("holds an integer over 64 bits");
  }
  /// Calls `take(value)` for `count` consecutive integers.
  template <typename Take>
  void varints(std::size_t count, Take take) {
    const std::byte* at = at_;
    // An integer has ten bytes at most: farther from the end, none needs a bounds check. Eight at once,
    // because branches on varying lengths are mispredicted, which costs more than the computation.
    for (; count > 0 && end_ - at >= 10; --count) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, at, sizeof eight);
      // One byte.
      if ((eight & 0x80U) == 0) {
        ++at;
        take(eight & 0x7FU);
        continue;
      }
      // `stops`: the high bit of each of the eight bytes that ends an integer; the lowest set bit ends this
      // integer's.
      if (const std::uint64_t stops = ~eight & 0x8080808080808080U; stops != 0) {
        at += std::countr_zero(stops) / 8 + 1;
        // The bytes up to the last one, seven bits of each; neighbours are joined three times.
        std::uint64_t value = eight & (stops ^ (stops - 1)) & 0x7F7F7F7F7F7F7F7FU;
        // 7 bits in each of 8 bytes, then 14 in each of 4 pairs, 28 in each of 2 halves, 56 in all.
        value = (value & 0x007F007F007F007FU) | (value & 0x7F007F007F007F00U) >> 1;
        value = (value & 0x00003FFF00003FFFU) | (value & 0x3FFF00003FFF0000U) >> 2;
        value = (value & 0x000000000FFFFFFFU) | (value & 0x0FFFFFFF00000000U) >> 4;
        take(value);
        continue;
      }
      std::uint64_t value = 0;
      for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<std::uint64_t>(*at++);
        if (shift == 63 && byte > 1) fail("holds an integer over 64 bits");
        value |= (byte & 0x7FU) << shift;
        if (byte < 0x80) break;
      }
      take(value);
    }
    // The last few, within ten bytes of the end: each byte is checked.
    at_ = at;
    for (; count > 0; --count) take(varint());
  }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  void now_reading(const char* what) noexcept { what_ = what; }
  [[noreturn]] void fail(const char* how) const {
    throw std::runtime_error(std::string("chunk: ") + what_ + " " + how);
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
  const char* what_;
};

}  // namespace shardscope::store
