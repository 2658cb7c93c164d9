// Recorded answers of NCCL's RAS (`ncclras`, its text or `-f json`): which ranks of a communicator have
// launched less than the others, and which did not answer. Formats: NCCL 2.24 to 2.29, user guide,
// "Troubleshooting: RAS".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::analysis {

/// A rank of a communicator; what an answer does not say is empty.
struct RasRank {
  std::uint32_t rank = 0;
  std::string host, gpu;
  std::int64_t pid = 0;  ///< 0: not said
  bool dead = false;     ///< of one that did not answer: given up
};

/// Ranks that have launched the same number of operations.
struct RasSet {
  std::uint64_t launched = 0;
  std::size_t count = 0;
  std::vector<RasRank> ranks;  ///< those that the answer names: text leaves out the ones that are many
};

struct RasUneven {
  std::string communicator;  ///< its hash, "27a079b828ff1a75"
  std::string operation;     ///< "AllGather"; "collective" before NCCL 2.26
  std::vector<RasSet> sets;  ///< fewest launched first
};

struct RasMissing {
  std::string communicator;
  std::vector<RasRank> ranks;
  std::size_t count = 0;  ///< those that are not named included
};

struct RasAnswer {
  std::string version;
  std::size_t communicators = 0;  ///< 0: the text does not say
  std::vector<RasUneven> uneven;
  std::vector<RasMissing> missing;
  std::vector<std::string> dead;  ///< processes, as the text has them
};

/// Throws std::invalid_argument: what, what to do.
[[nodiscard]] RasAnswer parse_ras(const std::string& text);

/// In words, a line each. `later`: an answer to a later question, by which it is known whether what was
/// uneven stands; without one it may be an instant of a run that goes on.
[[nodiscard]] std::vector<std::string> ras_lines(const RasAnswer& answer,
                                                 const std::optional<RasAnswer>& later = {});
[[nodiscard]] std::string ras_json(const RasAnswer& answer, const std::optional<RasAnswer>& later = {});

}  // namespace shardscope::analysis
