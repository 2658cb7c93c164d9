#include "runtime/config/option_checks.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

namespace shardscope::config {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <typename Number>
bool fits(std::string_view digits, int base) {
  Number value{};
  return std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ec !=
         std::errc::result_out_of_range;
}

/// CLI11 checks whether it is a number; this checks whether CLI11 reads it correctly.
std::string validate_number(OptionValue kind, std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) digits.remove_prefix(2);
  if (digits.empty()) return {};
  if (negative && kind == OptionValue::count) return std::string(text) + " is below 0";
  if (!hexadecimal) {
    if (!std::all_of(digits.begin(), digits.end(), is_digit)) return {};
    if (digits.size() > 1 && digits.front() == '0')
      return std::string(text) + " begins with a 0; write it without";
  }
  const int base = hexadecimal ? 16 : 10;
  const bool known = kind == OptionValue::count ? fits<std::uint64_t>(digits, base)
                     : negative                 ? fits<std::int64_t>("-" + std::string(digits), base)
                                                : fits<std::int64_t>(digits, base);
  return known ? std::string() : std::string(text) + " is beyond the numbers of 64 bits";
}

/// CLI11's ranges take NaN for a number in each of them, and print 300 digits of the largest double where
/// something is infinite.
std::string validate_fraction(std::string_view text) {
  const std::string number(text);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  return *end != 0 || std::isfinite(value) ? std::string() : number + " is not a finite number";
}

OptionValue kind_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.starts_with("UINT")) return OptionValue::count;
  if (type.starts_with("INT")) return OptionValue::whole_number;
  return type.starts_with("FLOAT") ? OptionValue::number : OptionValue::text;
}

}  // namespace

std::string validate(OptionValue kind, std::string_view text) {
  if (text.empty()) return "its value is empty; give one, or leave the option out";
  if (kind == OptionValue::number) return validate_fraction(text);
  if (kind != OptionValue::text) return validate_number(kind, text);
  if (text.size() < 2 || text.front() != '-' || is_digit(text[1]) || text[1] == '.') return {};
  return "its value is missing before " + std::string(text) + "; a file of that name is ./" +
         std::string(text);
}

void check_option_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_positional() || option->get_expected_max() == 0) continue;
    const OptionValue kind = kind_of(*option);
    // As a transformation, which runs before the option's own checks.
    option->transform(CLI::Validator([kind](std::string& text) { return validate(kind, text); }, ""));
  }
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) check_option_values(*verb);
}

}  // namespace shardscope::config
