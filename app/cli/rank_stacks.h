// Stacks of the threads of running ranks: for `why --stacks`, and for `why` of an attached run that
// hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/collector/viewer.h"
#include "app/store/store.h"

namespace shardscope::cli {

struct RankStacks {
  std::uint32_t rank = 0;
  bool answered = false;
  std::string text;  ///< lines; or why there are none
};

/// Requests the stacks of every rank and waits that long for the answers of `ranks`. Throws UserError
/// where the collector refuses: the key may only view, or it passes events on to another collector.
[[nodiscard]] std::vector<RankStacks> ask_for_stacks(
    collector::Viewer& viewer, store::Store& store, const std::vector<std::uint32_t>& ranks,
    std::chrono::milliseconds patience = std::chrono::seconds(10));
/// The JSON of a diagnosis with "stacks": for each the rank, whether it answered, and its text.
[[nodiscard]] std::string with_stacks(const std::string& hang_json, const std::vector<RankStacks>& stacks);

/// The innermost call of the main thread in neither an installed package nor Python's own library.
struct ScriptLine {
  std::uint32_t rank = 0;
  std::string function, file;
  std::uint32_t line = 0;
};
/// From a stack as written by the Python package; nullopt where it has no such call.
[[nodiscard]] std::optional<ScriptLine> script_line(std::uint32_t rank, const std::string& stacks);
/// Running ranks, one for each side: those of named_ranks(), and the first of each side of the difference.
[[nodiscard]] std::vector<std::uint32_t> ranks_of_sides(const analysis::Hang& hang);
/// One per line; and "lines" in the JSON: rank, function, file, line.
[[nodiscard]] std::string text_of(const std::vector<ScriptLine>& lines);
[[nodiscard]] std::string with_lines(const std::string& hang_json, const std::vector<ScriptLine>& lines);

}  // namespace shardscope::cli
