// What a recording fills a store with: its blocks, sums of what was not kept, damage, and where it goes on.
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

/// Fills `store`, which outlives it and has nothing yet: first set_rows() and the tables, then the blocks of
/// each rank in order. What a live run would hand over as well (tables, ranks, messages) goes to the store
/// itself.
class RecordedRun {
 public:
  explicit RecordedRun(Store& store) : store_(store) {}

  void set_rows(std::unique_ptr<BlockRows> rows);
  void append(Block block);
  /// What follows a rank's last block begins with this. Where it is not known the last block is read for it.
  void resume_from(std::uint32_t rank, BlockTail tail);
  void resume_from_last_block(std::uint32_t rank);
  /// A chunk that has no block yet and stays where it is, in row `row`.
  void ingest(const Chunk& chunk, std::int64_t row);
  /// What a rank's next chunk would have been, had it not been damaged: a Gap.
  struct Damaged {
    std::uint32_t rank = 0;
    std::uint64_t sequence = 0;
    std::uint32_t parts = 1;
    std::uint64_t events = 0;               ///< 0: not known
    std::int64_t begin_ns = 0, end_ns = 0;  ///< collector clock
  };
  void note_damaged(const Damaged& chunk);
  /// The recording ends before `rank` does: a Gap from its last event to the run's end. `events`: how many
  /// were counted but are absent; with 0 there is a Gap only where other ranks have later events.
  void note_cut_off(std::uint32_t rank, std::uint64_t events);
  /// A block whose events the recorder did not keep (block_sum.h): a Gap, of which sums, levels of detail and
  /// peaks are known. `events`: how many. `rare`: is_rare() instants of its time, collector clock.
  /// `blocks_follow`: as RankRun::append_sum().
  void append_sum(Block block, std::uint64_t events, std::span<const ev::Event> rare, bool blocks_follow);
  /// The same for a block whose figures alone are read now: RankRun::append(). Behind the first one of a rank
  /// all of its blocks come so.
  void append_sum(PackedBlock packed, const RankFigures* figures, std::uint64_t events,
                  std::span<const ev::Event> rare);
  void append(PackedBlock packed, const RankFigures& figures);
  /// Rows of steps of which events were not kept, with times of the collector's clock, ascending: what comes
  /// later of steps up to `through` does not change them. Before anything that has events. `origin_ns`: the
  /// earliest event of which anything is known, collector clock.
  void restore_steps(std::vector<StepRow> rows, std::uint32_t through, std::int64_t origin_ns);
  /// A stretch that the recorder kept at full detail for what happened in it.
  void add_moment(Moment moment);
  /// By rank and step.
  void set_own_times(std::vector<OwnTimeRow> rows);

 private:
  Store& store_;
};

}  // namespace shardscope::store
