// Output of the verbs. Names and messages come from models and recordings: as arguments they are escaped.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "instrumentation/plain_text.h"

namespace shardscope::cli {

namespace say_detail {
template <typename T>
constexpr bool kIsText = std::is_convertible_v<const T&, std::string_view>;
template <typename T>
using Shown = std::conditional_t<kIsText<T>, std::string, T>;
template <typename T>
decltype(auto) shown(const T& value) {
  if constexpr (kIsText<T>) {
    return instrumentation::plain_line(value);
  } else {
    return (value);
  }
}
}  // namespace say_detail

/// fmt::format with text arguments on one line and without control characters.
template <typename... Args>
[[nodiscard]] std::string plain_format(fmt::format_string<say_detail::Shown<Args>...> format,
                                       const Args&... args) {
  const fmt::string_view text = format;
  // fmt 10 and later refer to the arguments and accept no temporaries: converted ones are kept until the text
  // is written.
  return [&](auto&&... shown) {
    return fmt::vformat(text, fmt::make_format_args(shown...));
  }(say_detail::shown(args)...);
}

/// Ignores write errors: main() checks standard output at the end.
inline void say_text(std::FILE* to, const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), to));
}

template <typename... Args>
void say(std::FILE* to, fmt::format_string<say_detail::Shown<Args>...> format, const Args&... args) {
  say_text(to, plain_format<Args...>(format, args...));
}

/// On standard output.
template <typename... Args>
void say(fmt::format_string<say_detail::Shown<Args>...> format, const Args&... args) {
  say_text(stdout, plain_format<Args...>(format, args...));
}

}  // namespace shardscope::cli
