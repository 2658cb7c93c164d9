#include "app/store/recording_blocks.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "app/store/chunk_identity.h"
#include "app/store/packed.h"
#include "app/store/recording.h"
#include "app/store/tile.h"

namespace shardscope::store {
namespace {

// Each statement is prepared once and reused for every row, because a view reads hundreds of rows.
class Rows final : public BlockRows {
 public:
  Rows(std::shared_ptr<Database> database, bool keeps_a_part)
      : database_(std::move(database)), deletes_rows_(keeps_a_part && is_incomplete(*database_)) {}

  Chunk chunk(std::int64_t row, Chunk::Part part) override {
    // Prepared on first use: a table may be damaged.
    if (!chunk_)
      chunk_.emplace(
          database_->prepare(std::string("SELECT bytes") + kIdentityColumns + " FROM chunks WHERE id = ?1"));
    const Done done(*chunk_);
    chunk_->bind(1, row);
    if (!chunk_->step()) throw RowMissing("is not in the recording any more");
    const std::span<const std::byte> bytes = chunk_->bytes(0);
    // Columns and bytes both hold rank and sequence. If they differ, the row has the bytes of another chunk.
    must_be(row_identity(*chunk_, 1), identity_of(bytes.data(), bytes.size()));
    return Chunk::decode(bytes.data(), bytes.size(), part);
  }

  std::vector<std::byte> page(std::int64_t row) override {
    if (!levels_) levels_.emplace(database_->prepare("SELECT bytes FROM levels WHERE id = ?1"));
    const Done done(*levels_);
    levels_->bind(1, row);
    // RowMissing: block_access.cpp calls was_deleted() to distinguish deletion from damage.
    if (!levels_->step()) throw RowMissing("are not in the recording");
    const std::span<const std::byte> bytes = levels_->bytes(0);
    // A copy: SQLite's memory is invalid after the reset at the end of this call.
    return {bytes.begin(), bytes.end()};
  }

  std::vector<std::byte> statuses(std::int64_t row) override {
    if (!statuses_) statuses_.emplace(database_->prepare("SELECT statuses FROM levels WHERE id = ?1"));
    const Done done(*statuses_);
    statuses_->bind(1, row);
    if (!statuses_->step()) throw RowMissing("its statuses are not in the recording");
    // The row exists without statuses: damage, because the recorder deletes whole rows only.
    if (statuses_->bytes(0).empty()) throw std::runtime_error("its statuses are not in the recording");
    const std::span<const std::byte> bytes = statuses_->bytes(0);
    return {bytes.begin(), bytes.end()};
  }

  std::vector<std::byte> tile(std::int64_t row, std::uint32_t tile_row) override {
    if (!tiles_) tiles_.emplace(database_->prepare("SELECT bytes FROM tiles WHERE id = ?1"));
    const Done done(*tiles_);
    tiles_->bind(1, tile_id(row, tile_row));
    // Not an error: tiles cover complete groups of blocks only, and the blocks hold the same data.
    if (!tiles_->step()) return {};
    const std::span<const std::byte> bytes = tiles_->bytes(0);
    return {bytes.begin(), bytes.end()};
  }

  bool was_deleted(std::uint32_t rank, std::uint64_t sequence) override {
    // If the recorder had ended when the file was opened, no row is deleted later.
    if (!deletes_rows_) return false;
    // A sum replaces the blocks whose events were deleted, so a deleted sequence lies in the range of a sum.
    // Prepared on each call, since calls are rare.
    Statement covers =
        database_->prepare("SELECT 1 FROM sums WHERE rank = ?1 AND sequence <= ?2 AND ?2 < sequence + parts");
    covers.bind(1, std::int64_t{rank}).bind(2, static_cast<std::int64_t>(sequence));
    return covers.step();
  }

 private:
  static bool is_incomplete(Database& database) {
    try {
      return database.integer("SELECT value FROM meta WHERE key = 'complete'") == 0;
    } catch (const DatabaseError&) {  // then a missing row is damage
      return false;
    }
  }

  /// Resets a statement at the end of a scope: one that has rows left would hold a lock.
  struct Done {
    explicit Done(Statement& s) : statement(s) {}
    ~Done() { statement.reset(); }
    Done(const Done&) = delete;
    Done& operator=(const Done&) = delete;
    Statement& statement;
  };
  std::shared_ptr<Database> database_;
  bool deletes_rows_;
  std::optional<Statement> chunk_, levels_, statuses_, tiles_;
};

/// Forwards each call to the part that has the row.
class RowsOfParts final : public BlockRows {
 public:
  explicit RowsOfParts(std::vector<PartOfRows> parts) : parts_(std::move(parts)) {}

  Chunk chunk(std::int64_t row, Chunk::Part part) override { return of(row).chunk(row, part); }
  std::vector<std::byte> page(std::int64_t row) override { return of(row).page(row); }
  std::vector<std::byte> statuses(std::int64_t row) override { return of(row).statuses(row); }
  std::vector<std::byte> tile(std::int64_t row, std::uint32_t tile_row) override {
    return of(row).tile(row, tile_row);
  }
  bool was_deleted(std::uint32_t rank, std::uint64_t sequence) override {
    // The recorder writes only to the newest part.
    return parts_.back().rows->was_deleted(rank, sequence);
  }

 private:
  BlockRows& of(std::int64_t row) {
    const auto after = std::ranges::upper_bound(parts_, row, {}, &PartOfRows::first_row);
    auto at = after == parts_.begin() ? after : std::prev(after);
    // The block of a moved row is in a later part. For a rank that sends few events, a row may have moved
    // through several parts.
    while (at->moved.contains(row) && std::next(at) != parts_.end()) ++at;
    return *at->rows;
  }

  std::vector<PartOfRows> parts_;
};

// Verifies every checksum in one pass. Without this, damage is found only when a row is read.
void verify_rows(Database& database) {
  Statement chunks =
      database.prepare(std::string("SELECT id, bytes") + kIdentityColumns + " FROM chunks ORDER BY id");
  while (chunks.step()) {
    const std::span<const std::byte> bytes = chunks.bytes(1);
    must_be(row_identity(chunks, 2), identity_of(bytes.data(), bytes.size()));
    Chunk::verify(bytes.data(), bytes.size());
  }
  Statement levels = database.prepare("SELECT id, bytes, statuses FROM levels ORDER BY id");
  while (levels.step()) {
    // The page and the statuses are packed separately, each with its own checksum.
    for (const int column : {1, 2}) {
      const std::span<const std::byte> bytes = levels.bytes(column);
      verify_packed(bytes.data(), bytes.size());
    }
  }
  Statement tiles = database.prepare("SELECT bytes FROM tiles ORDER BY id");
  while (tiles.step()) {
    const std::span<const std::byte> bytes = tiles.bytes(0);
    verify_packed(bytes.data(), bytes.size());
  }
}

}  // namespace

std::unique_ptr<BlockRows> rows_of(std::shared_ptr<Database> database, bool keeps_a_part) {
  return std::make_unique<Rows>(std::move(database), keeps_a_part);
}

std::unique_ptr<BlockRows> rows_of(std::vector<PartOfRows> parts) {
  return std::make_unique<RowsOfParts>(std::move(parts));
}

StoredBlocks read_blocks(Database& database, Verify verify,
                         const std::function<void(const StoredBlock&)>& take) {
  StoredBlocks out;
  // Reads the index only, which is small; the table's pages hold the events.
  std::vector<std::pair<std::int64_t, std::uint32_t>> rows;
  Statement ids = database.prepare("SELECT id, rank FROM chunks INDEXED BY chunks_by_time");
  while (ids.step()) rows.emplace_back(ids.integer(0), static_cast<std::uint32_t>(ids.integer(1)));
  // The index is sorted by rank and time. Blocks are stored by id, the order of arrival.
  std::sort(rows.begin(), rows.end());

  Statement stored = database.prepare("SELECT id, bytes FROM blocks ORDER BY id");
  std::set<std::uint32_t> ended;  // ranks whose last block was seen
  // A merge of two lists sorted by id: a block has the id of its chunk.
  bool more = stored.step();
  for (const auto& [row, rank] : rows) {
    if (more && stored.integer(0) < row) throw std::runtime_error("a block has no events");
    if (!more || stored.integer(0) != row) {
      // A chunk without a block: this chunk and all later ones of its rank belong to `rest`; their blocks
      // have not been made yet.
      ended.insert(rank);
      out.rest.push_back(row);
      continue;
    }
    // The blocks of a rank must be contiguous: a keyframe stands for everything before it.
    if (ended.contains(rank)) throw std::runtime_error("a block is not in its place");
    take({.row = row, .rank = rank, .bytes = stored.bytes(1)});
    more = stored.step();
  }
  if (more) throw std::runtime_error("a block has no events");

  // The state at the begin of `rest` for each rank, so that `rest` can be read without the blocks before it.
  Statement tails = database.prepare("SELECT rank, bytes, statuses FROM tails");
  while (tails.step()) {
    const std::span<const std::byte> bytes = tails.bytes(1), statuses = tails.bytes(2);
    Block block = decode_block(bytes.data(), bytes.size());
    if (block.rank != tails.integer(0)) throw std::runtime_error("the end of a rank is that of another rank");
    BlockTail& tail = out.tails[block.rank];
    tail.begin = std::move(block.begin);
    tail.statuses = decode_statuses(statuses.data(), statuses.size());
  }
  if (verify == Verify::everything) verify_rows(database);
  return out;
}

}  // namespace shardscope::store
