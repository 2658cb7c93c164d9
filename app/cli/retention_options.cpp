#include "app/cli/retention_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "app/analysis/watch.h"
#include "app/cli/checks.h"
#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

/// A smaller recording is mostly tables beside its events.
constexpr std::uint64_t kLeastBytes = 8'000'000;
/// A shorter part holds little else than what each part repeats.
constexpr std::int64_t kLeastPart_ns = 10'000'000'000;

using UnitFactor = std::pair<std::string_view, double>;
constexpr std::array kDurations = {UnitFactor{"", 1e9},      UnitFactor{"s", 1e9},  UnitFactor{"ms", 1e6},
                                   UnitFactor{"min", 60e9},  UnitFactor{"m", 60e9}, UnitFactor{"h", 3600e9},
                                   UnitFactor{"d", 86'400e9}};
constexpr std::array kSizes = {
    UnitFactor{"B", 1},        UnitFactor{"kB", 1e3},      UnitFactor{"KB", 1e3},
    UnitFactor{"MB", 1e6},     UnitFactor{"GB", 1e9},      UnitFactor{"TB", 1e12},
    UnitFactor{"KiB", 1024},   UnitFactor{"K", 1024},      UnitFactor{"MiB", 1 << 20},
    UnitFactor{"M", 1 << 20},  UnitFactor{"GiB", 1 << 30}, UnitFactor{"G", 1 << 30},
    UnitFactor{"TiB", 0x1p40}, UnitFactor{"T", 0x1p40}};

/// A number above 0 with a unit. Throws CLI::ValidationError for others.
template <std::size_t kUnits>
double value_of(std::string_view text, const std::array<UnitFactor, kUnits>& units, const char* examples) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  constexpr double kMost = 9e18;
  for (const auto& [name, factor] : units) {
    const double value = number * factor;
    if (error == std::errc() && unit == name && value >= 1 && value < kMost) return value;
  }
  throw CLI::ValidationError(fmt::format("{}: write it as one of {}", text, examples));
}

/// As CLI::App::add_option_function, with a one-line message.
template <typename Take>
CLI::Option* add_text(CLI::App& verb, const char* name, const char* type, const std::string& help,
                      Take take) {
  const std::function<void(const std::string&)> on_text = [name, take](const std::string& text) {
    try {
      take(text);
    } catch (const CLI::ValidationError& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  return verb.add_option_function<std::string>(name, on_text, help)->type_name(type);
}

}  // namespace

std::int64_t duration_of(const std::string& text) {
  return static_cast<std::int64_t>(value_of(text, kDurations, "90s, 10m, 2h, 7d"));
}

std::uint64_t size_of(const std::string& text) {
  return static_cast<std::uint64_t>(value_of(text, kSizes, "500MB, 2GB, 24GiB, with the unit (B: bytes)"));
}
/// Likewise, of a recording's file. Throws for less than kLeastBytes.
std::uint64_t file_size_of(const std::string& text) {
  const std::uint64_t bytes = size_of(text);
  if (bytes < kLeastBytes) throw CLI::ValidationError(fmt::format("{} is less than 8MB", text));
  return bytes;
}

CLI::Option* add_size(CLI::App& verb, const char* name, std::int64_t& bytes, const std::string& help) {
  return add_text(verb, name, "SIZE", help,
                  [&bytes](const std::string& text) { bytes = static_cast<std::int64_t>(size_of(text)); });
}

namespace {

/// Each adds to the cost of every search for events to delete.
constexpr std::size_t kMostMoments = 1000;

/// Except findings, which need events that a recorder does not read.
std::vector<std::string> trigger_names() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < analysis::kTriggerKinds; ++kind) {
    if (static_cast<analysis::TriggerKind>(kind) != analysis::TriggerKind::finding)
      names.emplace_back(analysis::name_of(static_cast<analysis::TriggerKind>(kind)));
  }
  return names;
}

}  // namespace

namespace {

void check_rotation(const RetentionOptions& options) {
  const bool files = options.of_files != nullptr && options.of_files->count() != 0;
  if (files && !options.rotation.on()) {
    throw UserError("--max-files needs --rotate-size or --rotate-age: without them the recording is one file",
                    2);
  }
  if (options.rotation.part_bytes > 0 && options.limits.max_bytes > 0) {
    throw UserError(
        "--rotate-size needs files that grow, and --max-size keeps each of them small: give one of the two, "
        "or use --rotate-age",
        2);
  }
}

}  // namespace

void check_memory_limit(const char* option, const std::vector<std::string>& triggers,
                        std::int64_t memory_limit) {
  const char* const name = analysis::name_of(analysis::TriggerKind::memory_limit);
  if (memory_limit != 0 || std::ranges::find(triggers, name) == triggers.end()) return;
  throw UserError(fmt::format("{} {} needs --memory-limit, the memory of a rank's device", option, name), 2);
}

void check(const RetentionOptions& options) {
  check_memory_limit("--moment-triggers", options.triggers, options.memory_limit);
  if (!options.detail.raise.empty() && options.limits.moments == 0)
    throw UserError("--raise-detail needs moments, and --moments 0 keeps none", 2);
  check_rotation(options);
  if (options.limits.limited()) return;
  // Whether it was given, regardless of its value: the default may be given.
  for (const CLI::Option* option : options.of_moments) {
    if (option->count() == 0) continue;
    throw UserError(
        fmt::format("{} needs --max-age or --max-size: without them everything is kept", option->get_name()),
        2);
  }
}

void add_retention_options(CLI::App& verb, RetentionOptions& options, CLI::Option* record) {
  store::Retention* const to = &options.limits;
  store::Rotation* const rotation = &options.rotation;
  CLI::Option* age =
      add_text(verb, "--max-age", "DURATION",
               "Keep the last 10m (90s, 2h, ...) at full detail, of the rest the sums of steps, spans "
               "and memory; default: keep everything",
               [to](const std::string& text) { to->max_age_ns = duration_of(text); });
  CLI::Option* size = add_text(
      verb, "--max-size", "SIZE",
      "Keep the recording below 2GB (500MB, 1GiB, ...), by deleting the oldest detail; of a recording in "
      "several files (--rotate-age) each file",
      [to](const std::string& text) { to->max_bytes = file_size_of(text); });
  CLI::Option* moments = verb.add_option("--moments", to->moments,
                                         "Also keep the events around the newest N unusual moments; 0: none")
                             ->check(CLI::Range(std::size_t{0}, kMostMoments))
                             ->capture_default_str();
  CLI::Option* around =
      add_text(verb, "--moment-around", "DURATION", "How much before and after each of them (default: 30s)",
               [to](const std::string& text) { to->around_ns = duration_of(text); });
  CLI::Option* old =
      add_text(verb, "--moment-max-age", "DURATION", "Delete moments older than this (default: never)",
               [to](const std::string& text) { to->moment_age_ns = duration_of(text); });
  CLI::Option* triggers =
      verb.add_option("--moment-triggers", options.triggers,
                      "Which of `watch --trigger` make a moment, beside a SIGUSR2 (default: all but finding)")
          ->check(CLI::IsMember(trigger_names()))
          ->delimiter(',');
  CLI::Option* memory =
      add_size(verb, "--memory-limit", options.memory_limit,
               "Memory of a rank's device, e.g. 24GiB: memory_limit is where a rank held 95 % of it");
  CLI::Option* raise = add_detail_switch(verb, options.detail);
  CLI::Option* rotate_size =
      add_text(verb, "--rotate-size", "SIZE",
               "Go on in a next file when one has 500MB (2GB, 1GiB, ...): FILE is a link to the newest, "
               "NAME.0001.zscope the first; all are opened as one",
               [rotation](const std::string& text) { rotation->part_bytes = file_size_of(text); });
  CLI::Option* rotate_age =
      add_text(verb, "--rotate-age", "DURATION", "Go on in a next file after 1h (90s, 10m, 1d, ...)",
               [rotation](const std::string& text) {
                 rotation->part_ns = duration_of(text);
                 if (rotation->part_ns < kLeastPart_ns)
                   throw CLI::ValidationError(fmt::format("{} is less than 10s", text));
               });
  constexpr std::size_t kMostFiles = 1'000'000;
  options.of_files = verb.add_option("--max-files", rotation->max_files,
                                     "Keep the newest N of these files, 2 at least, and delete older ones; "
                                     "default: keep all. The sums of deleted events remain")
                         ->check(CLI::Range(store::kFewestParts, kMostFiles));
  options.of_moments = {moments, around, old, triggers, memory, raise};
  for (CLI::Option* option : {age, size, moments, around, old, triggers, memory, raise, rotate_size,
                              rotate_age, options.of_files}) {
    if (record != nullptr) option->needs(record);
  }
}

}  // namespace shardscope::cli
