#include "app/gui/model/match.h"

#include <algorithm>

namespace shardscope::gui {
namespace {

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool matches(std::string_view name, std::string_view typed) noexcept {
  while (!typed.empty()) {
    const std::size_t end = std::min(typed.find(' '), typed.size());
    const std::string_view word = typed.substr(0, end);
    typed.remove_prefix(std::min(end + 1, typed.size()));
    if (word.empty()) continue;
    const auto same = [](char a, char b) { return lower(a) == lower(b); };
    if (std::search(name.begin(), name.end(), word.begin(), word.end(), same) == name.end()) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace shardscope::gui
