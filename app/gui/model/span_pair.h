// The same work in one step of two runs: of a span of one run, the span of the other that does the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "app/gui/model/details.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// One rank in one step of a run.
struct StepSide {
  const store::Store& store;
  const store::StepRow& step;
  std::uint32_t rank = 0;
};

/// Equal work is repeated in a step (micro-steps, gathers of one size): it is paired in order of begin.
struct SpanPair {
  std::string name;                      ///< "h.3.attn forward", "all-gather of 24.6k elements"
  std::size_t place = 0;                 ///< among the equal work of the own run's step, from 0
  std::array<std::size_t, 2> count{};    ///< equal work in the step of the own run, and of the other
  std::int64_t own_ns = 0;               ///< without pauses
  std::optional<std::int64_t> other_ns;  ///< nullopt: the other run has none, or fewer of them
};

/// Equal are modules of the same path and pass, collectives of the same operation, ranks and number of
/// elements, waits for the same module, and other spans of the same name, on the same stream.
[[nodiscard]] SpanPair pair_of(const StepSide& own, const StepSide& other, ev::StreamId stream,
                               const store::Span& span);

/// Time in A and in B, and the difference with sign and percent. `of_b`: the own run is B.
[[nodiscard]] Details pair_details(const SpanPair& pair, std::uint32_t rank, bool of_b);

/// "+1.20 ms, +12 %": `b_ns` against `a_ns`; without percent where A is 0.
[[nodiscard]] std::string difference_text(std::int64_t a_ns, std::int64_t b_ns);

}  // namespace shardscope::gui
