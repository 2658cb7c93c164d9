// Legend texts of the timeline's marks, in the vocabulary of the run's framework.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "app/store/vocabulary.h"

namespace shardscope::gui {

/// Marks on the timeline other than colours.
enum class Mark : std::uint8_t { hatched_gather, late, tail, unused, flush, flush_rest, gap, strip, skipped };
inline constexpr std::array kMarks{Mark::hatched_gather, Mark::late, Mark::tail,  Mark::unused, Mark::flush,
                                   Mark::flush_rest,     Mark::gap,  Mark::strip, Mark::skipped};

/// Empty: runs of this framework have no such mark.
[[nodiscard]] std::string meaning_of(Mark mark, const store::Vocabulary& words);

}  // namespace shardscope::gui
