#include "instrumentation/plain_text.h"

#include <cstdint>
#include <cstdio>

namespace shardscope::instrumentation {
namespace {

/// Treatment of a line break: written as \n, followed by two spaces (so that no line of a message looks like
/// output of the program itself), or kept.
enum class Breaks : std::uint8_t { shown, indented, kept };

/// One code point of UTF-8, or one byte that starts none (`valid` false).
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

/// The first character of `text`, which must not be empty. Invalid, as RFC 3629 demands: lead bytes 0x80 to
/// 0xC1 and above 0xF4, overlong forms (which could hide a control character), surrogates, and code points
/// beyond U+10FFFF.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (bytes == 0 || lead > 0xF4 || text.size() < bytes) return {lead, 1, false};
  std::uint32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {lead, 1, false};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const std::uint32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < least || code > 0x10FFFF || surrogate) return {lead, 1, false};
  return {code, bytes, true};
}

/// Characters that a terminal or browser interprets instead of drawing: controls of C0 and C1, directional
/// marks and overrides (which disguise text), separators of lines and paragraphs, the byte order mark.
bool acts(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200E && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

/// Escaped as in C and JSON, so that a reader sees the original: "\n", "\x1b", "\u202e".
std::string named(const Character& character) {
  if (character.valid && character.code == '\n') return "\\n";
  if (character.valid && character.code == '\r') return "\\r";
  if (character.valid && character.code == '\t') return "\\t";
  char text[12];
  const bool byte = !character.valid || character.code < 0x80;
  std::snprintf(text, sizeof text, byte ? "\\x%02x" : "\\u%04x", character.code);
  return text;
}

std::string plain(std::string_view text, Breaks breaks) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    if (character.valid && character.code == '\n' && breaks != Breaks::shown) {
      out += '\n';
      const bool last = text.size() == 1;
      if (breaks == Breaks::indented && !last && text.substr(1, 2) != "  ") out += "  ";
    } else if (!character.valid || acts(character.code)) {
      out += named(character);
    } else {
      out += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

/// Escaped as in JSON: "\u1234".
void append_escape(std::string& out, std::uint16_t unit) {
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(unit >> shift) & 0xF];
}

}  // namespace

std::string plain_line(std::string_view text) { return plain(text, Breaks::shown); }
std::string plain_message(std::string_view text) { return plain(text, Breaks::indented); }
std::string plain_lines(std::string_view text) { return plain(text, Breaks::kept); }

std::string plain_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    if (character.valid && character.code > 0x20 && acts(character.code)) {  // can only be within a string
      append_escape(out, static_cast<std::uint16_t>(character.code));        // what acts is below U+10000
    } else {
      out += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

}  // namespace shardscope::instrumentation
