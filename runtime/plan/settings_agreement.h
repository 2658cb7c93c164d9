// Settings that must be equal on all ranks, as text, and the differences between ranks. A rank with another
// learning rate, seed or stage would train wrong weights or wait for collectives that no other rank enters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::plan {

/// One setting of one rank. Only key and value are compared.
struct RankSetting {
  std::string key;     ///< as a user writes it: "zero_optimization.stage", "--seed"
  std::string value;   ///< compared
  std::string note;    ///< where the value comes from, such as a path; may be empty
  std::string advice;  ///< what to do where the ranks differ; not exchanged
};

/// Serializes keys, values and notes to one text, and back. Throws std::invalid_argument on malformed text.
[[nodiscard]] std::string to_text(const std::vector<RankSetting>& settings);
[[nodiscard]] std::vector<RankSetting> settings_of(std::string_view text);

/// The first setting in which two ranks differ. A rank without a setting of that name differs too.
struct SettingDifference {
  std::string key;
  std::string advice;
  std::optional<RankSetting> first, other;  ///< nullopt: that rank has no such setting
  std::vector<std::string> more;            ///< keys of the other differences, in order
};

/// Settings are compared in the order of `first`, then those that only `other` has.
[[nodiscard]] std::optional<SettingDifference> first_difference(const std::vector<RankSetting>& first,
                                                                const std::vector<RankSetting>& other);

/// "zero_optimization.stage: rank 1 has 2, rank 0 has 1; ...": key, ranks, values, what to do.
/// `ranks_that_differ` from rank 0, of `world`.
[[nodiscard]] std::string describe_difference(const SettingDifference& difference, std::uint32_t other_rank,
                                              std::uint32_t ranks_that_differ, std::uint32_t world);

}  // namespace shardscope::plan
