#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "app/store/crc32.h"
#include "app/store/database.h"
#include "app/store/gap_text.h"
#include "app/store/recording.h"
#include "app/store/recording_blocks.h"
#include "app/store/recording_rows.h"
#include "app/store/recording_schema.h"
#include "app/store/run_tables_codec.h"
#include "app/store/table_checksums.h"
#include "app/store/write_ahead_log.h"

namespace shardscope::store {
namespace {

/// Problems beyond this many are counted, not listed.
constexpr std::size_t kMaxProblems = 100;
constexpr std::int32_t kFirstWithBlocks = 3;
constexpr std::int32_t kFirstWithParts = 2;

class Reader {
 public:
  Reader(const std::string& path, RecordingInfo& info, Verify verify)
      : path_(path), info_(info), verify_(verify) {}

  Store read() {
    check_file();
    // Before SQLite opens it: that makes an empty log where there is none.
    if (wants_log(path_)) log_ = scan_log_of(path_);
    open();
    holds_nothing_ = !log_is_damaged() && holds_nothing();
    const std::size_t of_opening = info_.problems.size();
    Store store = begun();
    if (info_.format_version < kFirstWithBlocks || !take_blocks(store)) {
      // Blocks that were taken before one that is damaged are made again as well.
      info_.problems.resize(of_opening);
      problems_ = of_opening;
      info_.chunks = info_.events = 0;
      store = begun();
      read_chunks(store);
    }
    guarded("ranks", [&] { read_ranks(store); });
    guarded("messages", [&] { read_messages(store); });
    finish(store);
    return store;
  }

 private:
  /// What there is beside the events.
  Store begun() {
    Store store;
    guarded("static tables", [&] { read_tables(store); });
    if (!store.has_tables() && !holds_nothing_)
      problem("the run's static tables (modules, parameters) are missing");
    guarded("names", [&] { read_names(store); });
    store.set_rows(rows_of(database_, info_.format_version));
    return store;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error("recording " + path_ + ": " + why);
  }

  void problem(const std::string& text) {
    ++problems_;
    if (problems_ <= kMaxProblems) info_.problems.push_back(text);
  }

  /// Damage in one table must not hide the others.
  template <typename Work>
  void guarded(const char* what, Work work) {
    try {
      work();
    } catch (const DatabaseError& error) {
      problem(std::string(what) + ": the file is damaged there (" + error.what() + ")");
    }
  }

  void check_file() {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path_, error);
    if (!fs::exists(status)) refuse("no such file");
    if (fs::is_directory(status)) refuse("is a folder, not a recording");
    std::ifstream file(path_, std::ios::binary);
    if (!file) refuse(std::string("cannot open it: ") + std::strerror(errno));
    char head[16] = {};
    file.read(head, sizeof head);
    if (file.gcount() == 0) refuse("is empty: nothing was committed to it");
    if (std::memcmp(head, "SQLite format 3", sizeof head) != 0)
      refuse("is not a Shardscope recording (*.zscope)");
    info_.file_bytes = fs::file_size(path_, error);
    // Of a run that goes on or was cut off, most may still lie in the log.
    const std::uintmax_t log = fs::file_size(path_ + "-wal", error);
    if (!error) info_.file_bytes += log;
  }

  void open() {
    try {
      connect(Database::Access::read);
    } catch (const DatabaseError& first) {
      // A log that cannot be read here (read-only folder): the file alone is an older but whole state.
      try {
        connect(Database::Access::read_as_is);
        problem(std::string("the write-ahead log beside the file could not be read (") + first.what() +
                "); what is not in the file itself is missing");
      } catch (const DatabaseError& second) {
        refuse(std::string("cannot be read: ") + second.what() + "; the beginning of the file is damaged");
      }
    }
  }

  void connect(Database::Access access) {
    database_ = std::make_shared<Database>(path_, access);
    // Lets SQLite read a file that is shorter than its header says, i.e. a truncated copy.
    database_->execute("PRAGMA writable_schema = ON");
    if (database_->integer("PRAGMA application_id") != kRecordingApplicationId) {
      refuse("is an SQLite database but not a Shardscope recording");
    }
    info_.format_version = static_cast<std::int32_t>(database_->integer("PRAGMA user_version"));
    if (info_.format_version > kRecordingVersion) {
      refuse("has format version " + std::to_string(info_.format_version) + ", this program reads up to " +
             std::to_string(kRecordingVersion) + "; update Shardscope");
    }
    if (info_.format_version < 1) refuse("has no valid format version; its header is damaged");
    (void)database_->integer("SELECT count(*) FROM sqlite_schema");
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
        problem("static tables of rank " + std::to_string(rank) + ": " + error.what());
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
        problem("name " + std::to_string(id) + " of rank " + std::to_string(rank) +
                ": checksum does not match");
      } else {
        store.add_name(rank, id, std::move(name));
      }
    }
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
      StoredBlocks stored = read_blocks(*database_, info_.format_version, verify_, [&](Block block) {
        note_sequence(block.rank, block.sequence, block.parts);
        ranks.insert(block.rank);
        info_.chunks += block.parts;
        info_.events += block.events;
        read_[block.rank] += block.events;
        store.append(std::move(block));
      });
      Statement rest = database_->prepare(chunk_columns() + " WHERE id = ?1");
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
      missing_ = 0;
      remade_ = error.what();
      return false;
    }
  }

  /// As read_chunk() takes them.
  [[nodiscard]] std::string chunk_columns() const {
    return std::string("SELECT id, rank, sequence, bytes, begin_ns, end_ns, clock_offset_ns, events, ") +
           (info_.format_version < kFirstWithParts ? "1" : "parts") + " FROM chunks";
  }

  void read_chunk(Store& store, const Statement& row) {
    const std::span<const std::byte> bytes = row.bytes(3);
    const std::string which = "chunk " + std::to_string(row.integer(0)) + " (rank " +
                              std::to_string(row.integer(1)) + ", sequence " +
                              std::to_string(row.integer(2)) + ")";
    try {
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
      problem(which + ": " + why);
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
      problem("chunks " + std::to_string(damaged_from) + " to " + std::to_string(last) +
              ": the file is damaged there");
      damaged_from = 0;
    };
    // More rows than bytes cannot be; a sane bound for the search behind damage.
    const auto most = static_cast<std::int64_t>(info_.file_bytes / 100) + 16;
    while (next <= most) {
      try {
        Statement rows = database_->prepare(
            chunk_columns() + (damaged_in_a_row > 0 ? " WHERE id = ?1" : " WHERE id >= ?1 ORDER BY id"));
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
        "SELECT rank, host, pid, connected, finished, exit_code, last_words, events, dropped, lost_messages, "
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
      row.last_words = rows.text(6);
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
        problem("row of rank " + std::to_string(row.rank) + ": checksum does not match");
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
      // A time that no clock shows would overflow below.
      const bool believable = at > -(std::int64_t{1} << 62) && at < (std::int64_t{1} << 62);
      if (!believable || row_crc(message, at) != rows.integer(5)) {
        problem("message " + std::to_string(rows.integer(0)) + ": checksum does not match");
        continue;
      }
      message.at_ns = std::max<std::int64_t>(at - store.origin_ns(), 0);
      store.add_message(std::move(message));
    }
  }

  void finish(Store& store) {
    std::int64_t chunks = 0;
    guarded("meta", [&] {
      info_.complete = database_->integer("SELECT value FROM meta WHERE key = 'complete'") == 1;
      chunks = database_->integer("SELECT value FROM meta WHERE key = 'chunks'");
    });
    if (holds_nothing_) {
      say_nothing_is_there();
    } else if (!info_.complete) {
      std::string why = "the recording was not finished (the recorder ended without closing it)";
      guarded("meta", [&] { why = why_it_stopped(store).value_or(why); });
      problem(why + "; it holds what was committed up to " + ms_text(store.end_ns()));
      const std::string of_log = log_ && !log_was_folded_in() ? problem_of(*log_, path_) : std::string();
      if (!of_log.empty()) problem(of_log);
    } else if (static_cast<std::uint64_t>(chunks) > info_.chunks) {
      problem(std::to_string(static_cast<std::uint64_t>(chunks) - info_.chunks) + " of " +
              std::to_string(chunks) + " chunks are missing");
    }
    name_absent(store);
    if (!remade_.empty() && problems_ == 0) {
      problem("levels of detail are damaged (" + remade_ + ") and were made again from the events");
    }
    if (verify_ == Verify::everything) {
      for (const std::string& text : check_tables(*database_)) problem(text);
    }
    if (missing_ > 0)
      problem(std::to_string(missing_) + " chunks are missing between those read; shown as gaps");
    if (problems_ > kMaxProblems) {
      info_.problems.push_back("and " + std::to_string(problems_ - kMaxProblems) + " more");
    }
  }

  static std::string ms_text(std::int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; }

  /// The recorder's last words are in the file, and its log is not beside it: it was folded in after them.
  bool log_was_folded_in() {
    bool ended = false;
    guarded("meta", [&] {
      ended = database_->integer("SELECT count(*) FROM meta WHERE key = 'recorder_ended' AND value = 1") == 1;
    });
    return ended && (log_->state == LogScan::State::missing || log_->state == LogScan::State::empty);
  }
  [[nodiscard]] bool log_is_damaged() const {
    return log_ && (log_->state == LogScan::State::damaged || log_->state == LogScan::State::header_damaged);
  }

  /// No row of what a recording begins with, and none that cannot be read. False in doubt.
  bool holds_nothing() {
    try {
      return database_->integer(
                 "SELECT EXISTS(SELECT 1 FROM tables) OR EXISTS(SELECT 1 FROM chunks) OR EXISTS(SELECT 1 "
                 "FROM ranks) OR EXISTS(SELECT 1 FROM messages) OR EXISTS(SELECT 1 FROM meta WHERE key = "
                 "'stopped' OR (key = 'chunks' AND value > 0))") == 0;
    } catch (const DatabaseError&) {
      return false;
    }
  }

  void say_nothing_is_there() {
    if (info_.complete) {
      problem(
          "nothing is in it: no rank came before the recorder ended; start ranks with its endpoint "
          "(--publish)");
      return;
    }
    std::string text =
        "nothing is in it: nothing was committed, which happens half a second after the first rank has come. "
        "If it is being recorded, look again later; if no rank came, start ranks with the endpoint of the "
        "recorder (--publish)";
    if (log_ && log_->state != LogScan::State::whole)
      text += "; if it is a copy, " + problem_of(*log_, path_);
    problem(text);
  }

  /// [Note: the last words of a recording] in last_words.h; nothing where there are none.
  std::optional<std::string> why_it_stopped(const Store& store) {
    Statement rows = database_->prepare(
        "SELECT why.value, at.value, lacking.value, (SELECT value FROM meta WHERE key = 'recorder_ended') "
        "FROM meta why, meta at, meta lacking WHERE why.key = 'stopped' AND at.key = 'stopped_ns' AND "
        "lacking.key = 'lacking'");
    if (!rows.step()) return std::nullopt;
    const std::int64_t at = rows.integer(1), lacking = rows.integer(2);
    const bool believable = at > -(std::int64_t{1} << 62) && at < (std::int64_t{1} << 62) && lacking >= 0;
    if (!believable) return std::nullopt;
    return "recording stopped at " + ms_text(std::max<std::int64_t>(at - store.origin_ns(), 0)) +
           " of the run (" + rows.text(0) + "): " + (rows.integer(3) == 1 ? "" : "at least ") +
           std::to_string(lacking) + " events that came until the recorder ended are not in it";
  }

  /// A rank's row counts what was taken in. After a full disk or a crash it is ahead of the chunks.
  void name_absent(Store& store) {
    std::map<std::uint32_t, std::uint64_t> known = read_;
    for (const Gap& gap : store.gaps()) {
      if (gap.damaged) known[gap.rank] += gap.events;
    }
    for (const RankRow& row : std::vector<RankRow>(store.ranks().begin(), store.ranks().end())) {
      const std::uint64_t absent = row.events - std::min(row.events, known[row.rank]);
      // Of a file that ended properly they may be missing anywhere.
      if (!info_.complete && (absent != 0 || !row.finished)) store.note_cut_off(row.rank, absent);
      if (absent == 0) continue;
      problem("rank " + std::to_string(row.rank) + ": " + std::to_string(absent) + " of the " +
              std::to_string(row.events) + " events that were taken in are not in the file");
    }
  }

  const std::string& path_;
  RecordingInfo& info_;
  Verify verify_;
  std::optional<LogScan> log_;  ///< of a file that is read with one
  bool holds_nothing_ = false;
  std::string remade_;  ///< why the blocks were not taken
  std::shared_ptr<Database> database_;
  std::map<std::uint32_t, std::uint64_t> last_sequence_;
  std::map<std::uint32_t, std::uint64_t> read_;  ///< events by rank
  std::uint64_t missing_ = 0;
  std::size_t problems_ = 0;
  std::int64_t last_id_ = -1;
};

}  // namespace

Store open_recording(const std::string& path, RecordingInfo* info, Verify verify) {
  RecordingInfo local;
  RecordingInfo& out = info == nullptr ? local : *info;
  out = RecordingInfo();
  out.path = path;
  return Reader(path, out, verify).read();
}

}  // namespace shardscope::store
