// What ZenFlow must do, worked out a second time from docs/guide.md and docs/zero.md O5,
// without runtime/plan: what the tests hold the runtime against. Steps and elements count from 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::engine::testing {

struct ExpectedZenFlow {
  double topk = 0.1;
  std::int64_t select_interval = 0;  ///< 0: chosen once
  std::int64_t update_interval = 0;  ///< 0: by votes
  std::int64_t warm_up = 0;
  double auto_ratio = 0.99;

  [[nodiscard]] bool warms_up(std::int64_t step) const { return step < warm_up; }
  /// As docs/events.md numbers them: 1 first, 2 interval; none where no columns are chosen.
  [[nodiscard]] std::optional<std::uint8_t> selection_cause(std::int64_t step) const;
  /// 0 warm_up, 1 interval, 2 votes, 3 before_selection; none where nothing goes to the CPU. `voted`: enough
  /// matrices voted in the step before.
  [[nodiscard]] std::optional<std::uint8_t> update_cause(std::int64_t step, bool voted = false) const;
};

/// Votes of update_interval auto, by DeepSpeed's two sums: u steps after the last decision or, before any, in
/// the run, those of the warm-up counted
///   mean = (mean (u - 1) + chosen) / u / (10 topk),   rest += (all - chosen) / (10 (1 - topk)),
/// and the matrix votes when rest >= mean. A decision clears rest, not mean.
class ExpectedVotes {
 public:
  ExpectedVotes(const ExpectedZenFlow& rule, std::size_t matrices);
  struct Mass {
    double chosen = 0, all = 0;
  };
  /// The masses of a step; true where the step after it updates.
  bool decides(const std::vector<Mass>& step);

 private:
  ExpectedZenFlow rule_;
  std::vector<double> mean_, rest_;
  std::int64_t steps_;  ///< u
};

/// What a rank has of a parameter.
struct ExpectedPiece {
  std::uint32_t param = 0;
  std::int64_t elems = 0;
  std::int64_t columns = 0;  ///< of a matrix; 0: none
  std::int64_t first_column = 0;
  [[nodiscard]] std::int64_t chosen_columns(double topk) const;
  /// Elements for which the device holds states: whole rows of chosen columns, but no more than there are.
  [[nodiscard]] std::int64_t held(double topk) const;
  /// Elements in this many columns, whichever they are.
  [[nodiscard]] std::int64_t fewest_in(std::int64_t columns) const;
  [[nodiscard]] std::int64_t most_in(std::int64_t columns) const;
};
struct ExpectedShare {
  std::int64_t elems = 0;  ///< padding included
  std::vector<ExpectedPiece> pieces;
};
/// Shapes of the parameters of samples/models/mlp.json, in order.
[[nodiscard]] std::vector<std::vector<std::int64_t>> mlp_shapes();
/// Stages 1 and 2: all parameters in a row, padded to two elements per rank and cut. Stage 3: each parameter
/// cut, the shard rounded up to 16 bytes of `element_bytes`.
[[nodiscard]] ExpectedShare expected_share(const std::vector<std::vector<std::int64_t>>& shapes, int stage,
                                           std::uint32_t world, std::uint32_t rank,
                                           std::int64_t element_bytes);

}  // namespace shardscope::engine::testing
