#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/store/crc32.h"
#include "app/store/database.h"
#include "app/store/recording.h"
#include "app/store/recording_place.h"
#include "app/store/recording_rows.h"
#include "app/store/recording_schema.h"
#include "app/store/recording_summary.h"
#include "app/store/recording_writer_state.h"
#include "app/store/run_tables_codec.h"
#include "app/store/table_checksums.h"

namespace shardscope::store {

namespace {

constexpr std::size_t kWholeTables = 2;

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
      s.sums.emplace(database, retention, rotation.on() ? SumsWriter::Files::parts : SumsWriter::Files::one);
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

std::string RecordingWriter::take_warning() {
  return state_->sums ? state_->sums->take_warning() : std::string();
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

/// Writes the tables that are made when a file ends.
void RecordingWriter::State::write_end(const Store& store) {
  Database& database = out->database();
  write_summary(database, store);
  database.execute("INSERT OR REPLACE INTO meta VALUES('complete', 1), ('chunks', " + std::to_string(chunks) +
                   "), ('events', " + std::to_string(events) + ")");
  write_table_checksums(database);
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
