// Input of a recording to a store: its blocks, sums of events not kept, damage, and the state at its end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "app/store/store.h"

namespace shardscope::store {

class BlockRows;     // block_access.h
struct Block;        // block.h
struct PackedBlock;  // block.h
struct RankFigures;  // rank_figures.h
struct BlockTail;    // block.h

/// Fills `store`, which must outlive it and be empty: first set_rows() and the tables, then the blocks of
/// each rank in order. Input that a live run has as well (tables, ranks, messages) is added to the store
/// itself.
class RecordedRun {
 public:
  explicit RecordedRun(Store& store) : store_(store) {}

  void set_rows(std::unique_ptr<BlockRows> rows);
  void append(Block block);
  /// State at the end of a rank's last block. Where it is unknown, resume_from_last_block() reads that block.
  void resume_from(std::uint32_t rank, BlockTail tail);
  void resume_from_last_block(std::uint32_t rank);
  /// A chunk that has no block and stays in row `row`.
  void ingest(const Chunk& chunk, std::int64_t row);
  /// The damaged chunk that would be a rank's next: becomes a Gap.
  struct Damaged {
    std::uint32_t rank = 0;
    std::uint64_t sequence = 0;
    std::uint32_t parts = 1;
    std::uint64_t events = 0;               ///< 0: unknown
    std::int64_t begin_ns = 0, end_ns = 0;  ///< collector clock
  };
  void note_damaged(const Damaged& chunk);
  /// The recording ends before `rank` does: adds a Gap from its last event to the run's end. `events`: number
  /// counted but absent; with 0 there is a Gap only where other ranks have later events.
  void note_cut_off(std::uint32_t rank, std::uint64_t events);
  /// A block whose events the recorder did not keep (block_sum.h): adds a Gap, for which sums, levels of
  /// detail and peaks are known. `events`: their number. `rare`: its is_rare() instants, collector clock.
  /// `blocks_follow`: as RankRun::append_sum().
  void append_sum(Block block, std::uint64_t events, std::span<const ev::Event> rare, bool blocks_follow);
  /// The same for a block of which only the figures are read now: RankRun::append(). After the first one, all
  /// blocks of the rank must be appended so.
  void append_sum(PackedBlock packed, const RankFigures* figures, std::uint64_t events,
                  std::span<const ev::Event> rare);
  void append(PackedBlock packed, const RankFigures& figures);
  /// Rows of steps whose events were not kept, times on the collector's clock, ascending: later events
  /// of steps up to `through` do not change them. Call before anything that has events. `origin_ns`: the
  /// earliest known event, collector clock.
  void restore_steps(std::vector<StepRow> rows, std::uint32_t through, std::int64_t origin_ns);
  /// The run is known as a whole: a step does not wait for ranks that are not in the recording.
  void all_ranks_came();
  /// An interval that the recorder kept at full detail because of an event in it.
  void add_moment(Moment moment);
  /// By rank and step.
  void set_own_times(std::vector<OwnTimeRow> rows);

 private:
  Store& store_;
};

}  // namespace shardscope::store
