// One step of two runs on a common scale, aligned at the begin of the step, by phase or by module, so that a
// longer part in one run does not shift the parts after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/time_axis.h"
#include "app/store/store.h"

namespace shardscope::gui {

enum class AlignBy : std::uint8_t { step, phase, module };
/// A phase or a module in a step.
struct NamedInterval {
  std::string name;
  TimeRange range;
  std::int64_t running_ns = 0;  ///< without pauses
  store::Span span;
};
/// Outermost phases of a step on a rank's compute stream, in order of begin.
[[nodiscard]] std::vector<NamedInterval> phases_of(const store::Store& store, const store::StepRow& step,
                                                   std::uint32_t rank);
/// The ranks of which both runs have events, in order.
[[nodiscard]] std::vector<std::uint32_t> common_ranks(const store::Store& a, const store::Store& b);
/// `wanted`, if there is such a rank, else the lowest of the run; nullopt without any rank.
[[nodiscard]] std::optional<std::uint32_t> rank_or_lowest(const store::Store& store,
                                                          std::optional<std::uint32_t> wanted);
/// Upper bound on the phases or modules of a step: pairing them takes quadratic time and memory.
inline constexpr std::size_t kMostAligned = 500;

/// A part of the step that begins at the same position of the scale in both runs.
struct AlignedPart {
  std::string name;                       ///< of the phase or module; empty: between two of them
  TimeRange a, b;                         ///< in each run's own time; empty where the run lacks the part
  std::int64_t at_ns = 0, length_ns = 0;  ///< on the common scale; the length of the longer one
};
/// Aligned are the phases or modules on the compute stream of a rank (nullopt: of each run's lowest) that
/// both runs have in the same order; the others belong to the unnamed parts between them. Modules (name and
/// pass) are taken from the nesting level with the most common modules, the innermost one of equals. Sets
/// `why_not` where nothing can be aligned.
[[nodiscard]] std::vector<AlignedPart> align_steps(const store::Store& a, const store::StepRow& step_of_a,
                                                   const store::Store& b, const store::StepRow& step_of_b,
                                                   AlignBy by, std::string* why_not = nullptr,
                                                   std::optional<std::uint32_t> rank = std::nullopt);
/// What is seen of the parts in `seen`, a range of the common scale.
[[nodiscard]] std::vector<AlignedPart> visible_parts(std::span<const AlignedPart> parts, TimeRange seen);
enum class AlignedRun : std::uint8_t { a, b };
/// Position on the common scale of a time of one run, and the reverse. nullopt outside of the parts, and
/// where only the other run has something at this position.
[[nodiscard]] std::optional<std::int64_t> position_of(std::span<const AlignedPart> parts, AlignedRun side,
                                                      std::int64_t time_ns);
[[nodiscard]] std::optional<std::int64_t> time_of(std::span<const AlignedPart> parts, AlignedRun side,
                                                  std::int64_t position_ns);

}  // namespace shardscope::gui
