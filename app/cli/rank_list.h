// Ranks and steps as options name them: "0,4-7" and "10-20".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "app/store/store.h"

namespace shardscope::cli {

using NumberRange = std::pair<std::uint32_t, std::uint32_t>;  ///< first and last

/// Those of the run that `list` names, each once; none where it is empty. Throws UserError where it names
/// none.
[[nodiscard]] std::vector<std::uint32_t> ranks_of(const store::Store& store, std::string_view list);
/// Nothing where `text` is empty. Throws UserError.
[[nodiscard]] std::optional<NumberRange> steps_of(std::string_view text);

}  // namespace shardscope::cli
