// --max-age, --max-size and related options: how much of a run a recording keeps at full detail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/detail_switch.h"
#include "app/store/retention.h"
#include "app/store/rotation.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shardscope::cli {

struct RetentionOptions {
  store::Retention limits;
  store::Rotation rotation;              ///< or this: one file that drops its oldest events, or several files
  std::vector<std::string> triggers;     ///< that create a moment (analysis::TriggerKind); empty: all
  std::int64_t memory_limit = 0;         ///< bytes of a rank's device; 0: none
  DetailOptions detail;                  ///< raised after a moment
  std::vector<CLI::Option*> of_moments;  ///< of the verb, for check()
  CLI::Option* of_files = nullptr;       ///< --max-files, likewise
};

/// The options write to `options`, which must outlive `verb`. `record`: the option for the recording,
/// which they need; null: it is always given.
void add_retention_options(CLI::App& verb, RetentionOptions& options, CLI::Option* record);
/// Throws UserError where an option about moments is given but no limit of the recording, or --max-files but
/// nothing that ends a file; and where both kinds of limits are given.
void check(const RetentionOptions& options);

/// Throws UserError where the triggers that `option` names include memory_limit and there is no limit.
void check_memory_limit(const char* option, const std::vector<std::string>& triggers,
                        std::int64_t memory_limit);

/// Nanoseconds of "90", "90s", "10m", "2h", "7d". Throws CLI::ValidationError, which names valid texts.
[[nodiscard]] std::int64_t duration_of(const std::string& text);
/// Bytes of "500MB", "2GB" (powers of 1000), "1GiB" (of 1024), "1000000B". Throws likewise, also for a number
/// without a unit.
[[nodiscard]] std::uint64_t size_of(const std::string& text);
/// An option parsed by size_of(). `bytes` must outlive `verb`.
CLI::Option* add_size(CLI::App& verb, const char* name, std::int64_t& bytes, const std::string& help);

}  // namespace shardscope::cli
