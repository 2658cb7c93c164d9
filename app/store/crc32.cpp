#include "app/store/crc32.h"

#include <array>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace shardscope::store {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78U;  // Castagnoli, reflected
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[t][b]: contribution of byte b to the remainder when t further bytes follow it. Table 0 is the usual
// one.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    tables[0][i] = value;
  }
  for (std::size_t t = 1; t < 8; ++t) {
    for (std::size_t i = 0; i < 256; ++i) {
      tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xFFU];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

// `crc` is the inverted remainder, as everywhere below.
std::uint32_t add_by_tables(const unsigned char* at, std::size_t bytes, std::uint32_t crc) noexcept {
  // Eight bytes per turn ("slicing by eight"): independent look-ups instead of a chain of eight.
  while (bytes >= 8) {
    std::uint64_t word = 0;
    for (unsigned i = 0; i < 8; ++i) word |= static_cast<std::uint64_t>(at[i]) << (8 * i);
    // The remainder so far is combined with the first four bytes.
    word ^= crc;
    crc = 0;
    // Linear over GF(2): the contributions of the eight bytes are looked up separately and combined by xor.
    for (unsigned i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xFFU];
    at += 8;
    bytes -= 8;
  }
  for (; bytes > 0; --bytes, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xFFU];
  return crc;
}

using Add = std::uint32_t (*)(const unsigned char*, std::size_t, std::uint32_t) noexcept;

#ifdef __x86_64__
[[gnu::target("sse4.2")]] std::uint32_t add_by_instruction(const unsigned char* at, std::size_t bytes,
                                                           std::uint32_t crc) noexcept {
  std::uint64_t wide = crc;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; bytes > 0; --bytes, ++at) crc = _mm_crc32_u8(crc, *at);
  return crc;
}

Add fastest() noexcept { return __builtin_cpu_supports("sse4.2") ? add_by_instruction : add_by_tables; }
#else
Add fastest() noexcept { return add_by_tables; }
#endif

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t seed) noexcept {
  static const Add add = fastest();
  return ~add(static_cast<const unsigned char*>(data), bytes, ~seed);
}

std::uint32_t crc32c_by_tables(const void* data, std::size_t bytes, std::uint32_t seed) noexcept {
  return ~add_by_tables(static_cast<const unsigned char*>(data), bytes, ~seed);
}

}  // namespace shardscope::store
