// What the ranks of a run must have alike, as texts, and where they do not. A rank with another learning
// rate, seed or stage would train on and give wrong weights, or wait for collectives that no other rank
// makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::plan {

/// One setting of one rank. What is not compared is shown only.
struct RankSetting {
  std::string key;     ///< as a user writes it: "zero_optimization.stage", "--seed"
  std::string value;   ///< compared
  std::string note;    ///< where the value comes from, such as a path; may be empty
  std::string advice;  ///< what to do where the ranks differ; not exchanged
};

/// Keys, values and notes as one text, and back. Throws std::invalid_argument on a text of another kind.
[[nodiscard]] std::string to_text(const std::vector<RankSetting>& settings);
[[nodiscard]] std::vector<RankSetting> settings_of(std::string_view text);

/// The first setting in which two ranks differ. A rank without a setting of that name differs too.
struct SettingDifference {
  std::string key;
  std::string advice;
  std::optional<RankSetting> first, other;  ///< nothing: that rank has no such setting
  std::vector<std::string> more;            ///< keys of the other differences, in order
};

/// In the order of `first`, then what only `other` has.
[[nodiscard]] std::optional<SettingDifference> first_difference(const std::vector<RankSetting>& first,
                                                                const std::vector<RankSetting>& other);

/// "zero_optimization.stage: rank 1 has 2, rank 0 has 1; ...": key, ranks, values, what to do.
/// `ranks_that_differ` from rank 0, of `world`.
[[nodiscard]] std::string describe_difference(const SettingDifference& difference, std::uint32_t other_rank,
                                              std::uint32_t ranks_that_differ, std::uint32_t world);

}  // namespace shardscope::plan
