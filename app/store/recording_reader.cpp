#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "app/store/database.h"
#include "app/store/events_read.h"
#include "app/store/recorded_run.h"
#include "app/store/recording.h"
#include "app/store/recording_blocks.h"
#include "app/store/recording_end.h"
#include "app/store/recording_files.h"
#include "app/store/recording_problems.h"
#include "app/store/recording_sums.h"
#include "app/store/recording_tables.h"
#include "app/store/stored_chunks.h"
#include "app/store/table_checksums.h"

namespace shardscope::store {
namespace {

/// Ids in table `moved` of a part: chunks that the next part has too.
using Moved = std::set<std::int64_t>;

Moved moved_rows(Database& database) {
  Moved out;
  Statement rows = database.prepare("SELECT id FROM moved");
  while (rows.step()) out.insert(rows.integer(0));
  return out;
}

/// Reads a file, or the parts of a series in order. The sums of events before the oldest part are read from
/// that part, blocks and the sums of what was deleted between them from each part, and everything else from
/// the newest part, which has it for the whole run.
class FileReader {
 public:
  FileReader(const std::string& path, RecordingInfo& info, Verify verify)
      : info_(info), verify_(verify), problems_(info.problems), files_(open_files(path, problems_)) {
    for (const auto& file : files_) info_.file_bytes += file->file.bytes();
    info_.format_version = newest().file.format_version();
    moved_.resize(files_.size());
    for (std::size_t i = 0; i + 1 < files_.size(); ++i)
      problems_.guard("table moved", [&] { moved_[i] = moved_rows(database(i)); });
  }

  Store read() {
    newest().end.look_for_rows(database());
    if (newest().file.keeps_a_part())
      problems_.guard("what was not kept", [&] { take_sums(SumPart::figures); });
    const std::size_t of_opening = problems_.listed();
    Store store = begun();
    if (!take_blocks(store)) {
      // All blocks are rebuilt, also those that were taken before the damaged one.
      problems_.truncate(of_opening);
      read_ = {};
      ranks_.clear();
      // The first store has taken the sums, so they are read again, now decoded as a whole.
      if (sums_taken_) problems_.guard("what was not kept", [&] { take_sums(SumPart::whole); });
      store = begun();
      for (std::size_t i = 0; i < files_.size(); ++i) {
        const auto before = [&](std::int64_t id) { append_sums(RecordedRun(store), id, false); };
        if (i > 0) {
          append_sums(RecordedRun(store), INT64_MAX, false);
          take_sums_of_part(i, SumPart::whole);
        }
        chunks(i).read_all(store, before, [&](std::int64_t id) { return moved_[i].contains(id); });
      }
      append_sums(RecordedRun(store), INT64_MAX, false);
    }
    for (Moment& moment : sums_.moments) RecordedRun(store).add_moment(std::move(moment));
    RecordedRun(store).set_own_times(std::move(own_times_));
    RecordedRun(store).all_ranks_came();
    problems_.guard("ranks", [&] { read_ranks(database(), store, problems_); });
    problems_.guard("messages", [&] { read_messages(database(), store, problems_); });
    finish(store);
    for (std::size_t i = 0; i < files_.size(); ++i) {
      database(i).limit_work(std::nullopt);  // later reads are of single rows
      // A viewer keeps the file open, so the transaction ends here: an open one would keep the log from being
      // folded into the file. For rows that are deleted later see BlockRows::was_deleted().
      if (files_[i]->file.keeps_a_part() && verify_ != Verify::everything) database(i).execute("COMMIT");
    }
    return store;
  }

 private:
  /// A new store with static tables, names, access to rows, and the steps of deleted events.
  Store begun() {
    Store store;
    problems_.guard("static tables", [&] { read_tables(database(), store, problems_); });
    if (!store.has_tables() && !newest().end.holds_nothing())
      problems_.add("the run's static tables (modules, parameters) are missing");
    problems_.guard("names", [&] { read_names(database(), store, problems_); });
    RecordedRun run(store);
    run.set_rows(rows());
    next_sum_ = 0;
    if (sums_.through) run.restore_steps(std::move(sums_.steps), *sums_.through, sums_.origin_ns);
    return store;
  }

  [[nodiscard]] std::unique_ptr<BlockRows> rows() const {
    std::vector<PartOfRows> parts;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const OpenFile& file = *files_[i];
      parts.push_back({.first_row = file.identity ? file.identity->first_chunk : 1,
                       .moved = moved_[i],
                       .rows = rows_of(file.file.database(), file.file.keeps_a_part())});
    }
    if (parts.size() == 1) return std::move(parts.front().rows);
    return rows_of(std::move(parts));
  }

  /// Reads steps and moments from the newest part, which has those of all earlier parts, and sums from the
  /// oldest part read, which has those of all events before it. `part` is ignored with Verify::everything.
  void take_sums(SumPart part) {
    if (verify_ == Verify::everything) part = SumPart::whole;
    // Damage there must not cost the sums: it is reported after them.
    std::exception_ptr damaged;
    const auto read_totals = [&] {
      try {
        info_.distributions = read_sketches(database());
        own_times_ = read_own_times(database());
      } catch (const std::runtime_error&) {  // DatabaseError as well
        damaged = std::current_exception();
      }
    };
    sums_ = read_sums(database(), part, read_totals);
    if (files_.size() > 1) sums_.sums = read_sums_of_part(database(0), part, {});
    sums_taken_ = true;
    info_.limits = sums_.limits;
    if (damaged) std::rethrow_exception(damaged);
  }

  /// Replaces the sums by those of what was deleted from file `i`. All earlier files have been read.
  void take_sums_of_part(std::size_t i, SumPart part) {
    if (!sums_.limits.limited()) return;
    if (verify_ == Verify::everything) part = SumPart::whole;
    problems_.guard("what was not kept", [&] {
      sums_.sums.clear();
      next_sum_ = 0;
      sums_.sums = read_sums_of_part(database(i), part, read_.read_until());
    });
  }

  /// Appends the sums with ids below `id`. `blocks_follow`: RecordedRun::append_sum().
  void append_sums(RecordedRun run, std::int64_t id, bool blocks_follow) {
    for (; next_sum_ < sums_.sums.size() && sums_.sums[next_sum_].id < id; ++next_sum_) {
      StoredSum& sum = sums_.sums[next_sum_];
      const BlockOrigin& origin = sum.origin;
      ranks_.insert(origin.rank);
      if (!blocks_follow && !read_.comes_next(origin.rank, origin.sequence)) {
        // With blocks, follow() throws and everything is rebuilt from the events. This is that second pass,
        // so the sum is skipped.
        problems_.add("what was not kept of rank " + std::to_string(origin.rank) + ", sequence " +
                      std::to_string(origin.sequence) + ": is not in its place; left out");
        continue;
      }
      read_.follow(origin.rank, origin.sequence, origin.parts);
      read_.count_not_kept(origin.rank, origin.parts, sum.events);
      if (sum.block != nullptr) {
        run.append_sum(std::move(*std::exchange(sum.block, nullptr)), sum.events, sum.rare, blocks_follow);
      } else {
        run.append_sum({.origin = origin, .bytes = std::move(sum.bytes), .sum = true}, sum.figures.get(),
                       sum.events, sum.rare);
      }
    }
  }

  void append(Store& store, const StoredBlock& stored) {
    RecordedRun run(store);
    append_sums(run, stored.row, true);
    const auto note = [&](const BlockOrigin& origin) {
      if (origin.rank != stored.rank) throw std::runtime_error("a block is not in its place");
      read_.follow(origin.rank, origin.sequence, origin.parts);
      read_.count(origin.rank, origin.parts, origin.events);
    };
    if (store.is_packed(stored.rank)) {
      const BlockHead head = decode_head(stored.bytes.data(), stored.bytes.size());
      note(head);
      RankFigures figures;
      figures.add(head);
      run.append({.origin = static_cast<const BlockOrigin&>(head),
                  .bytes = {stored.bytes.begin(), stored.bytes.end()},
                  .row = stored.row},
                 figures);
      return;
    }
    Block block = decode_block(stored.bytes.data(), stored.bytes.size());
    note(block);
    block.rows = {stored.row};
    run.append(std::move(block));
  }

  /// Appends the blocks of all files. False if they must be rebuilt from the events.
  bool take_blocks(Store& store) {
    try {
      StoredBlocks stored;
      for (std::size_t i = 0; i < files_.size(); ++i) {
        if (i > 0) take_sums_of_part(i, SumPart::figures);
        // Appended one at a time, because the store keeps only a fraction of the bytes read.
        const auto take = [&](const StoredBlock& block) {
          append(store, block);
          ranks_.insert(block.rank);
        };
        // Before the newest part, chunks without a block and tails are also in the next part and are read
        // there.
        stored = read_blocks(database(i), verify_, take);
        const auto is_moved = [&](std::int64_t row) { return moved_[i].contains(row); };
        if (i + 1 < files_.size() && !std::all_of(stored.rest.begin(), stored.rest.end(), is_moved))
          throw std::runtime_error("chunks of a part have no block");
        append_sums(RecordedRun(store), INT64_MAX, true);
      }
      resume(store, std::move(stored.tails));
      Statement rest = database().prepare(StoredChunks::kColumns + " WHERE id = ?1");
      for (const std::int64_t row : stored.rest) {
        rest.bind(1, row);
        if (rest.step()) chunks(files_.size() - 1).read(store, rest);
        rest.reset();
      }
      return true;
    } catch (const std::runtime_error& error) {  // DatabaseError as well
      // Damaged events are reported when they are read. If there are none, only the blocks were damaged:
      // finish().
      remade_ = error.what();
      return false;
    }
  }

  /// Restores the state of each rank at the end of its last block.
  void resume(Store& store, std::map<std::uint32_t, BlockTail> tails) {
    RecordedRun run(store);
    for (const std::uint32_t rank : ranks_) {
      const auto tail = tails.find(rank);
      if (tail == tails.end()) {
        run.resume_from_last_block(rank);
      } else {
        run.resume_from(rank, std::move(tail->second));
      }
    }
  }

  void finish(Store& store) {
    info_.chunks = read_.chunks();
    info_.events = read_.events();
    const std::optional<PartIdentity>& identity = newest().identity;
    const RecordingEnd::Read read{read_.chunks() + read_.not_kept_chunks(), read_.by_rank()};
    const auto end = identity && identity->followed ? RecordingEnd::Run::continues_in_a_part
                                                    : RecordingEnd::Run::ends_here;
    info_.complete = newest().end.report(database(), read, end, store, problems_);
    if (!remade_.empty() && problems_.none()) {
      problems_.add("levels of detail are damaged (" + remade_ + ") and were made again from the events");
    }
    if (identity) problems_.guard("table parts", [&] { take_parts(store); });
    if (verify_ == Verify::everything) {
      for (std::size_t i = 0; i < files_.size(); ++i) {
        const std::string which =
            files_.size() == 1 ? "" : "part " + std::to_string(identity_of(i).part) + ": ";
        for (const std::string& text : check_tables(database(i))) problems_.add(which + text);
      }
    }
    if (read_.missing() > 0)
      problems_.add(std::to_string(read_.missing()) +
                    " chunks are missing between those read; shown as gaps");
    problems_.add_unlisted_count();
  }

  /// Adds to `info_` the parts that have ended, then the part that is being written or was cut off.
  void take_parts(const Store& store) {
    const PartIdentity& last = *newest().identity;
    const auto is_here = [&](std::uint32_t part) { return part >= identity_of(0).part && part <= last.part; };
    std::uint64_t before = 0;
    std::int64_t until_ns = store.origin_ns();
    for (const PartRow& row : part_rows(database())) {
      info_.parts.push_back({.part = row.part,
                             .file = row.file,
                             .begin_ns = row.begin_ns - store.origin_ns(),
                             .end_ns = row.end_ns - store.origin_ns(),
                             .events = row.events,
                             .bytes = row.bytes,
                             .ended = row.ended,
                             .here = is_here(row.part)});
      before += row.events;
      until_ns = std::max(until_ns, row.end_ns);
    }
    if (!info_.parts.empty() && info_.parts.back().part == last.part) return;
    const std::uint64_t events = store.event_count();
    info_.parts.push_back({.part = last.part,
                           .file = std::filesystem::path(newest().path).filename().string(),
                           .begin_ns = until_ns - store.origin_ns(),
                           .end_ns = store.end_ns(),
                           .events = events - std::min(before, events),
                           .bytes = newest().file.bytes(),
                           .ended = "",
                           .here = true});
  }

  [[nodiscard]] const OpenFile& newest() const { return *files_.back(); }
  [[nodiscard]] OpenFile& newest() { return *files_.back(); }
  [[nodiscard]] const PartIdentity& identity_of(std::size_t i) const { return *files_[i]->identity; }
  [[nodiscard]] Database& database() const { return *newest().file.database(); }
  [[nodiscard]] Database& database(std::size_t i) const { return *files_[i]->file.database(); }
  [[nodiscard]] StoredChunks chunks(std::size_t i) {
    return {database(i), files_[i]->file.bytes(), read_, problems_};
  }

  RecordingInfo& info_;
  Verify verify_;
  Problems problems_;
  std::vector<std::unique_ptr<OpenFile>> files_;  ///< oldest first; more than one: parts
  std::vector<Moved> moved_;                      ///< by file; empty for the newest one
  EventsRead read_;
  std::string remade_;             ///< why the blocks were rebuilt; empty: they were not
  StoredSums sums_;                ///< of deleted events
  std::set<std::uint32_t> ranks_;  ///< ranks with a sum or a block
  std::vector<OwnTimeRow> own_times_;
  std::size_t next_sum_ = 0;
  bool sums_taken_ = false;
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
