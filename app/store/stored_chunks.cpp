#include "app/store/stored_chunks.h"

#include <algorithm>
#include <span>

#include "app/store/chunk.h"
#include "app/store/chunk_identity.h"
#include "app/store/gap_text.h"
#include "app/store/recorded_run.h"

namespace shardscope::store {
namespace {

/// From the row of a chunk whose bytes cannot be decoded.
RecordedRun::Damaged damaged_chunk(const Statement& row) {
  // Columns may hold any number; a sum of signed ones that overflows would be undefined.
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

// read() takes columns by number: 0 id to 8 parts, then those of the identity.
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
    // Before decoding: bytes of another chunk may be whole, and would be taken for this one's.
    must_be(row_identity(row, kFirstOfIdentity), identity_of(bytes.data(), bytes.size()));
    const Chunk chunk = Chunk::decode(bytes.data(), bytes.size());
    // Before ingest(): a chunk out of order is refused while nothing of it is in the store.
    read_.follow(chunk.rank, chunk.sequence, chunk.parts);
    RecordedRun(store).ingest(chunk, row.integer(0));
    read_.count(chunk.rank, chunk.parts, chunk.events.size());
  } catch (const std::runtime_error& error) {
    std::string why = error.what();
    if (why.rfind("chunk: ", 0) == 0) why = why.substr(7);
    // Only where the place of the chunk is known does that make a gap.
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

void StoredChunks::read_all(Store& store, const std::function<void(std::int64_t)>& before) {
  std::int64_t next = 1;
  int damaged_in_a_row = 0;
  std::int64_t damaged_from = 0;
  const auto end_of_damage = [&](std::int64_t last) {
    if (damaged_from == 0) return;
    problems_.add("chunks " + std::to_string(damaged_from) + " to " + std::to_string(last) +
                  ": the file is damaged there");
    damaged_from = 0;
  };
  // More rows than bytes cannot be; a sane bound for the search behind damage.
  const auto most = static_cast<std::int64_t>(file_bytes_ / 100) + 16;
  // `next` grows at every turn, so that a damaged file is read to an end.
  while (next <= most) {
    try {
      // Behind damage one id at a time: a scan would run into the damaged page again. As soon as a row is
      // there, a scan goes on behind it.
      Statement rows = database_.prepare(
          kColumns + (damaged_in_a_row > 0 ? " WHERE id = ?1" : " WHERE id >= ?1 ORDER BY id"));
      rows.bind(1, next);
      bool any = false;
      while (rows.step()) {
        any = true;
        const std::int64_t id = rows.integer(0);
        if (id < next) {  // what is behind the end of a truncated file reads as zeros: this is no row
          if (damaged_from == 0) damaged_from = next;
          ++damaged_in_a_row;
          ++next;
          break;
        }
        // Overflow pages are read here, and may be the damaged ones.
        // Reported as one stretch, from the first id that could not be read to the last.
        end_of_damage(id - 1);
        damaged_in_a_row = 0;
        before(id);
        read(store, rows);
        next = std::min(id, most) + 1;  // a damaged id may be any number
      }
      // A scan without an error found nothing more: the end.
      if (!any && damaged_in_a_row == 0) return;
      if (!any) {
        // No row of this id, and none can follow: what is damaged reaches to the end of the table.
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

// Asked once, and only behind damage: max(id) goes through the table's right edge, which may be the damaged
// part.
std::int64_t StoredChunks::last_id_known() {
  if (last_id_ >= 0) return last_id_;
  try {
    last_id_ = database_.integer("SELECT max(id) FROM chunks");
  } catch (const DatabaseError&) {
    try {
      // What the recorder counted: `meta` is another table, and may be whole.
      last_id_ = database_.integer("SELECT value FROM meta WHERE key = 'chunks'");
    } catch (const DatabaseError&) {
      last_id_ = 0;
    }
    // Without either, the number that the file could hold.
    if (last_id_ == 0) last_id_ = static_cast<std::int64_t>(file_bytes_ / 100) + 16;
  }
  return last_id_;
}

}  // namespace shardscope::store
