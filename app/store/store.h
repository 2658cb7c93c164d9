// The store: all data that views and exports read. A live run and a recording are the same to it.
// One thread owns a Store; chunks are added by ingest(). Times are nanoseconds on the run's
// common clock (collector clock), 0 = first event of the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "app/store/store_query.h"

namespace shardscope::store {

class Chunk;  // chunk.h

/// [Note: what is in memory]
/// A rank's newest events, some ten thousand, are in memory. Older ones are sealed into blocks: a block's
/// events stay compressed, in the recording or in memory, and are read when a query needs them, through a
/// bounded cache. A few kilobytes of each block are always in memory: coarse levels of detail, sums,
/// and a keyframe from which its events can be decoded without those before it. So the cost of a view depends
/// on its columns, and a state at a time costs a block or two of each rank.
///
/// [Note: eviction]
/// A live run may last for days. Where a store has bounds, packed parts of older blocks go to a temporary
/// file first. When that is full, or the few kilobytes per block exceed their bound, the oldest
/// blocks are evicted, as a collector drops the oldest part of its log. What remains of them: levels of
/// detail of the whole row, memory peaks by interval, sums, totals and counts. Their spans, instants and
/// states are lost. A Gap takes their place, so that their absence is not taken for an idle rank.
/// A recording still has them.
/// Only the owner takes in events and sets bounds, by the members below: the dashboard's connection (live), a
/// recorder, open_recording() through RecordedRun (a file). All others ask, by the members of StoreQuery
/// (store_query.h), and get a `const Store&`. RecordingWriter, which writes a file, is separate.
class Store : public StoreQuery {
 public:
  explicit Store(Keep keep = Keep::everything);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  // ---- input ------------------------------------------------------------------------------------
  /// Wrong input is never fatal: a chunk that was ingested before (same rank and sequence) is ignored, a
  /// missing one becomes a Gap, invalid events are skipped.
  void set_tables(std::uint32_t rank, const ev::RunTables& tables);
  void ingest(const Chunk& chunk);
  void set_rank(const RankRow& row);
  void add_message(Message message);
  void add_name(std::uint32_t rank, std::uint32_t id, std::string name);

  // ---- memory bounds ------------------------------------------------------------------------------
  static constexpr std::size_t kSealEvents = std::size_t{1} << 13;
  /// A rank's newest events are sealed when there are this many, or fewer with many ranks. SIZE_MAX: never.
  void seal_after(std::size_t events);
  void set_cache_bytes(std::size_t bytes);  ///< of data read from blocks; default 256 MiB
  /// Call before any input. [Note: eviction]
  void bound(const Bounds& bounds);

 private:
  friend class RecordedRun;  // recorded_run.h: fills a store from a recording
};

}  // namespace shardscope::store
