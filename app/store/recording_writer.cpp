#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "app/store/block_maker.h"
#include "app/store/compaction.h"
#include "app/store/crc32.h"
#include "app/store/database.h"
#include "app/store/early_stop.h"
#include "app/store/next_part.h"
#include "app/store/recording.h"
#include "app/store/recording_parts.h"
#include "app/store/recording_place.h"
#include "app/store/recording_rows.h"
#include "app/store/recording_schema.h"
#include "app/store/recording_summary.h"
#include "app/store/recording_sums.h"
#include "app/store/run_tables_codec.h"
#include "app/store/table_checksums.h"
#include "app/store/table_rows.h"
#include "app/store/tile.h"
#include "app/store/wall_clock.h"
#include "app/store/written_file.h"

namespace shardscope::store {

namespace {

constexpr std::chrono::milliseconds kCommitInterval{500};
constexpr std::size_t kWholeTables = 2;

/// Delay before the next attempt if the next part could not be begun: a full disk seldom has room again soon.
constexpr std::chrono::seconds kTryAgain{60};

/// 32 random hexadecimal digits that identify the parts of one recording.
std::string random_series() {
  constexpr const char* kHex = "0123456789abcdef";
  std::random_device random;
  std::string out;
  for (int i = 0; i < 4; ++i) {
    for (std::uint32_t bits = random(), digit = 0; digit < 8; ++digit, bits >>= 4U) out += kHex[bits & 15U];
  }
  return out;
}

}  // namespace

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
  void insert(const Chunk& chunk, std::span<const std::byte> encoded);
  Chunk::Times insert_row(std::int64_t id, const Chunk& chunk, std::span<const std::byte> encoded);
  void complete(const Compaction::Rows& rows);
  void add_block_of(std::int64_t id, const Chunk& chunk, std::size_t chunk_bytes);
  void add_tile_of(const std::vector<std::int64_t>& rows);
  void count_block(const Block& block);
  void write_end(const Store& store);
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] PartRow row_of_part(PartEnd why) const;
  [[nodiscard]] std::optional<PartEnd> part_ends(std::int64_t now_ns);
  [[nodiscard]] bool commit();
  void change_part(const Store& store, PartEnd why);
  void go_on_in(const PartIdentity& next);
  void message(const Message& message);
  void wait_for_closing() {
    if (closing.joinable()) closing.join();
  }
  [[nodiscard]] bool commit_due() const {
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

RecordingWriter::RecordingWriter(const std::string& path, const Retention& retention, WallClock clock,
                                 const Rotation& rotation)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path;
  s.wall_clock = clock;
  s.rotation = rotation;
  s.place = std::filesystem::absolute(path);
  make_room(path, rotation.on() ? Parts::of_this_name : Parts::left_alone);
  const std::string file = rotation.on() ? part_path(s.place, 1) : path;
  try {
    make_recording_file(file, "", [&](Database& database) {
      if (rotation.on()) {
        s.part = {.series = random_series(), .part = 1};
        begin_parts(database, s.part);
      }
      if (!retention.limited() && !rotation.on()) return;
      s.sums.emplace(database, retention,
                     rotation.on() ? SumsWriter::Goes::on_in_parts : SumsWriter::Goes::in_one_file);
      s.blocks.sketch(s.sums->sketches());
      s.blocks.measure(s.sums->own_times());
    });
    s.out = std::make_unique<WrittenFile>(file);
    s.early_stop = EarlyStop(file);
    s.fill.begun_with = s.bytes();
  } catch (const DatabaseError& failure) {
    throw std::runtime_error("recording " + path + ": cannot create it: " + failure.what() +
                             "; check that the folder exists, is writable and has room");
  }
  if (!rotation.on()) return;
  try {
    link_to_part(s.place, file);
  } catch (const std::runtime_error& failure) {
    throw std::runtime_error("recording " + path + ": " + failure.what());
  }
}

RecordingWriter::~RecordingWriter() {
  if (state_ == nullptr) return;
  commit();
  state_->wait_for_closing();
  if (state_->out && state_->out->is_in_place()) state_->early_stop.recorder_ended(state_->out->database());
}

void RecordingWriter::tables(std::uint32_t rank, const ev::RunTables& tables) {
  state_->guarded([&] {
    // The lists (modules, parameters, slices) are equal on all ranks. Two copies are stored, which is enough
    // to survive damage to one. A viewer receives them from the collector with the tables of one rank only.
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
      write_wall_clock(state_->out->database());
    const std::vector<std::byte> bytes = encode_tables(own);
    Statement& put = state_->out->statements().put_tables;
    put.bind(1, std::int64_t{rank}).bind(2, bytes).bind(3, std::int64_t{crc32c(bytes.data(), bytes.size())});
    put.run();
    state_->blocks.tables(tables);
    state_->table_rows.write(state_->out->database(), rank, tables);
  });
}

/// Inserts the row of a chunk. Returns the times of its events, rank clock.
Chunk::Times RecordingWriter::State::insert_row(std::int64_t id, const Chunk& chunk,
                                                std::span<const std::byte> encoded) {
  const Chunk::Times times = chunk.times();
  const auto [begin, end] = times;
  if (!chunk.events.empty()) early_stop.reached(end + chunk.clock_offset_ns);
  Statement& add_chunk = out->statements().add_chunk;
  add_chunk.bind(1, std::int64_t{chunk.rank}).bind(2, static_cast<std::int64_t>(chunk.sequence));
  add_chunk.bind(3, begin).bind(4, end);
  add_chunk.bind(5, chunk.clock_offset_ns).bind(6, chunk.clock_residual_ns);
  add_chunk.bind(7, static_cast<std::int64_t>(chunk.events.size()));
  add_chunk.bind(8, static_cast<std::int64_t>(chunk.dropped_before));
  add_chunk.bind(9, static_cast<std::int64_t>(chunk.lost_before)).bind(10, std::int64_t{chunk.parts});
  add_chunk.bind(11, encoded).bind(12, id).run();
  return times;
}

void RecordingWriter::State::add_block_of(std::int64_t id, const Chunk& chunk, std::size_t chunk_bytes) {
  const std::optional<Block> block = blocks.make(chunk);
  if (!block) return;
  const std::vector<std::byte> packed = encode_block(*block);
  WrittenFile::Statements& statements = out->statements();
  statements.add_block.bind(1, id).bind(2, packed).run();
  statements.add_levels.bind(1, id).bind(2, block->statuses).bind(3, block->page).run();
  if (tails_of_part.erase(chunk.rank) != 0) statements.drop_tail.bind(1, std::int64_t{chunk.rank}).run();
  if (rotation.on()) count_block(*block);
  if (sums) {
    // No tiles: they cover fixed groups counted from a rank's first block, and here blocks may be deleted.
    constexpr std::size_t kRowsOfABlock = 2048;  // estimate of unused page space and keys
    sums->wrote(*block, id,
                chunk_bytes + packed.size() + block->statuses.size() + block->page.size() + kRowsOfABlock);
    sums->wrote_to_part(packed, id, chunk);
    return;
  }
  std::vector<std::int64_t>& rows = untiled[chunk.rank];
  rows.push_back(id);
  if (rows.size() < kTileBlocks) return;
  add_tile_of(rows);
  rows.clear();
}

/// Adds the tile of a group of blocks. Their levels of detail are read back from the file instead of kept, so
/// that memory does not grow with the number of ranks.
void RecordingWriter::State::add_tile_of(const std::vector<std::int64_t>& rows) {
  TileMaker tile;
  Statement& get_levels = out->statements().get_levels;
  for (const std::int64_t id : rows) {
    get_levels.bind(1, id);
    if (!get_levels.step()) throw std::runtime_error("levels of detail that were written are not there");
    const std::span<const std::byte> bytes = get_levels.bytes(0);
    tile.append(decode_page(bytes.data(), bytes.size(), DensityPyramid::Levels::finest));
    get_levels.reset();
  }
  for (const TileRow& row : tile.rows()) {
    out->statements().add_tile.bind(1, tile_id(rows.back(), row.row)).bind(2, row.bytes).run();
  }
}

/// Joins small chunks into one and adds its block, within the open transaction: after a crash the file has
/// either the small chunks or the joined one. The chunks are read back from the file instead of kept, so that
/// memory does not grow with the number of ranks.
void RecordingWriter::State::complete(const Compaction::Rows& rows) {
  std::vector<Chunk> parts;
  parts.reserve(rows.size());
  std::size_t read = 0;
  Statement& get_chunk = out->statements().get_chunk;
  for (const std::int64_t id : rows) {
    get_chunk.bind(1, id);
    if (!get_chunk.step()) return;
    const std::span<const std::byte> bytes = get_chunk.bytes(0);
    read += bytes.size();
    try {
      parts.push_back(Chunk::decode(bytes.data(), bytes.size()));
    } catch (const std::runtime_error&) {
      get_chunk.reset();
      return;  // damaged when received: stored unchanged, reported by readers
    }
    get_chunk.reset();
  }
  const Chunk whole = joined(parts);
  std::size_t bytes = read;
  if (rows.size() > 1) {
    for (const std::int64_t id : rows) out->statements().drop_chunk.bind(1, id).run();
    // Stored under the id of the last one, because a later large chunk of the rank may have been stored
    // since.
    const std::vector<std::byte> encoded = whole.encode();
    bytes = encoded.size();
    insert_row(rows.back(), whole, encoded);
  }
  add_block_of(rows.back(), whole, bytes);
}

void RecordingWriter::State::insert(const Chunk& chunk, std::span<const std::byte> encoded) {
  const std::int64_t id = ++last_id;
  const auto [begin, end] = insert_row(id, chunk, encoded);
  for (const Compaction::Rows& rows : compaction.wrote(id, chunk)) {
    if (rows == Compaction::Rows{id}) {
      add_block_of(id, chunk, encoded.size());  // still in memory: need not be read back
    } else {
      complete(rows);
    }
  }
  chunks += chunk.parts;
  events += chunk.events.size();
  if (!chunk.events.empty()) {
    origin_ns = std::min(origin_ns.value_or(INT64_MAX), begin + chunk.clock_offset_ns);
    if (!std::exchange(fill.has_events, true)) fill.first_ns = fill.last_ns = begin + chunk.clock_offset_ns;
    fill.last_ns = std::max(fill.last_ns, end + chunk.clock_offset_ns);
  }
}

void RecordingWriter::State::took(const Chunk& chunk) {
  early_stop.received(chunk.events.size());
  if (!error.empty() && out && out->is_in_place()) early_stop.update(out->database());
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
  state_->guarded([&] {
    Statement& put = state_->out->statements().put_rank;
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

void RecordingWriter::message(const Message& message) { state_->message(message); }

void RecordingWriter::State::message(const Message& message) {
  guarded([&] {
    const std::int64_t at = message.at_ns + origin_ns.value_or(0);
    Statement& add = out->statements().add_message;
    add.bind(1, std::int64_t{message.rank}).bind(2, at);
    add.bind(3, static_cast<std::int64_t>(message.severity)).bind(4, message.text);
    add.bind(5, std::int64_t{row_crc(message, at)}).run();
  });
}

void RecordingWriter::name(std::uint32_t rank, std::uint32_t id, const std::string& name) {
  state_->guarded([&] {
    Statement& add = state_->out->statements().add_name;
    add.bind(1, std::int64_t{rank}).bind(2, std::int64_t{id}).bind(3, name);
    add.bind(4, std::int64_t{row_crc(rank, id, name)}).run();
  });
}

void RecordingWriter::retain(const Store& store, std::int64_t now_ns) {
  State& s = *state_;
  if (!s.sums) return;
  s.guarded([&] { s.sums->retain(s.out->database(), store, now_ns); });
  std::optional<PartEnd> why;
  s.guarded([&] { why = s.part_ends(now_ns); });
  if (why) s.change_part(store, *why);
}

void RecordingWriter::keep(Moment moment) {
  State& s = *state_;
  if (s.sums) s.sums->keep(std::move(moment));
}

bool RecordingWriter::State::commit() {
  last_commit = std::chrono::steady_clock::now();
  if (!out || !error.empty() || !out->database().in_transaction()) return error.empty();
  guarded([&] {
    out->check_place();
    out->commit();
    early_stop.committed();
  });
  return error.empty();
}

void RecordingWriter::commit() {
  State& s = *state_;
  const bool open = s.out && s.error.empty() && s.out->database().in_transaction();
  if (s.commit() && open) s.out->committed();
}

std::uint64_t RecordingWriter::State::bytes() const {
  Database& database = out->database();
  return static_cast<std::uint64_t>(database.integer("PRAGMA page_count")) *
         static_cast<std::uint64_t>(database.integer("PRAGMA page_size"));
}

void RecordingWriter::State::count_block(const Block& block) {
  PartRow& row = blocks_of_part;
  row.begin_ns = row.events == 0 ? block.begin_ns : std::min(row.begin_ns, block.begin_ns);
  row.end_ns = row.events == 0 ? block.end_ns : std::max(row.end_ns, block.end_ns);
  row.events += block.events;
}

PartRow RecordingWriter::State::row_of_part(PartEnd why) const {
  PartRow row = blocks_of_part;
  row.part = part.part;
  row.file = std::filesystem::path(out->path()).filename().string();
  row.bytes = bytes();
  row.ended = name_of(why);
  return row;
}

/// Why the part ends now; nullopt: it does not. A part without blocks does not end: the next part would have
/// the same events.
std::optional<PartEnd> RecordingWriter::State::part_ends(std::int64_t now_ns) {
  if (!rotation.on() || !out || !error.empty() || blocks_of_part.events == 0) return std::nullopt;
  if (std::chrono::steady_clock::now() < next_try) return std::nullopt;
  fill.bytes = bytes();
  PartFill until_now = fill;
  // Event times after the collector's current time count as that time.
  until_now.last_ns = std::min(until_now.last_ns, std::max(now_ns, until_now.first_ns));
  return end_of_part(rotation, until_now);
}

/// Writes the tables that are made when a file ends.
void RecordingWriter::State::write_end(const Store& store) {
  Database& database = out->database();
  write_summary(database, store);
  database.execute("INSERT OR REPLACE INTO meta VALUES('complete', 1), ('chunks', " + std::to_string(chunks) +
                   "), ('events', " + std::to_string(events) + ")");
  write_table_checksums(database);
}

/// [Note: a change of parts]
/// If the recorder is killed between any two of these steps, no committed event is lost or read twice:
/// 1. All events received are committed to the part that ends.
/// 2. The next part is written completely, under a name that readers ignore. If this fails, recording
///    continues in the current part.
/// 3. The part that ends is completed in one transaction, and marked as followed.
/// 4. The next part is renamed to its final name. Readers use it from now on.
/// 5. The link is moved to the next part.
/// 6. Events are written to the next part. Parts beyond the limit are deleted.
/// The log of the part that has ended is folded in by a separate thread, because that waits for the disk.
void RecordingWriter::State::change_part(const Store& store, PartEnd why) {
  wait_for_closing();
  guarded([&] { sums->finish(out->database(), store); });
  if (!commit()) return;
  const PartRow ended = row_of_part(why);
  const std::vector<Block> tails = blocks.tails();
  PartIdentity next = part;
  ++next.part;
  next.first_part = std::max(part.first_part, first_kept(rotation, next.part));
  next.first_chunk = last_id + 1;
  const std::string made = unfinished_part_path(place, next.part);
  std::error_code ignored;
  try {
    std::filesystem::remove(made, ignored);
    make_next_part(made, {.before = out->path(), .identity = next, .ended = ended, .tails = tails}, *sums,
                   store);
  } catch (const std::exception& failure) {
    std::filesystem::remove(made, ignored);
    next_try = std::chrono::steady_clock::now() + kTryAgain;
    Message note;
    note.at_ns = early_stop.reached_ns() - origin_ns.value_or(0);
    note.severity = ev::Severity::warning;
    note.text = "part " + std::to_string(next.part) + " of the recording could not be begun (" +
                failure.what() + "): part " + std::to_string(part.part) + " goes on";
    message(note);
    return;
  }
  guarded([&] {
    out->check_place();
    end_part(out->database(), ended, tails);
    write_end(store);
    out->commit();
  });
  if (!error.empty()) {
    std::filesystem::remove(made, ignored);
    return;
  }
  guarded([&] { go_on_in(next); });
  if (!error.empty()) return;
  sums->part_has_begun();
  blocks_of_part = {};
  fill = {.begun_with = bytes()};
  tails_of_part.clear();
  for (const Block& tail : tails) tails_of_part.insert(tail.rank);
}

/// Steps 4 to 6 of [Note: a change of parts].
void RecordingWriter::State::go_on_in(const PartIdentity& next) {
  const std::string file = part_path(place, next.part);
  if (out->database().in_transaction()) out->commit();
  std::filesystem::rename(unfinished_part_path(place, next.part), file);
  auto opened = std::make_unique<WrittenFile>(file);
  link_to_part(place, file);
  early_stop.goes_on_in(file);
  closing = std::thread([ended = std::exchange(out, std::move(opened))] {
    try {
      ended->close();
    } catch (const std::exception&) {  // the log stays beside the file, and readers read both
    }
  });
  for (std::uint32_t gone = part.first_part; gone < next.first_part; ++gone)
    remove_recording(part_path(place, gone));
  part = next;
}

void RecordingWriter::finish(const Store& store) {
  State& s = *state_;
  for (const RankRow& row : store.ranks()) rank(row);
  s.wait_for_closing();
  s.guarded([&] {
    s.out->check_place();
    for (const Compaction::Rows& rows : s.compaction.rest()) s.complete(rows);
    for (const auto& [rank, blocks] : s.untiled) {
      if (blocks.size() > 1) s.add_tile_of(blocks);
    }
    write_tails(s.out->database(), s.blocks.tails());
    s.blocks.measure_rest();
    if (s.sums) s.sums->finish(s.out->database(), store);
    if (s.rotation.on()) write_part_row(s.out->database(), s.row_of_part(PartEnd::run));
    s.write_end(store);
    s.out->commit();
    s.early_stop.committed();
    s.out->close();
    s.out.reset();
  });
}

std::string RecordingWriter::error() const { return state_->error; }

}  // namespace shardscope::store
