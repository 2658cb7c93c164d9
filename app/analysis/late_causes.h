// Why ranks came last, over all measured steps: one cause in each step, summed by cause.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::analysis {

class Digest;
struct Summary;

/// [Note: the cause of each step]
/// The means of a rank over all steps say why it is late where it is late in most of them. Where ranks are
/// late in turns, each has the same means and no cause. So each step by itself has one: of the rank that the
/// others waited for longest in it, in which class it exceeded those that waited for it (why_late.h).
enum class LateReason : std::uint8_t {
  compute,
  copy,
  idle,
  group,      ///< collectives of another of its groups
  data,       ///< it waited for its micro-batch
  processor,  ///< its threads waited for a processor
  unknown     ///< in no class does it exceed the others by half of their waiting
};
/// "it computed longer than they did".
[[nodiscard]] const char* explain(LateReason reason) noexcept;
/// "compute", as JSON spells it.
[[nodiscard]] const char* name_of(LateReason reason) noexcept;

struct LateCause {
  LateReason reason{};
  std::uint32_t steps = 0;           ///< in which the last rank had this reason
  double waited_ms = 0;              ///< of each other rank in these steps, summed over them
  std::vector<std::uint32_t> ranks;  ///< that came last with it, ascending
};
/// Empty if no rank was waited for.
struct LateCauses {
  std::vector<LateCause> causes;                    ///< the one with the most waiting first
  std::uint32_t steps = 0;                          ///< in which a rank was waited for
  std::uint32_t of = 0;                             ///< measured steps
  [[nodiscard]] double waited_ms() const noexcept;  ///< summed over the steps
};
[[nodiscard]] LateCauses late_causes(const Digest& digest);

/// The cause with over half of all waiting, if it is known; nullopt without one, or without a critical path.
[[nodiscard]] std::optional<LateCause> why_late(const Summary& summary);
/// "in 14 of 20 steps the last one (ranks 0, 1, 3) was late because it waited for its data: 3.2 of 4.0 ms
/// that each other waited in a step".
[[nodiscard]] std::string text_of(const LateCauses& all, const LateCause& cause);

}  // namespace shardscope::analysis
