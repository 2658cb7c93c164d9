// The values of an enumeration and their names as the compiler knows them, so that a test can hold a list
// made elsewhere (a C header, a page of the manual) against the whole of it: what was added shows as missing
// there.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::test {

struct Enumerator {
  int value = 0;
  std::string name;
  friend bool operator==(const Enumerator&, const Enumerator&) = default;
};

/// The compiler's words for a function of this value. What is instantiated for each of thousands of values is
/// this alone; they are read at run time, which compiles in a fraction of the time.
template <auto Value>
constexpr const char* words_with() {
  return __PRETTY_FUNCTION__;
}

/// "forward" of what words_with<Phase::forward>() says; empty where no enumerator has this value.
inline std::string name_in(std::string_view words) {
  // g++ and clang: "... [with auto Value = shardscope::x::Phase::forward]", and "(shardscope::x::Phase)9" for
  // what has no name.
  words = words.substr(words.find("Value = ") + 8);
  words = words.substr(0, words.find_first_of(";]"));
  if (words.find('(') != std::string_view::npos) return {};
  return std::string(words.substr(words.rfind(':') + 1));
}

/// All with values from 0 to 127, in order.
template <typename Enum>
std::vector<Enumerator> enumerators() {
  static constexpr auto kWords = []<int... Values>(std::integer_sequence<int, Values...>) {
    return std::array{words_with<static_cast<Enum>(Values)>()...};
  }
  (std::make_integer_sequence<int, 128>{});
  std::vector<Enumerator> out;
  for (std::size_t value = 0; value < kWords.size(); ++value) {
    std::string name = name_in(kWords[value]);
    if (!name.empty()) out.push_back({static_cast<int>(value), std::move(name)});
  }
  return out;
}

}  // namespace shardscope::test
