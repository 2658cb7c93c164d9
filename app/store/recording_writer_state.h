// What a RecordingWriter holds, and its functions by file: chunks with their blocks, and changes of parts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "app/store/block_maker.h"
#include "app/store/compaction.h"
#include "app/store/early_stop.h"
#include "app/store/next_part.h"
#include "app/store/recording.h"
#include "app/store/recording_parts.h"
#include "app/store/recording_sums.h"
#include "app/store/rotation.h"
#include "app/store/table_rows.h"
#include "app/store/wall_clock.h"
#include "app/store/written_file.h"

namespace shardscope::store {

struct RecordingWriter::State {
  std::string path;
  std::string place;                 ///< absolute, independent of the working folder
  std::unique_ptr<WrittenFile> out;  ///< null after finish()
  Compaction compaction;
  BlockMaker blocks;
  std::map<std::uint32_t, std::vector<std::int64_t>> untiled;  ///< rows of blocks without a tile, by rank
  std::optional<SumsWriter> sums;                              ///< only with limits or parts
  std::int64_t last_id = 0;                                    ///< largest id of a chunk
  std::chrono::steady_clock::time_point last_commit = std::chrono::steady_clock::now();
  std::string error;
  WallClock wall_clock = WallClock::of_the_collector;
  TableRows table_rows;
  std::optional<ev::RunTables> only_lists;  ///< set while only one rank's tables have the lists
  std::set<std::uint32_t> whole_tables;  ///< ranks whose row of `tables` has modules, parameters and slices
  std::uint64_t chunks = 0, events = 0;
  EarlyStop early_stop;
  std::optional<std::int64_t> origin_ns;  ///< as Store computes it; maps message times to collector clock

  // Used in a recording in parts only.
  Rotation rotation;
  PartIdentity part;       ///< the part being written
  PartRow blocks_of_part;  ///< time range and events of its blocks
  PartFill fill;
  std::set<std::uint32_t> tails_of_part;  ///< ranks with a row in `tails` and no block yet
  std::thread closing;                    ///< closes the previous part
  std::chrono::steady_clock::time_point next_try{};

  template <typename Work>
  void guarded(Work work);
  void took(const Chunk& chunk);
  [[nodiscard]] bool commit();
  void write_end(const Store& store);
  void message(const Message& message);

  // recording_writer_chunks.cpp
  void insert(const Chunk& chunk, std::span<const std::byte> encoded);
  Chunk::Times insert_row(std::int64_t id, const Chunk& chunk, std::span<const std::byte> encoded);
  void complete(const Compaction::Rows& rows);
  void add_block_of(std::int64_t id, const Chunk& chunk, std::size_t chunk_bytes);
  void add_tile_of(const std::vector<std::int64_t>& rows);

  // recording_writer_parts.cpp
  void count_block(const Block& block);
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] PartRow row_of_part(PartEnd why) const;
  [[nodiscard]] std::optional<PartEnd> part_ends(std::int64_t now_ns);
  void change_part(const Store& store, PartEnd why);
  void go_on_in(const PartIdentity& next);
  void wait_for_closing() {
    if (closing.joinable()) closing.join();
  }
  [[nodiscard]] bool commit_due() const {
    constexpr std::chrono::milliseconds kCommitInterval{500};
    return std::chrono::steady_clock::now() - last_commit >= kCommitInterval;
  }
};

/// Runs `work` within a transaction, begun if none is open. The first failure ends the recording: data
/// committed before it stays in the file, and error() returns the reason.
template <typename Work>
void RecordingWriter::State::guarded(Work work) {
  if (!error.empty() || !out) return;
  try {
    out->begin_if_needed();
    work();
  } catch (const std::exception& failure) {
    if (out == nullptr) {
      error = "recording " + path + ": " + failure.what();
      return;
    }
    const bool in_place = out->is_in_place();
    error =
        "recording " + path + ": " + failure.what() +
        (in_place ? "; recording has stopped, what was written before is kept" : "; recording has stopped");
    Database& database = out->database();
    if (!in_place) database.abandon_log();
    try {
      if (database.in_transaction()) database.execute("ROLLBACK");
    } catch (const std::exception&) {  // the next connection that opens the file discards the transaction
    }
    if (in_place) early_stop.stopped(database, failure.what());
  }
}

}  // namespace shardscope::store
