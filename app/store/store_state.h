// The implementation of a Store, shared by these files and no others:
// store_intake.cpp      input from a live run
// recorded_run.cpp      input from a recording (RecordedRun)
// store_arrivals.cpp    the part common to both: adding a block or chunk
// store.cpp             its life and bounds
// store_query.cpp       queries about the run as a whole
// store_views.cpp       queries about lanes, instants and states
#pragma once

#include <functional>
#include <map>
#include <unordered_map>

#include "app/store/block_access.h"
#include "app/store/clock_residuals.h"
#include "app/store/rank_run.h"
#include "app/store/row_pictures.h"
#include "app/store/run_clock.h"
#include "app/store/run_facts.h"
#include "app/store/run_notes.h"
#include "app/store/span_totals.h"
#include "app/store/step_table.h"
#include "app/store/store.h"
#include "app/store/tables_of_ranks.h"

namespace shardscope::store {

/// Data of one rank.
struct RankData {
  RankData(std::uint32_t rank, BlockAccess& access, Keep keep) : run(rank, access, keep) {}
  RankRun run;
  std::uint64_t next_sequence = 0;
  ClockDriftEstimate drift;
  ClockResiduals residuals;
  bool has_events = false;
  std::uint64_t not_kept_until = 0;  ///< sequence: end of the last sum, whose chunks were not kept
};

/// A chunk or block of events that is added, live or from a recording.
struct Arrival {
  std::uint32_t rank = 0;
  std::uint64_t sequence = 0;
  std::uint32_t parts = 1;
  std::uint64_t events = 0, dropped_before = 0, lost_before = 0, shed_before = 0, lost_between = 0;
  std::int64_t missing_begin_ns = 0, missing_end_ns = 0;  ///< as in Chunk
  std::int64_t begin_ns = 0, end_ns = 0;                  ///< collector clock
  std::int64_t clock_offset_ns = 0, clock_residual_ns = 0;
  bool usable = true;
  bool sum = false;  ///< a sum of several blocks
};
/// Adds the events of an arrival. `gap`: events are missing before them.
using TakeEvents = std::function<void(RankRun& run, bool gap)>;

struct StoreQuery::State {
  /// Most memory for messages; less where only totals are kept, as in a recorder that runs for days.
  static constexpr std::size_t kTextBytes = std::size_t{32} << 20, kTextBytesOfTotals = std::size_t{4} << 20;

  explicit State(Keep k) : keep(k), messages(k == Keep::totals ? kTextBytesOfTotals : kTextBytes) {}

  Keep keep;
  std::uint64_t revision = 0;
  BlockAccess access;
  std::size_t seal_events = Store::kSealEvents;
  std::map<std::uint32_t, RankData> ranks;
  std::vector<RankRow> rows;  ///< by rank
  TablesOfRanks tables;
  StepTable steps;
  MessageList messages;
  GapList gaps;
  std::size_t damage_taken = 0;  ///< entries of access.damage() that are in gaps
  std::unordered_map<std::uint64_t, std::string> names;
  RunClock clock;
  std::int64_t end_ns = 0;
  NotKept not_kept;
  std::vector<Moment> moments;
  std::vector<OwnTimeRow> own_times;
  Evicted evicted;  ///< until_ns: collector clock; without steps, which the step table counts
  std::uint64_t events = 0, dropped = 0;
  std::vector<DensityBucket> buckets;  ///< for density(), a member to reuse its memory
  RowPictures pictures;

  std::optional<std::int32_t> applied_stage;
  void apply_stage(std::int32_t stage);
  RankData& data(std::uint32_t rank);
  RankRow& row(std::uint32_t rank);
  [[nodiscard]] const RankRun* run(std::uint32_t rank) const;
  void shift(std::int64_t delta_ns);
  void take_damage();
  /// Returns whether events are missing before `arrival`, and adds a gap if so.
  bool note_gap(const RankData& data, const RankRow& row, const Arrival& arrival);
  /// Updates origin, gaps and counts, and calls `take`.
  void arrive(const Arrival& arrival, const TakeEvents& take);
  /// The same for a sum of `count` events that were not kept.
  void arrive_sum(Arrival arrival, std::uint64_t count, const TakeEvents& take);
  void ingest(const Chunk& chunk, RankRun::Origin origin);
  void take_notable(std::uint32_t rank, RankRun& run);
};

}  // namespace shardscope::store
