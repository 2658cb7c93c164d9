#include "runtime/profile/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace shardscope::profile {
namespace {

std::string demangled(std::string_view symbol) {
  const std::string text(symbol);
  if (text.rfind("_Z", 0) != 0) return text;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && plain ? std::string(plain.get()) : text;
}

/// Where the argument list begins: the last '(' outside of every bracket that has something before it.
/// "(anonymous namespace)" is part of a name.
std::size_t arguments_of(std::string_view name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && name.substr(i, kAnonymous.size()) == kAnonymous) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if (depth == 0 && c == '(' && i != 0) return i;
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == '}' || c == ']') --depth;
  }
  return name.size();
}

}  // namespace

std::string kernel_name(std::string_view symbol) {
  std::string plain = demangled(symbol);
  std::string_view name(plain);
  name = name.substr(0, arguments_of(name));
  // Removes everything up to the last "::" or blank outside of brackets.
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (depth != 0) continue;
    if (c == ' ') begin = i + 1;
    if (c == ':' && i + 1 < name.size() && name[i + 1] == ':') begin = i + 2;
  }
  name = name.substr(begin);
  if (name.empty()) name = plain;
  if (name.size() <= kMostOfName) return std::string(name);
  return std::string(name.substr(0, kMostOfName - 3)) + "...";
}

}  // namespace shardscope::profile
