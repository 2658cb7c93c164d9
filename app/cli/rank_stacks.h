// Where the threads of running ranks are: `why --stacks` on request, `why` of an attached run that hangs by
// itself.
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

/// Asks the run, of which every rank is asked, and waits so long for the answers of `ranks`. Throws UserError
/// where the collector refuses: the key may only view, or it passes its ranks on.
[[nodiscard]] std::vector<RankStacks> ask_for_stacks(
    collector::Viewer& viewer, store::Store& store, const std::vector<std::uint32_t>& ranks,
    std::chrono::milliseconds patience = std::chrono::seconds(10));
/// The JSON of a diagnosis with "stacks": of each the rank, whether it answered, and its text.
[[nodiscard]] std::string with_stacks(const std::string& hang_json, const std::vector<RankStacks>& stacks);

/// The innermost call of the main thread that is in neither an installed package nor Python's own library.
struct ScriptLine {
  std::uint32_t rank = 0;
  std::string function, file;
  std::uint32_t line = 0;
};
/// Of a stack as the Python package writes it; nothing where no such call is in it.
[[nodiscard]] std::optional<ScriptLine> script_line(std::uint32_t rank, const std::string& stacks);
/// Ranks that run, one for each side: those of named_ranks(), and the first of each side of the difference.
[[nodiscard]] std::vector<std::uint32_t> ranks_of_sides(const analysis::Hang& hang);
/// A line each; and "lines" in the JSON: rank, function, file, line.
[[nodiscard]] std::string text_of(const std::vector<ScriptLine>& lines);
[[nodiscard]] std::string with_lines(const std::string& hang_json, const std::vector<ScriptLine>& lines);

}  // namespace shardscope::cli
