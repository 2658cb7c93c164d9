// Parses answers of NCCL's RAS (`ncclras`, text or `-f json`): which ranks of a communicator have launched
// fewer operations than others, and which did not answer. Formats: NCCL 2.24 to 2.29, user guide,
// "Troubleshooting: RAS".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::analysis {

/// A rank of a communicator; fields that the answer lacks are empty.
struct RasRank {
  std::uint32_t rank = 0;
  std::string host, gpu;
  std::int64_t pid = 0;  ///< 0: not in the answer
  bool dead = false;     ///< for a rank that did not answer: NCCL gave it up
};

/// Ranks that launched the same number of operations.
struct RasSet {
  std::uint64_t launched = 0;
  std::size_t count = 0;
  std::vector<RasRank> ranks;  ///< the ranks named by the answer: text omits those of a large set
};

struct RasUneven {
  std::string communicator;  ///< its hash, "27a079b828ff1a75"
  std::string operation;     ///< "AllGather"; "collective" before NCCL 2.26
  std::vector<RasSet> sets;  ///< fewest launches first
};

struct RasMissing {
  std::string communicator;
  std::vector<RasRank> ranks;
  std::size_t count = 0;  ///< includes ranks that are not named
};

struct RasAnswer {
  std::string version;
  std::size_t communicators = 0;  ///< 0: not in the text
  std::vector<RasUneven> uneven;
  std::vector<RasMissing> missing;
  std::vector<std::string> dead;  ///< processes, as in the text
};

/// Throws std::invalid_argument: what is wrong, what to do.
[[nodiscard]] RasAnswer parse_ras(const std::string& text);

/// One line per difference and per missing answer. `later`: a second answer, which shows whether an imbalance
/// persists; without it the imbalance may be momentary.
[[nodiscard]] std::vector<std::string> ras_lines(const RasAnswer& answer,
                                                 const std::optional<RasAnswer>& later = {});
[[nodiscard]] std::string ras_json(const RasAnswer& answer, const std::optional<RasAnswer>& later = {});

}  // namespace shardscope::analysis
