#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "app/store/chunk_identity.h"
#include "app/store/crc32.h"
#include "app/store/database.h"
#include "app/store/gap_text.h"
#include "app/store/recording.h"
#include "app/store/recording_blocks.h"
#include "app/store/recording_end.h"
#include "app/store/recording_problems.h"
#include "app/store/recording_rows.h"
#include "app/store/recording_schema.h"
#include "app/store/recording_sums.h"
#include "app/store/run_tables_codec.h"
#include "app/store/schema_check.h"
#include "app/store/table_checksums.h"
#include "instrumentation/possible_time.h"
#include "runtime/base/open_file.h"

namespace shardscope::store {
namespace {

constexpr int kCorrupt = 11;  ///< SQLITE_CORRUPT

class FileReader {
 public:
  FileReader(const std::string& path, RecordingInfo& info, Verify verify)
      : path_(path), info_(info), verify_(verify), problems_(info.problems) {}

  Store read() {
    check_file();
    end_.emplace(path_);
    open();
    // What the recorder of a running run lets go meanwhile must not look like damage: all is read as it is
    // now. Who goes on looking for long would keep its log from being folded into the file; for that see
    // BlockRows::let_go().
    if (keeps_a_part_) database_->execute("BEGIN");
    end_->look_for_rows(*database_);
    if (keeps_a_part_) problems_.guard("what was not kept", [&] { take_sums(); });
    const std::size_t of_opening = problems_.listed();
    Store store = begun();
    if (!take_blocks(store)) {
      // Blocks that were taken before one that is damaged are made again as well.
      problems_.go_back_to(of_opening);
      info_.chunks = info_.events = 0;
      // The first store has them; what could be read then can be read again.
      if (sums_taken_)
        problems_.guard("what was not kept", [&] { sums_ = read_sums(*database_, SumPart::whole); });
      store = begun();
      read_chunks(store);
      append_sums(store, INT64_MAX, false);
    }
    for (Moment& moment : sums_.moments) store.add_moment(std::move(moment));
    problems_.guard("ranks", [&] { read_ranks(store); });
    problems_.guard("messages", [&] { read_messages(store); });
    finish(store);
    database_->limit_work(std::nullopt);  // what is looked at later is read row by row
    if (keeps_a_part_ && verify_ != Verify::everything) database_->execute("COMMIT");
    return store;
  }

 private:
  /// What there is beside the events.
  Store begun() {
    Store store;
    problems_.guard("static tables", [&] { read_tables(store); });
    if (!store.has_tables() && !end_->holds_nothing())
      problems_.add("the run's static tables (modules, parameters) are missing");
    problems_.guard("names", [&] { read_names(store); });
    store.set_rows(rows_of(database_, keeps_a_part_));
    next_sum_ = 0;
    if (sums_.through) store.restore_steps(std::move(sums_.steps), *sums_.through, sums_.origin_ns);
    return store;
  }

  void take_sums() {
    sums_ = read_sums(*database_, verify_ == Verify::everything ? SumPart::whole : SumPart::figures);
    sums_taken_ = true;
    info_.limits = sums_.limits;
    info_.distributions = read_sketches(*database_);
  }

  /// Those that come before row `id`. `blocks_follow`: Store::append_sum().
  void append_sums(Store& store, std::int64_t id, bool blocks_follow) {
    for (; next_sum_ < sums_.sums.size() && sums_.sums[next_sum_].id < id; ++next_sum_) {
      StoredSum& sum = sums_.sums[next_sum_];
      const BlockOrigin& origin = sum.origin;
      if (!blocks_follow && !comes_next(origin.rank, origin.sequence)) {
        // With blocks all would be made again without them; here nothing else is left to try.
        problems_.add("what was not kept of rank " + std::to_string(origin.rank) + ", sequence " +
                      std::to_string(origin.sequence) + ": is not in its place; left out");
        continue;
      }
      note_sequence(origin.rank, origin.sequence, origin.parts);
      not_kept_chunks_ += origin.parts;
      read_[origin.rank] += sum.events;
      if (sum.block != nullptr) {
        store.append_sum(std::move(*std::exchange(sum.block, nullptr)), sum.events, sum.rare, blocks_follow);
      } else {
        store.append_sum({.origin = origin, .bytes = std::move(sum.bytes), .sum = true}, sum.figures.get(),
                         sum.events, sum.rare);
      }
    }
  }

  void append(Store& store, const StoredBlock& stored) {
    append_sums(store, stored.row, true);
    const auto note = [&](const BlockOrigin& origin) {
      if (origin.rank != stored.rank) throw std::runtime_error("a block is not in its place");
      note_sequence(origin.rank, origin.sequence, origin.parts);
      info_.chunks += origin.parts;
      info_.events += origin.events;
      read_[origin.rank] += origin.events;
    };
    if (store.is_packed(stored.rank)) {
      const BlockHead head = decode_head(stored.bytes.data(), stored.bytes.size());
      note(head);
      RankFigures figures;
      figures.add(head);
      store.append({.origin = static_cast<const BlockOrigin&>(head),
                    .bytes = {stored.bytes.begin(), stored.bytes.end()},
                    .row = stored.row},
                   figures);
      return;
    }
    Block block = decode_block(stored.bytes.data(), stored.bytes.size());
    note(block);
    block.rows = {stored.row};
    store.append(std::move(block));
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error("recording " + path_ + ": " + why);
  }

  void check_file() {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path_, error);
    if (!fs::exists(status)) refuse("no such file");
    if (fs::is_directory(status)) refuse("is a folder, not a recording");
    try {
      ::close(base::open_file(path_));
    } catch (const base::FileError& why) {
      refuse(why.what());
    }
    std::ifstream file(path_, std::ios::binary);
    char head[16] = {};
    file.read(head, sizeof head);
    if (file.gcount() == 0) refuse("is empty: nothing was committed to it");
    if (std::memcmp(head, "SQLite format 3", sizeof head) != 0)
      refuse("is not a Shardscope recording (*.zscope)");
    info_.file_bytes = fs_bytes_ = fs::file_size(path_, error);
    // Of a run that goes on or was cut off, most may still lie in the log.
    const std::uintmax_t log = fs::file_size(path_ + "-wal", error);
    if (!error) info_.file_bytes += log;
  }

  /// What an SQLite file says of its own length; 0 where it says nothing.
  [[nodiscard]] std::uint64_t bytes_by_header() const {
    std::array<unsigned char, 32> head{};
    std::ifstream(path_, std::ios::binary).read(reinterpret_cast<char*>(head.data()), sizeof head);
    const std::uint64_t page = std::uint64_t{head[16]} << 8U | head[17];
    const std::uint64_t pages = std::uint64_t{head[28]} << 24U | std::uint64_t{head[29]} << 16U |
                                std::uint64_t{head[30]} << 8U | head[31];
    return (page == 1 ? 65536 : page) * pages;
  }

  void open() {
    try {
      connect(Database::Access::read);
    } catch (const DatabaseError& first) {
      // A log that cannot be read here (read-only folder): the file alone is an older but whole state.
      try {
        connect(Database::Access::read_as_is);
        problems_.add(std::string("the write-ahead log beside the file could not be read (") + first.what() +
                      "); what is not in the file itself is missing");
      } catch (const DatabaseError& second) {
        if (const std::uint64_t whole = bytes_by_header(); whole > fs_bytes_) {
          refuse("is cut off: " + std::to_string(fs_bytes_) + " of " + std::to_string(whole) +
                 " bytes are there, too few to read anything of it; look for a whole copy");
        }
        refuse(std::string("cannot be read: ") + second.what() + "; the beginning of the file is damaged");
      }
    }
  }

  /// Far more than it takes to read every row several times; without it a file whose pages refer to one
  /// another in circles would be read for ever.
  static std::uint64_t work_of(std::uint64_t file_bytes) {
    constexpr std::uint64_t kPerByte = 16, kAtLeast = 1'000'000;
    return kPerByte * file_bytes + kAtLeast;
  }

  void connect(Database::Access access) {
    database_ = std::make_shared<Database>(path_, access);
    database_->limit_work(work_of(info_.file_bytes));
    if (bytes_by_header() > fs_bytes_) database_->tolerate_damage();
    try {
      check_schema();
    } catch (const DatabaseError& error) {
      if ((error.code & 0xFF) != kCorrupt) throw;
      database_->tolerate_damage();
      check_schema();
    }
  }

  void check_schema() {
    if (database_->integer("PRAGMA application_id") != kRecordingApplicationId) {
      refuse("is an SQLite database but not a Shardscope recording");
    }
    info_.format_version = static_cast<std::int32_t>(database_->integer("PRAGMA user_version"));
    if (info_.format_version > kRecordingVersion) {
      refuse("has format version " + std::to_string(info_.format_version) + ", this program reads up to " +
             std::to_string(kRecordingVersion) + "; update Shardscope");
    }
    // By what is there and not by its number alone: a number that was changed costs no more than its own
    // check.
    if (info_.format_version < kWholeRecordingVersion && !has_column("ranks", "exit_message")) {
      refuse("has format version " + std::to_string(info_.format_version) +
             ", of before the first release; this program reads " + std::to_string(kWholeRecordingVersion) +
             " and " + std::to_string(kRecordingVersion) + ": record the run again");
    }
    keeps_a_part_ = has_column("sums", "bytes");
    if (const std::string foreign = foreign_object(*database_); !foreign.empty()) {
      refuse(foreign + ", which no recording has: reading it might never end; do not use this file");
    }
  }

  [[nodiscard]] bool has_column(const std::string& table, const std::string& column) const {
    return database_->integer("SELECT count(*) FROM pragma_table_info('" + table + "') WHERE name = '" +
                              column + "'") != 0;
  }

  void read_tables(Store& store) {
    Statement rows = database_->prepare("SELECT rank, bytes, crc FROM tables ORDER BY rank");
    while (rows.step()) {
      const auto rank = static_cast<std::uint32_t>(rows.integer(0));
      const std::span<const std::byte> bytes = rows.bytes(1);
      try {
        if (crc32c(bytes.data(), bytes.size()) != rows.integer(2))
          throw std::runtime_error("checksum does not match");
        store.set_tables(rank, decode_tables(bytes.data(), bytes.size()));
      } catch (const std::runtime_error& error) {
        problems_.add("static tables of rank " + std::to_string(rank) + ": " + error.what());
      }
    }
  }

  void read_names(Store& store) {
    Statement rows = database_->prepare("SELECT rank, id, name, crc FROM names");
    while (rows.step()) {
      const auto rank = static_cast<std::uint32_t>(rows.integer(0));
      const auto id = static_cast<std::uint32_t>(rows.integer(1));
      std::string name = rows.text(2);
      if (row_crc(rank, id, name) != rows.integer(3)) {
        problems_.add("name " + std::to_string(id) + " of rank " + std::to_string(rank) +
                      ": checksum does not match");
      } else {
        store.add_name(rank, id, std::move(name));
      }
    }
  }

  [[nodiscard]] bool comes_next(std::uint32_t rank, std::uint64_t sequence) const {
    const auto last = last_sequence_.find(rank);
    return last == last_sequence_.end() || sequence > last->second;
  }

  void note_sequence(std::uint32_t rank, std::uint64_t sequence, std::uint32_t parts) {
    const auto [last, first_of_rank] = last_sequence_.try_emplace(rank, sequence);
    if (!first_of_rank && sequence <= last->second) throw std::runtime_error("chunk: out of order");
    missing_ += sequence - (first_of_rank ? 0 : last->second + 1);
    last->second = sequence + parts - 1;
  }

  /// False when the blocks must be made from the events.
  bool take_blocks(Store& store) {
    try {
      std::set<std::uint32_t> ranks;
      // One by one: what is kept of a block is a fraction of what is read.
      StoredBlocks stored = read_blocks(*database_, verify_, [&](const StoredBlock& block) {
        append(store, block);
        ranks.insert(block.rank);
      });
      append_sums(store, INT64_MAX, true);
      Statement rest = database_->prepare(kChunkColumns + " WHERE id = ?1");
      for (const std::uint32_t rank : ranks) {
        const auto tail = stored.tails.find(rank);
        if (tail == stored.tails.end()) {
          store.go_on_from_last(rank);
        } else {
          store.go_on_from(rank, std::move(tail->second));
        }
      }
      for (const std::int64_t row : stored.rest) {
        rest.bind(1, row);
        if (rest.step()) read_chunk(store, rest);
        rest.reset();
      }
      return true;
    } catch (const std::runtime_error& error) {  // of the database as well
      // What is damaged is named when the events are read; were these whole, only the blocks are.
      last_sequence_.clear();
      read_.clear();
      not_kept_chunks_ = 0;
      missing_ = 0;
      remade_ = error.what();
      return false;
    }
  }

  /// As read_chunk() takes them.
  inline static const std::string kChunkColumns =
      "SELECT id, rank, sequence, bytes, begin_ns, end_ns, clock_offset_ns, events, parts" +
      std::string(kIdentityColumns) + " FROM chunks";

  void read_chunk(Store& store, const Statement& row) {
    const std::span<const std::byte> bytes = row.bytes(3);
    const std::string which = "chunk " + std::to_string(row.integer(0)) + " (rank " +
                              std::to_string(row.integer(1)) + ", sequence " +
                              std::to_string(row.integer(2)) + ")";
    try {
      constexpr int kFirstOfIdentity = 9;
      must_be(row_identity(row, kFirstOfIdentity), identity_of(bytes.data(), bytes.size()));
      const Chunk chunk = Chunk::decode(bytes.data(), bytes.size());
      note_sequence(chunk.rank, chunk.sequence, chunk.parts);
      store.ingest(chunk, row.integer(0));
      info_.chunks += chunk.parts;
      info_.events += chunk.events.size();
      read_[chunk.rank] += chunk.events.size();
    } catch (const std::runtime_error& error) {
      std::string why = error.what();
      if (why.rfind("chunk: ", 0) == 0) why = why.substr(7);
      const std::size_t gaps = store.gaps().size();
      store.note_damaged(damaged_chunk(row));
      if (store.gaps().size() > gaps) {
        const Gap& gap = store.gaps().back();
        why += "; a gap from " + std::to_string(gap.begin_ns / 1'000'000) + " to " +
               std::to_string(gap.end_ns / 1'000'000) + " ms: " + what_is_missing(gap);
      }
      problems_.add(which + ": " + why);
    }
  }

  /// What the row says of a chunk whose bytes say nothing.
  static Store::Damaged damaged_chunk(const Statement& row) {
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

  /// In order of id, which is the order of arrival. A row that SQLite cannot read is stepped over: the
  /// rows after it are tried one by one until one can be read again.
  void read_chunks(Store& store) {
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
    const auto most = static_cast<std::int64_t>(info_.file_bytes / 100) + 16;
    while (next <= most) {
      try {
        Statement rows = database_->prepare(
            kChunkColumns + (damaged_in_a_row > 0 ? " WHERE id = ?1" : " WHERE id >= ?1 ORDER BY id"));
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
          end_of_damage(id - 1);
          damaged_in_a_row = 0;
          append_sums(store, id, false);
          read_chunk(store, rows);
          next = std::min(id, most) + 1;  // a damaged id may be any number
        }
        if (!any && damaged_in_a_row == 0) return;
        if (!any) {
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

  std::int64_t last_id_known() {
    if (last_id_ >= 0) return last_id_;
    try {
      last_id_ = database_->integer("SELECT max(id) FROM chunks");
    } catch (const DatabaseError&) {
      try {
        last_id_ = database_->integer("SELECT value FROM meta WHERE key = 'chunks'");
      } catch (const DatabaseError&) {
        last_id_ = 0;
      }
      // Without either, as many as the file could hold.
      if (last_id_ == 0) last_id_ = static_cast<std::int64_t>(info_.file_bytes / 100) + 16;
    }
    return last_id_;
  }

  void read_ranks(Store& store) {
    Statement rows = database_->prepare(
        "SELECT rank, host, pid, connected, finished, exit_code, exit_message, events, dropped, "
        "lost_messages, "
        "clock_offset_ns, clock_residual_ns, gate_number, gate_kind, gate_id, holding, crc FROM ranks ORDER "
        "BY rank");
    while (rows.step()) {
      RankRow row;
      row.rank = static_cast<std::uint32_t>(rows.integer(0));
      row.host = rows.text(1);
      row.pid = static_cast<std::int32_t>(rows.integer(2));
      row.connected = rows.integer(3) != 0;
      row.finished = rows.integer(4) != 0;
      row.exit_code = static_cast<std::int32_t>(rows.integer(5));
      row.exit_message = rows.text(6);
      row.events = static_cast<std::uint64_t>(rows.integer(7));
      row.dropped = static_cast<std::uint64_t>(rows.integer(8));
      row.lost_messages = static_cast<std::uint64_t>(rows.integer(9));
      row.clock_offset_ns = rows.integer(10);
      row.clock_residual_ns = rows.integer(11);
      row.gate.number = static_cast<std::uint64_t>(rows.integer(12));
      row.gate.kind = static_cast<ev::GateKind>(rows.integer(13));
      row.gate.id = static_cast<std::uint32_t>(rows.integer(14));
      row.gate.holding = rows.integer(15) != 0;
      if (row_crc(row) != rows.integer(16)) {
        problems_.add("row of rank " + std::to_string(row.rank) + ": checksum does not match");
        continue;
      }
      row.connected = false;  // nobody is connected to a file
      store.set_rank(row);
    }
  }

  void read_messages(Store& store) {
    Statement rows =
        database_->prepare("SELECT id, rank, at_ns, severity, text, crc FROM messages ORDER BY id");
    while (rows.step()) {
      Message message;
      message.rank = static_cast<std::uint32_t>(rows.integer(1));
      const std::int64_t at = rows.integer(2);
      message.severity = static_cast<ev::Severity>(rows.integer(3));
      message.text = rows.text(4);
      if (!instrumentation::is_time(at) || row_crc(message, at) != rows.integer(5)) {
        problems_.add("message " + std::to_string(rows.integer(0)) + ": checksum does not match");
        continue;
      }
      message.at_ns = std::max<std::int64_t>(at - store.origin_ns(), 0);
      store.add_message(std::move(message));
    }
  }

  void finish(Store& store) {
    info_.complete = end_->report(*database_, {info_.chunks + not_kept_chunks_, read_}, store, problems_);
    if (!remade_.empty() && problems_.none()) {
      problems_.add("levels of detail are damaged (" + remade_ + ") and were made again from the events");
    }
    if (verify_ == Verify::everything) {
      for (const std::string& text : check_tables(*database_)) problems_.add(text);
    }
    if (missing_ > 0)
      problems_.add(std::to_string(missing_) + " chunks are missing between those read; shown as gaps");
    problems_.say_how_many_more();
  }

  const std::string& path_;
  RecordingInfo& info_;
  Verify verify_;
  Problems problems_;
  std::optional<RecordingEnd> end_;  ///< from before the file is opened
  std::string remade_;               ///< why the blocks were not taken
  std::shared_ptr<Database> database_;
  std::map<std::uint32_t, std::uint64_t> last_sequence_;
  std::map<std::uint32_t, std::uint64_t> read_;  ///< events by rank
  std::uint64_t missing_ = 0;
  StoredSums sums_;  ///< of what was not kept
  std::size_t next_sum_ = 0;
  std::uint64_t not_kept_chunks_ = 0;
  std::int64_t last_id_ = -1;
  bool sums_taken_ = false;
  bool keeps_a_part_ = false;   ///< of its run: there are sums of the rest
  std::uint64_t fs_bytes_ = 0;  ///< of the file without its log
};

}  // namespace

Store open_recording(const std::string& path, RecordingInfo* info, Verify verify) {
  RecordingInfo local;
  RecordingInfo& out = info == nullptr ? local : *info;
  out = RecordingInfo();
  out.path = path;
  return FileReader(path, out, verify).read();
}

}  // namespace shardscope::store
