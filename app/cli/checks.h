// Validators of option values, with readable messages.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "instrumentation/sockets.h"
#include "runtime/config/above_zero.h"
#include "runtime/config/fault_check.h"

namespace shardscope::cli {

using config::kAboveZero;
using config::kFault;

// Help texts of options that several verbs have.
inline constexpr const char* kInsecureText =
    "Without keys: anyone who reaches the endpoint can read and control the run (docs/security.md)";
inline constexpr const char* kKeyText =
    "Key file (docs/security.md; default: the one SHARDSCOPE_KEY names, else found by the endpoint; none: "
    "without)";
inline constexpr const char* kKeyIfAskedText = "Key file for an endpoint that asks for one";

/// CLI::Range accepts NaN, where check_option_values() has not run before.
inline const CLI::Validator kUpToOne(
    [](std::string& text) {
      double value = 0;
      return CLI::detail::lexical_cast(text, value) && value >= 0 && value <= 1
                 ? std::string()
                 : text + " is not a number from 0 to 1";
    },
    "0 TO 1");

/// Endpoint of a collector; with port 0 it chooses one.
inline const CLI::Validator kEndpoint(
    [](std::string& text) {
      std::string other = text;
      if (other.ends_with(":0") || other.ends_with(":*")) other.back() = '1';
      try {
        (void)instrumentation::endpoints_of(other);
        return std::string();
      } catch (const std::runtime_error& error) {
        return std::string(error.what());
      }
    },
    "ENDPOINT");

/// The same, or an existing file.
inline const CLI::Validator kEndpointOrFile(
    [](std::string& text) {
      if (text.find("://") == std::string::npos && text.ends_with(".zscope")) return CLI::ExistingFile(text);
      return kEndpoint(text);
    },
    "ENDPOINT or FILE");

/// Names of the levels of detail, lowest first: values of `--detail`.
[[nodiscard]] inline std::vector<std::string> detail_names() {
  std::vector<std::string> names;
  for (int level = 0; level < instrumentation::kValueCount<instrumentation::Detail>; ++level)
    names.emplace_back(instrumentation::name_of(static_cast<instrumentation::Detail>(level)));
  return names;
}
/// `name`: one of detail_names().
[[nodiscard]] inline instrumentation::Detail detail_of(const std::string& name) {
  const std::vector<std::string> names = detail_names();
  return static_cast<instrumentation::Detail>(std::ranges::find(names, name) - names.begin());
}

}  // namespace shardscope::cli
