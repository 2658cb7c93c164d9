// The table of steps: begin and end over ranks, loss, norm, rate, paused time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

/// [Note: ranks that a step waits for]
/// A step has ended when every rank has ended it. Collectives keep the ranks together, so all ranks of the
/// world have begun a step before the first one ends its first. Those that are not here kAwaited_ns after
/// that are of another node, or are not recorded. From then on a step waits for the ranks that have come:
/// whose first step is not later than it. Blocks of ranks may be read in any order, so the ends of steps are
/// judged again with each rank that comes.
class StepTable {
 public:
  static constexpr std::int64_t kAwaited_ns = 10'000'000'000;
  /// Adds one event of kind step_* or tokens, or of a kind that is a value of a step. A step
  /// has a row once it began or ended: earlier values (the next step's learning rate, set before
  /// an evaluation) wait for the row; they neither create a step nor extend it.
  void add(std::uint32_t rank, const ev::Event& event, std::int64_t at_ns);
  /// A pause of a rank that just ended; counted in the rank's current step.
  void paused(std::uint32_t rank, std::int64_t ns);
  void set_world(std::uint32_t world) { world_ = world; }
  /// Everything has been read: no other rank comes.
  void wait_no_longer();
  void shift(std::int64_t delta_ns);
  /// Rows of steps computed elsewhere, up to `through`, ascending: later events do not change them.
  void restore(std::vector<StepRow> rows, std::uint32_t through);
  /// From now on, the oldest quarter is evicted when there would be more rows.
  void keep_at_most(std::size_t rows) { most_ = std::max<std::size_t>(rows, 8); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return rows_.capacity() * sizeof(StepRow) + sums_.capacity() * sizeof(Sums);
  }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }
  [[nodiscard]] std::span<const StepRow> rows() const noexcept { return rows_; }
  /// [Note: steps that begin again]; in the order in which they were noticed.
  [[nodiscard]] std::span<const Rewind> rewinds() const noexcept { return rewinds_; }

 private:
  /// Inputs of a row.
  struct Sums {
    std::uint32_t begun = 0, ended = 0;  ///< ranks; a lost end is counted when the rank begins its next step
    std::int64_t latest_end_ns = INT64_MIN;
    double loss_sum = 0;
    std::uint32_t losses = 0;
    std::int64_t rank_tokens = 0;
    bool has_total_tokens = false;
  };
  struct RankStep {
    std::uint32_t step = 0;
    bool open = false;
    std::int64_t paused_ns = 0;
    std::uint32_t first_step = UINT32_MAX;
    std::int64_t last_ns = INT64_MIN;  ///< of its latest begin or end
  };
  /// A value of a step that has no row yet.
  struct Early {
    ev::Event event;
    std::int64_t at_ns = 0;
  };
  [[nodiscard]] std::size_t place_of(std::uint32_t step) const;  ///< index of its row, or where to insert it
  [[nodiscard]] bool has_row(std::size_t place, std::uint32_t step) const;
  std::size_t index_of(std::uint32_t step);  ///< inserts the row if there is none
  void keep_for_later(const ev::Event& event, std::int64_t at_ns);
  void evict_oldest();
  /// Whether an event is of an attempt whose row of the step was removed.
  [[nodiscard]] bool was_repeated(std::uint32_t step, std::int64_t at_ns) const;
  void begin_again(std::uint32_t step, std::int64_t after_ns, std::int64_t at_ns);
  /// Likewise where a rank goes back to a step before the rows that are kept.
  void begin_below(std::uint32_t rank, std::uint32_t step, std::int64_t at_ns);
  void set_value(std::size_t index, const ev::Event& event);
  void end_of_rank(std::size_t index, std::optional<std::int64_t> at_ns);
  /// The state of a rank that has an event of this step.
  RankStep& current_of(std::uint32_t rank, std::uint32_t step);
  [[nodiscard]] std::uint32_t awaited(std::uint32_t step) const;  ///< ranks
  void judge_end(std::size_t index);
  void judge_ends(std::uint32_t from_step);

  std::vector<StepRow> rows_;  ///< by step
  std::vector<Sums> sums_;
  std::map<std::uint32_t, std::vector<Early>> early_;  ///< by step
  std::unordered_map<std::uint32_t, RankStep> ranks_;
  std::vector<Rewind> rewinds_;
  std::uint32_t world_ = 1;
  std::map<std::uint32_t, std::uint32_t> first_steps_;  ///< number of ranks by their first step
  std::int64_t first_end_ns_ = INT64_MAX;               ///< of any rank's step
  bool all_came_ = false;                               ///< [Note: ranks that a step waits for]
  std::size_t most_ = SIZE_MAX;
  std::uint64_t evicted_ = 0;     ///< rows
  std::uint32_t first_kept_ = 0;  ///< step
};

}  // namespace shardscope::store
