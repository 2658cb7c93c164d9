#include "runtime/config/json_positions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shardscope::config {

namespace {

/// The position behind `text`, which begins at `position`.
TextPosition behind(TextPosition position, std::string_view text) noexcept {
  for (const char c : text) {
    if (c == '\n') {
      ++position.line;
      position.column = 1;
    } else {
      ++position.column;
    }
  }
  return position;
}

}  // namespace

TextPosition position_at(std::string_view text, std::size_t offset) noexcept {
  return behind({1, 1}, text.substr(0, offset));
}

/// Walks brackets, strings and other values; the parser has checked the text before.
class JsonPositions::Scanner {
 public:
  Scanner(std::string_view text, JsonPositions& out) : text_(text), out_(out) {}

  void value(const std::string& path) {
    space();
    if (at_ >= text_.size()) return;
    switch (text_[at_]) {
      case '{':
        object(path);
        break;
      case '[':
        array(path);
        break;
      case '"':
        (void)string();
        break;
      default:
        scalar(path);
    }
  }
  [[nodiscard]] const LargeNumber& large() const noexcept { return large_; }

 private:
  /// Steps over white space and comments.
  void space() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
      const std::string_view two = text_.substr(at_, 2);
      if (two == "//") {
        // The characters at which the parser ends a comment, including a zero byte.
        constexpr std::string_view kEnds("\n\r\0", 3);
        at_ = std::min(text_.find_first_of(kEnds, at_), text_.size());
        if (at_ < text_.size()) ++at_;
      } else if (two == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }
  [[nodiscard]] bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void scalar(const std::string& path) {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(",]} \t\r\n/", at_), text_.size());
    const std::string token(text_.substr(begin, at_ - begin));
    if (token.find_first_not_of("0123456789+-.eE") != std::string::npos || !large_.text.empty()) return;
    if (std::isinf(std::strtod(token.c_str(), nullptr))) large_ = {path, token, position_at(text_, begin)};
  }
  std::string string() {
    const std::size_t begin = at_ = std::min(at_ + 1, text_.size());
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    const std::size_t end = std::min(at_, text_.size());
    ++at_;
    return std::string(text_.substr(begin, end - begin));
  }
  void object(const std::string& path) {
    ++at_;
    if (take('}')) return;
    do {
      space();
      const TextPosition position = here();
      const std::string name = string();
      const std::string key = path.empty() ? name : path + "." + name;
      if (!out_.keys_.emplace(key, position).second && out_.duplicate_.empty()) out_.duplicate_ = key;
      (void)take(':');
      value(key);
    } while (take(','));
    (void)take('}');
  }
  void array(const std::string& path) {
    ++at_;
    if (take(']')) return;
    std::size_t index = 0;
    do {
      value(path + "[" + std::to_string(index++) + "]");
    } while (take(','));
    (void)take(']');
  }

  /// The position of at_. Counts from the last one on: each character of a text is counted once, not once a
  /// key.
  TextPosition here() noexcept {
    position_ = behind(position_, text_.substr(counted_, at_ - counted_));
    counted_ = at_;
    return position_;
  }

  std::string_view text_;
  JsonPositions& out_;
  std::size_t at_ = 0;
  TextPosition position_{1, 1};  ///< of counted_
  std::size_t counted_ = 0;
  LargeNumber large_;
};

LargeNumber first_large_number(std::string_view text) {
  JsonPositions unused;
  JsonPositions::Scanner scanner(text, unused);
  scanner.value("");
  return scanner.large();
}

JsonPositions::JsonPositions(std::string_view text) { Scanner(text, *this).value(""); }

TextPosition JsonPositions::find(const std::string& path) const {
  const auto found = keys_.find(path);
  return found == keys_.end() ? TextPosition{} : found->second;
}

}  // namespace shardscope::config
