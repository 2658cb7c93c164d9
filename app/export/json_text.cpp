#include "app/export/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace shardscope::exporter {
namespace {

/// Length of the UTF-8 sequence at the begin of `text`; 0 if it is invalid (RFC 3629: no surrogates, no
/// overlong encodings).
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = utf8_length(text);
    if (length != 1) {
      out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
      text.remove_prefix(length == 0 ? 1 : length);
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escaped.data();
    } else {
      out += c;
    }
    text.remove_prefix(1);
  }
  out += '"';
}

bool append_json(std::string& out, double value) {
  if (!std::isfinite(value)) return false;
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  out.append(text.data(), end.ptr);
  return true;
}

void append_us(std::string& out, std::int64_t ns) {
  if (ns < 0) out += '-';
  const std::uint64_t all = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  out += std::to_string(all / 1000);
  std::array<char, 8> rest{};
  std::snprintf(rest.data(), rest.size(), ".%03u", static_cast<unsigned>(all % 1000));
  out += rest.data();
}

}  // namespace shardscope::exporter
