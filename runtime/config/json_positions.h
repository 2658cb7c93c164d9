// Line and column of every key of a JSON text, which the JSON library does not keep, and duplicate keys,
// which it silently merges (DeepSpeed rejects them).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace shardscope::config {

struct TextPosition {
  std::size_t line = 0;  ///< from 1; 0: unknown
  std::size_t column = 0;
};

/// Position of byte `offset` of `text`.
[[nodiscard]] TextPosition position_at(std::string_view text, std::size_t offset) noexcept;

/// A number beyond the range of a double, as written in a text.
struct LargeNumber {
  std::string path;  ///< of its key
  std::string text;
  TextPosition position;  ///< of the number
};
/// The first one in a text that is valid JSON up to there; empty if there is none.
[[nodiscard]] LargeNumber first_large_number(std::string_view text);

class JsonPositions {
 public:
  JsonPositions() = default;
  /// Scans a text that is known to be valid JSON, with // and /* */ comments or without.
  explicit JsonPositions(std::string_view text);
  /// Path as "zero_optimization.stage".
  [[nodiscard]] TextPosition find(const std::string& path) const;
  /// Path of the first key that occurs twice in one object; empty if none does.
  [[nodiscard]] const std::string& duplicate() const noexcept { return duplicate_; }

 private:
  friend LargeNumber first_large_number(std::string_view text);
  class Scanner;
  std::map<std::string, TextPosition> keys_;
  std::string duplicate_;
};

}  // namespace shardscope::config
