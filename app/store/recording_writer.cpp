#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "app/store/block_maker.h"
#include "app/store/checkpointer.h"
#include "app/store/compaction.h"
#include "app/store/crc32.h"
#include "app/store/database.h"
#include "app/store/early_stop.h"
#include "app/store/recording.h"
#include "app/store/recording_lock.h"
#include "app/store/recording_rows.h"
#include "app/store/recording_schema.h"
#include "app/store/recording_summary.h"
#include "app/store/recording_sums.h"
#include "app/store/run_tables_codec.h"
#include "app/store/table_checksums.h"
#include "app/store/table_rows.h"
#include "app/store/tile.h"
#include "app/store/wall_clock.h"

namespace shardscope::store {

bool is_recording(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // a pipe would be waited for
  constexpr std::size_t kApplicationId = 68;                           // big-endian
  std::array<unsigned char, kApplicationId + 4> head{};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(head.data()), sizeof head);
  std::uint32_t id = 0;
  for (std::size_t i = kApplicationId; i < head.size(); ++i) id = id << 8 | head[i];
  return std::memcmp(head.data(), "SQLite format 3", 16) == 0 && id == std::uint32_t{kRecordingApplicationId};
}

namespace {

constexpr std::chrono::milliseconds kCommitInterval{500};
constexpr std::size_t kWholeTables = 2;

/// Which file a path names; nothing if none.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
FileIdentity identity_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino};
}

/// A recording is replaced, as every program replaces its output; any other file is not.
void make_room(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    throw std::runtime_error("recording " + path + ": is a folder; name a file in it");
  }
  // Before anything here opens the file: to close it again would end SQLite's locks of this process on it.
  RecordingLock::check(path);
  if (fs::exists(status) && fs::file_size(path, ignored) > 0) {
    if (!is_recording(path)) {
      throw std::runtime_error("recording " + path +
                               ": this file exists and is not a recording; choose another name or remove it");
    }
  }
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    const std::string file = path + suffix;
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
      throw std::runtime_error("recording " + path +
                               ": cannot replace the old file: " + std::strerror(errno));
    }
  }
}

}  // namespace

struct RecordingWriter::State {
  std::string path;
  std::string place;  ///< the same wherever the program goes
  FileIdentity file;
  RecordingLock lock;  ///< until `database` has closed
  std::optional<Database> database;
  std::optional<Checkpointer> checkpointer;  ///< gone before `database` closes
  Statement add_chunk, get_chunk, drop_chunk, add_block, add_levels, get_levels, add_tile, add_message,
      add_name, put_rank, put_tables;
  Compaction compaction;
  BlockMaker blocks;
  std::map<std::uint32_t, std::vector<std::int64_t>> untiled;  ///< rows of blocks without a tile, by rank
  std::optional<SumsWriter> sums;                              ///< where not everything is kept
  std::int64_t last_id = 0;                                    ///< of a chunk
  std::chrono::steady_clock::time_point last_commit = std::chrono::steady_clock::now();
  std::string error;
  WallClock wall_clock = WallClock::of_the_collector;
  TableRows table_rows;
  std::optional<ev::RunTables> only_lists;  ///< while one rank's tables alone have them
  std::set<std::uint32_t> whole_tables;  ///< ranks whose row of `tables` has modules, parameters and slices
  std::uint64_t chunks = 0, events = 0;
  EarlyStop early_stop;
  std::optional<std::int64_t> origin_ns;  ///< as Store computes it, to keep messages on the collector's clock

  template <typename Work>
  void guarded(Work work);
  void took(const Chunk& chunk);
  void begin_if_needed();
  [[nodiscard]] bool is_in_place() const { return identity_of(place) == file; }
  /// Throws when the path names another file by now, or none: what is written is in no folder any more.
  void check_place() const;
  void insert(const Chunk& chunk, std::span<const std::byte> encoded);
  std::int64_t insert_row(std::int64_t id, const Chunk& chunk, std::span<const std::byte> encoded);
  void complete(const Compaction::Rows& rows);
  void add_block_of(std::int64_t id, const Chunk& chunk, std::size_t chunk_bytes);
  void add_tile_of(const std::vector<std::int64_t>& rows);
  void add_tails();
  [[nodiscard]] bool commit_due() const {
    return std::chrono::steady_clock::now() - last_commit >= kCommitInterval;
  }
};

/// Runs `work` inside the open transaction. The first failure ends the recording: what was committed
/// stays, and error() says why there is no more.
template <typename Work>
void RecordingWriter::State::guarded(Work work) {
  if (!error.empty() || !database) return;
  try {
    begin_if_needed();
    work();
  } catch (const std::exception& failure) {
    error = "recording " + path + ": " + failure.what() +
            (is_in_place() ? "; recording has stopped, what was written before is kept"
                           : "; recording has stopped");
    if (!is_in_place()) database->abandon_log();
    try {
      if (database->in_transaction()) database->execute("ROLLBACK");
    } catch (const std::exception&) {  // nothing more can be done; the log is rolled back on opening
    }
    if (is_in_place()) early_stop.stopped(*database, failure.what());
  }
}

void RecordingWriter::State::begin_if_needed() {
  if (!database->in_transaction()) database->execute("BEGIN IMMEDIATE");
}

void RecordingWriter::State::check_place() const {
  if (!is_in_place()) {
    throw std::runtime_error(
        "the file was removed or replaced while it was written, by another recording perhaps");
  }
}

RecordingWriter::RecordingWriter(const std::string& path, const Retention& retention, WallClock clock)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path;
  s.wall_clock = clock;
  s.place = std::filesystem::absolute(path);
  make_room(path);
  try {
    s.database.emplace(path, Database::Access::create);
    Database& db = *s.database;
    // Until its first events a file holds nothing that a machine's failure could lose, and the programs that
    // are recorded start only when it is there: each wait for the disk would delay them.
    db.execute("PRAGMA synchronous = OFF");
    // Every block leaves half a page empty on average in each of three tables.
    db.execute("PRAGMA page_size = 2048");
    db.execute("PRAGMA auto_vacuum = INCREMENTAL");
    db.execute("PRAGMA cache_size = -4096");
    db.execute("BEGIN IMMEDIATE");
    db.execute("PRAGMA application_id = " + std::to_string(kRecordingApplicationId));
    db.execute("PRAGMA user_version = " + std::to_string(kWholeRecordingVersion));
    db.execute(kRecordingSchema);
    create_steps(db);
    db.execute("INSERT INTO meta VALUES('complete', 0)");
    if (retention.limited()) {
      s.sums.emplace(db, retention);
      s.blocks.sketch(s.sums->sketches());
      s.blocks.measure(s.sums->own_times());
    }
    db.execute("COMMIT");
    s.file = identity_of(s.place);
    s.lock.take(path);
    // From here on a write-ahead log: commits are cheap and readers are left alone. The tables are in the
    // file itself by now, so that even a copy without the log opens. finish() folds the log into the file.
    db.execute("PRAGMA journal_mode = WAL");
    db.execute("PRAGMA synchronous = NORMAL");
    db.leave_log();
    s.checkpointer.emplace(path);
    s.early_stop = EarlyStop(path);
    s.add_chunk = db.prepare("INSERT INTO chunks VALUES(?12, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
    s.get_chunk = db.prepare("SELECT bytes FROM chunks WHERE id = ?1");
    s.drop_chunk = db.prepare("DELETE FROM chunks WHERE id = ?1");
    s.add_block = db.prepare("INSERT INTO blocks VALUES(?1, ?2)");
    s.add_levels = db.prepare("INSERT INTO levels VALUES(?1, ?2, ?3)");
    s.get_levels = db.prepare("SELECT bytes FROM levels WHERE id = ?1");
    s.add_tile = db.prepare("INSERT INTO tiles VALUES(?1, ?2)");
    s.add_message = db.prepare("INSERT INTO messages VALUES(NULL, ?1, ?2, ?3, ?4, ?5)");
    s.add_name = db.prepare("INSERT OR REPLACE INTO names VALUES(?1, ?2, ?3, ?4)");
    s.put_rank = db.prepare(
        "INSERT OR REPLACE INTO ranks VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
        "?15, ?16, ?17)");
    s.put_tables = db.prepare("INSERT OR REPLACE INTO tables VALUES(?1, ?2, ?3)");
  } catch (const DatabaseError& failure) {
    throw std::runtime_error("recording " + path + ": cannot create it: " + failure.what() +
                             "; check that the folder exists, is writable and has room");
  }
}

RecordingWriter::~RecordingWriter() {
  if (state_ == nullptr) return;
  commit();
  if (state_->database && state_->is_in_place()) state_->early_stop.recorder_ended(*state_->database);
}

void RecordingWriter::tables(std::uint32_t rank, const ev::RunTables& tables) {
  state_->guarded([&] {
    // The lists are the same on every rank; two copies of them are enough to survive damage to one. A
    // collector hands its viewers one alone.
    ev::RunTables own = tables;
    std::set<std::uint32_t>& whole = state_->whole_tables;
    if (whole.size() >= kWholeTables && !whole.contains(rank)) {
      own.drop_lists();
    } else if (own.modules.empty() && own.params.empty() && state_->only_lists && !whole.contains(rank)) {
      own.take_lists(*state_->only_lists);
    }
    if (!own.modules.empty()) {
      whole.insert(rank);
      state_->only_lists = whole.size() < kWholeTables ? std::optional(own) : std::nullopt;
    }
    if (!tables.simulated && state_->wall_clock == WallClock::of_the_collector)
      write_wall_clock(*state_->database);
    const std::vector<std::byte> bytes = encode_tables(own);
    state_->put_tables.bind(1, std::int64_t{rank})
        .bind(2, bytes)
        .bind(3, std::int64_t{crc32c(bytes.data(), bytes.size())});
    state_->put_tables.run();
    state_->blocks.tables(tables);
    state_->table_rows.write(*state_->database, rank, tables);
  });
}

/// Returns the time of its earliest event.
std::int64_t RecordingWriter::State::insert_row(std::int64_t id, const Chunk& chunk,
                                                std::span<const std::byte> encoded) {
  const auto [begin, end] = chunk.times();
  if (!chunk.events.empty()) early_stop.reached(end + chunk.clock_offset_ns);
  add_chunk.bind(1, std::int64_t{chunk.rank}).bind(2, static_cast<std::int64_t>(chunk.sequence));
  add_chunk.bind(3, begin).bind(4, end);
  add_chunk.bind(5, chunk.clock_offset_ns).bind(6, chunk.clock_residual_ns);
  add_chunk.bind(7, static_cast<std::int64_t>(chunk.events.size()));
  add_chunk.bind(8, static_cast<std::int64_t>(chunk.dropped_before));
  add_chunk.bind(9, static_cast<std::int64_t>(chunk.lost_before)).bind(10, std::int64_t{chunk.parts});
  add_chunk.bind(11, encoded).bind(12, id).run();
  return begin;
}

void RecordingWriter::State::add_block_of(std::int64_t id, const Chunk& chunk, std::size_t chunk_bytes) {
  const std::optional<Block> block = blocks.make(chunk);
  if (!block) return;
  const std::vector<std::byte> packed = encode_block(*block);
  add_block.bind(1, id).bind(2, packed).run();
  add_levels.bind(1, id).bind(2, block->statuses).bind(3, block->page).run();
  if (sums) {
    // Tiles are of blocks numbered from the first on: a few that stay have none.
    constexpr std::size_t kRowsOfABlock = 2048;  // what their pages leave empty, and their keys
    sums->wrote(*block, id,
                chunk_bytes + packed.size() + block->statuses.size() + block->page.size() + kRowsOfABlock);
    return;
  }
  std::vector<std::int64_t>& rows = untiled[chunk.rank];
  rows.push_back(id);
  if (rows.size() < kTileBlocks) return;
  add_tile_of(rows);
  rows.clear();
}

/// Levels of detail are read back instead of kept, so that memory does not grow with the number of ranks.
void RecordingWriter::State::add_tile_of(const std::vector<std::int64_t>& rows) {
  TileMaker tile;
  for (const std::int64_t id : rows) {
    get_levels.bind(1, id);
    if (!get_levels.step()) throw std::runtime_error("levels of detail that were written are not there");
    const std::span<const std::byte> bytes = get_levels.bytes(0);
    tile.append(decode_page(bytes.data(), bytes.size(), DensityPyramid::Levels::finest));
    get_levels.reset();
  }
  for (const TileRow& row : tile.rows()) {
    add_tile.bind(1, tile_id(rows.back(), row.row)).bind(2, row.bytes).run();
  }
}

void RecordingWriter::State::add_tails() {
  Statement add = database->prepare("INSERT OR REPLACE INTO tails VALUES(?1, ?2, ?3)");
  for (const Block& tail : blocks.tails()) {
    add.bind(1, std::int64_t{tail.rank}).bind(2, tail.statuses).bind(3, encode_block(tail)).run();
  }
}

/// Replaces small chunks by one and adds its block. Within the open transaction, so that a crash leaves
/// either these or that. They are read back instead of kept, so that memory does not grow with the number of
/// ranks.
void RecordingWriter::State::complete(const Compaction::Rows& rows) {
  std::vector<Chunk> parts;
  parts.reserve(rows.size());
  std::size_t read = 0;
  for (const std::int64_t id : rows) {
    get_chunk.bind(1, id);
    if (!get_chunk.step()) return;
    const std::span<const std::byte> bytes = get_chunk.bytes(0);
    read += bytes.size();
    try {
      parts.push_back(Chunk::decode(bytes.data(), bytes.size()));
    } catch (const std::runtime_error&) {
      get_chunk.reset();
      return;  // damaged before it came here: stays as it is, for a reader to name
    }
    get_chunk.reset();
  }
  const Chunk whole = joined(parts);
  std::size_t bytes = read;
  if (rows.size() > 1) {
    for (const std::int64_t id : rows) drop_chunk.bind(1, id).run();
    // In the place of the last, because a large chunk of the rank may have come since.
    const std::vector<std::byte> encoded = whole.encode();
    bytes = encoded.size();
    insert_row(rows.back(), whole, encoded);
  }
  add_block_of(rows.back(), whole, bytes);
}

void RecordingWriter::State::insert(const Chunk& chunk, std::span<const std::byte> encoded) {
  const std::int64_t id = ++last_id;
  const std::int64_t begin = insert_row(id, chunk, encoded);
  for (const Compaction::Rows& rows : compaction.wrote(id, chunk)) {
    if (rows == Compaction::Rows{id}) {
      add_block_of(id, chunk, encoded.size());  // it is here: nothing has to be read back
    } else {
      complete(rows);
    }
  }
  chunks += chunk.parts;
  events += chunk.events.size();
  if (!chunk.events.empty()) {
    origin_ns = std::min(origin_ns.value_or(INT64_MAX), begin + chunk.clock_offset_ns);
  }
}

void RecordingWriter::State::took(const Chunk& chunk) {
  early_stop.received(chunk.events.size());
  if (!error.empty() && database && is_in_place()) early_stop.update(*database);
}

void RecordingWriter::append(const Chunk& chunk) {
  state_->took(chunk);
  state_->guarded([&] { state_->insert(chunk, chunk.encode()); });
  if (state_->commit_due()) commit();
}

void RecordingWriter::append(const Chunk& chunk, std::span<const std::byte> encoded) {
  state_->took(chunk);
  state_->guarded([&] { state_->insert(chunk, encoded); });
  if (state_->commit_due()) commit();
}

void RecordingWriter::rank(const RankRow& row) {
  Statement& put = state_->put_rank;
  state_->guarded([&] {
    put.bind(1, std::int64_t{row.rank}).bind(2, row.host).bind(3, std::int64_t{row.pid});
    put.bind(4, std::int64_t{row.connected})
        .bind(5, std::int64_t{row.finished})
        .bind(6, std::int64_t{row.exit_code});
    put.bind(7, row.exit_message).bind(8, static_cast<std::int64_t>(row.events));
    put.bind(9, static_cast<std::int64_t>(row.dropped))
        .bind(10, static_cast<std::int64_t>(row.lost_messages));
    put.bind(11, row.clock_offset_ns).bind(12, row.clock_residual_ns);
    put.bind(13, static_cast<std::int64_t>(row.gate.number))
        .bind(14, static_cast<std::int64_t>(row.gate.kind));
    put.bind(15, std::int64_t{row.gate.id}).bind(16, std::int64_t{row.gate.holding});
    put.bind(17, std::int64_t{row_crc(row)}).run();
  });
}

void RecordingWriter::message(const Message& message) {
  State& s = *state_;
  s.guarded([&] {
    const std::int64_t at = message.at_ns + s.origin_ns.value_or(0);
    s.add_message.bind(1, std::int64_t{message.rank}).bind(2, at);
    s.add_message.bind(3, static_cast<std::int64_t>(message.severity)).bind(4, message.text);
    s.add_message.bind(5, std::int64_t{row_crc(message, at)}).run();
  });
}

void RecordingWriter::name(std::uint32_t rank, std::uint32_t id, const std::string& name) {
  state_->guarded([&] {
    state_->add_name.bind(1, std::int64_t{rank}).bind(2, std::int64_t{id}).bind(3, name);
    state_->add_name.bind(4, std::int64_t{row_crc(rank, id, name)}).run();
  });
}

void RecordingWriter::retain(const Store& store, std::int64_t now_ns) {
  State& s = *state_;
  if (!s.sums) return;
  s.guarded([&] { s.sums->retain(*s.database, store, now_ns); });
}

void RecordingWriter::keep(Moment moment) {
  State& s = *state_;
  if (s.sums) s.sums->keep(std::move(moment));
}

void RecordingWriter::commit() {
  State& s = *state_;
  s.last_commit = std::chrono::steady_clock::now();
  if (!s.database || !s.error.empty() || !s.database->in_transaction()) return;
  s.guarded([&] {
    s.check_place();
    s.database->execute("COMMIT");
    s.early_stop.committed();
  });
  if (s.error.empty()) s.checkpointer->committed(*s.database);
}

void RecordingWriter::finish(const Store& store) {
  State& s = *state_;
  for (const RankRow& row : store.ranks()) rank(row);
  s.guarded([&] {
    s.check_place();
    for (const Compaction::Rows& rows : s.compaction.rest()) s.complete(rows);
    for (const auto& [rank, blocks] : s.untiled) {
      if (blocks.size() > 1) s.add_tile_of(blocks);
    }
    s.add_tails();
    s.blocks.measure_rest();
    if (s.sums) s.sums->finish(*s.database, store);
    write_summary(*s.database, store);
    s.database->execute("INSERT OR REPLACE INTO meta VALUES('complete', 1), ('chunks', " +
                        std::to_string(s.chunks) + "), ('events', " + std::to_string(s.events) + ")");
    write_table_checksums(*s.database);
    s.database->execute("COMMIT");
    s.early_stop.committed();
    // Back to a single file that can be copied and opened anywhere, unless a reader has it open at this
    // moment: then the log stays beside it, and the next one to open the file folds it in.
    for (Statement* statement :
         {&s.add_chunk, &s.get_chunk, &s.drop_chunk, &s.add_block, &s.add_levels, &s.get_levels, &s.add_tile,
          &s.add_message, &s.add_name, &s.put_rank, &s.put_tables}) {
      *statement = Statement();
    }
    s.checkpointer.reset();
    // Pages that joining left free go back to the disk.
    s.database->execute("PRAGMA incremental_vacuum");
    s.database->execute_unless_busy("PRAGMA wal_checkpoint(TRUNCATE)");
    s.database->execute_unless_busy("PRAGMA journal_mode = DELETE");
    s.database->close();
    s.database.reset();
    s.lock.release();
  });
}

std::string RecordingWriter::error() const { return state_->error; }

}  // namespace shardscope::store
