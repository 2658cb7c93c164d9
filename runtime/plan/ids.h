// Identifiers shared by every plan: small strong integers, so that a module cannot be passed where a
// parameter is meant. Numbering follows DeepSpeed so that recorded sequences can be compared:
// modules by pre-order walk (root 0), parameters by first appearance in that walk (`ds_id`).
#pragma once

#include <cstdint>
#include <limits>

namespace shardscope::plan {

enum class ModuleId : std::uint32_t {};
enum class ParamId : std::uint32_t {};
enum class RankId : std::uint32_t {};
enum class BucketId : std::uint32_t {};
enum class GatherId : std::uint32_t {};  ///< one coalesced all-gather of one rank, in issue order

template <typename Id>
[[nodiscard]] constexpr std::uint32_t raw(Id id) noexcept {
  return static_cast<std::uint32_t>(id);
}

template <typename Id>
inline constexpr Id kNone = static_cast<Id>(std::numeric_limits<std::uint32_t>::max());

enum class Direction : std::uint8_t { forward, backward };

}  // namespace shardscope::plan
