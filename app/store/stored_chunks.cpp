#include "app/store/stored_chunks.h"

#include <algorithm>
#include <span>

#include "app/store/chunk.h"
#include "app/store/chunk_identity.h"
#include "app/store/gap_text.h"
#include "app/store/recorded_run.h"

namespace shardscope::store {
namespace {

/// Describes a chunk whose bytes cannot be decoded, from the other columns of its row.
RecordedRun::Damaged damaged_chunk(const Statement& row) {
  // Columns may have any value; signed overflow would be undefined.
  const auto plus = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  };
  return {.rank = static_cast<std::uint32_t>(row.integer(1)),
          .sequence = static_cast<std::uint64_t>(row.integer(2)),
          .parts = static_cast<std::uint32_t>(row.integer(8)),
          .events = static_cast<std::uint64_t>(row.integer(7)),
          .begin_ns = plus(row.integer(4), row.integer(6)),
          .end_ns = plus(row.integer(5), row.integer(6))};
}

}  // namespace

// read() uses column numbers: 0 (id) to 8 (parts), then the columns of the identity.
const std::string StoredChunks::kColumns =
    "SELECT id, rank, sequence, bytes, begin_ns, end_ns, clock_offset_ns, events, parts" +
    std::string(kIdentityColumns) + " FROM chunks";

void StoredChunks::read(Store& store, const Statement& row) {
  const std::span<const std::byte> bytes = row.bytes(3);
  const std::string which = "chunk " + std::to_string(row.integer(0)) + " (rank " +
                            std::to_string(row.integer(1)) + ", sequence " + std::to_string(row.integer(2)) +
                            ")";
  try {
    constexpr int kFirstOfIdentity = 9;
    // Before decoding: the bytes may be those of another, undamaged chunk.
    must_be(row_identity(row, kFirstOfIdentity), identity_of(bytes.data(), bytes.size()));
    const Chunk chunk = Chunk::decode(bytes.data(), bytes.size());
    // Before ingest(): a chunk out of order is rejected before any of it is in the store.
    read_.follow(chunk.rank, chunk.sequence, chunk.parts);
    RecordedRun(store).ingest(chunk, row.integer(0));
    read_.count(chunk.rank, chunk.parts, chunk.events.size());
  } catch (const std::runtime_error& error) {
    std::string why = error.what();
    if (why.rfind("chunk: ", 0) == 0) why = why.substr(7);
    // Adds a gap only if the chunk's position in its rank is known.
    const std::size_t gaps = store.gaps().size();
    RecordedRun(store).note_damaged(damaged_chunk(row));
    if (store.gaps().size() > gaps) {
      const Gap& gap = store.gaps().back();
      why += "; a gap from " + std::to_string(gap.begin_ns / 1'000'000) + " to " +
             std::to_string(gap.end_ns / 1'000'000) + " ms: " + what_is_missing(gap);
    }
    problems_.add(which + ": " + why);
  }
}

void StoredChunks::read_all(Store& store, const std::function<void(std::int64_t)>& before,
                            const std::function<bool(std::int64_t)>& elsewhere) {
  std::int64_t next = 1;
  int damaged_in_a_row = 0;
  std::int64_t damaged_from = 0;
  const auto end_of_damage = [&](std::int64_t last) {
    if (damaged_from == 0) return;
    problems_.add("chunks " + std::to_string(damaged_from) + " to " + std::to_string(last) +
                  ": the file is damaged there");
    damaged_from = 0;
  };
  // Bound on ids, estimated from the file size at 100 bytes a row, so that the search after damage
  // terminates.
  const auto most = static_cast<std::int64_t>(file_bytes_ / 100) + 16;
  // `next` grows with every iteration, so that reading a damaged file terminates.
  while (next <= most) {
    try {
      // After damage, ids are read one at a time, because a scan would read the damaged page again. Scanning
      // continues at the next readable row.
      Statement rows = database_.prepare(
          kColumns + (damaged_in_a_row > 0 ? " WHERE id = ?1" : " WHERE id >= ?1 ORDER BY id"));
      rows.bind(1, next);
      bool any = false;
      while (rows.step()) {
        any = true;
        const std::int64_t id = rows.integer(0);
        if (id < next) {  // pages past the end of a truncated file read as zero: not a row
          if (damaged_from == 0) damaged_from = next;
          ++damaged_in_a_row;
          ++next;
          break;
        }
        // Reading the row also reads its overflow pages, which may be damaged. The ids that could not be read
        // are reported as one range that ends here.
        end_of_damage(id - 1);
        damaged_in_a_row = 0;
        if (!elsewhere(id)) {
          before(id);
          read(store, rows);
        }
        next = std::min(id, most) + 1;  // a damaged id may be any number
      }
      // A scan without an error found no more rows: end of the table.
      if (!any && damaged_in_a_row == 0) return;
      if (!any) {
        // No row with this id, and none can follow: the damage extends to the end of the table.
        if (next > last_id_known()) {
          end_of_damage(next - 1);
          return;
        }
        ++next;
      }
    } catch (const DatabaseError&) {
      if (damaged_from == 0) damaged_from = next;
      ++damaged_in_a_row;
      ++next;
      if (next > last_id_known()) {
        end_of_damage(next - 1);
        return;
      }
    }
  }
  end_of_damage(next - 1);
}

// Queried once, and only after damage: max(id) reads the last page of the table, which may itself be damaged.
std::int64_t StoredChunks::last_id_known() {
  if (last_id_ >= 0) return last_id_;
  try {
    last_id_ = database_.integer("SELECT max(id) FROM chunks");
  } catch (const DatabaseError&) {
    try {
      // The recorder's count. It is in another table, `meta`, which may be undamaged.
      last_id_ = database_.integer("SELECT value FROM meta WHERE key = 'chunks'");
    } catch (const DatabaseError&) {
      last_id_ = 0;
    }
    // Without either, the number of rows that fit into the file.
    if (last_id_ == 0) last_id_ = static_cast<std::int64_t>(file_bytes_ / 100) + 16;
  }
  return last_id_;
}

}  // namespace shardscope::store
