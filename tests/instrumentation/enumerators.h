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

/// "forward" of Phase::forward; empty where no enumerator has this value.
template <auto Value>
constexpr std::string_view enumerator_name() {
  // g++ and clang: "... [with auto Value = shardscope::x::Phase::forward]", and "(shardscope::x::Phase)9" for
  // what has no name.
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("Value = ") + 8);
  text = text.substr(0, text.find_first_of(";]"));
  if (text.find('(') != std::string_view::npos) return {};
  return text.substr(text.rfind(':') + 1);
}

/// All with values from 0 to 127, in order.
template <typename Enum>
std::vector<Enumerator> enumerators() {
  std::vector<Enumerator> out;
  [&]<int... Values>(std::integer_sequence<int, Values...>) {
    const auto add = [&](int value, std::string_view name) {
      if (!name.empty()) out.push_back({value, std::string(name)});
    };
    (add(Values, enumerator_name<static_cast<Enum>(Values)>()), ...);
  }
  (std::make_integer_sequence<int, 128>{});
  return out;
}

}  // namespace shardscope::test
