// Ranks, steps and times as given in options: "0,4-7", "10-20" and "1.25s".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "app/store/store.h"

namespace shardscope::cli {

using NumberRange = std::pair<std::uint32_t, std::uint32_t>;  ///< first and last

/// The ranks of the run in `list`, each once; none where it is empty. Throws UserError where a part has
/// none.
[[nodiscard]] std::vector<std::uint32_t> ranks_of(const store::Store& store, std::string_view list);
/// Nanoseconds of "1.25", "1.25s", "300ms", "20us" or "5ns", not negative. Throws UserError naming `option`
/// for other texts.
[[nodiscard]] std::int64_t time_of(std::string_view option, std::string_view text);
/// nullopt where `text` is empty. Throws UserError.
[[nodiscard]] std::optional<NumberRange> steps_of(std::string_view text);

}  // namespace shardscope::cli
