#include <optional>
#include <set>
#include <utility>

#include "app/store/database.h"
#include "app/store/events_read.h"
#include "app/store/recorded_run.h"
#include "app/store/recording.h"
#include "app/store/recording_blocks.h"
#include "app/store/recording_end.h"
#include "app/store/recording_file.h"
#include "app/store/recording_problems.h"
#include "app/store/recording_sums.h"
#include "app/store/recording_tables.h"
#include "app/store/stored_chunks.h"
#include "app/store/table_checksums.h"

namespace shardscope::store {
namespace {

class FileReader {
 public:
  FileReader(const std::string& path, RecordingInfo& info, Verify verify)
      : info_(info), verify_(verify), problems_(info.problems), file_(path), end_(path) {
    file_.open(problems_);
    info_.file_bytes = file_.bytes();
    info_.format_version = file_.format_version();
  }

  Store read() {
    // The recorder of a running run may delete rows meanwhile, which must not look like damage: everything is
    // read in one transaction. A viewer that stays ends it with this function, because an open one keeps the
    // log from being folded into the file; what is deleted later see BlockRows::was_deleted().
    if (file_.keeps_a_part()) database().execute("BEGIN");
    end_.look_for_rows(database());
    if (file_.keeps_a_part()) problems_.guard("what was not kept", [&] { take_sums(); });
    const std::size_t of_opening = problems_.listed();
    Store store = begun();
    if (!take_blocks(store)) {
      // Blocks that were taken before one that is damaged are made again as well.
      problems_.truncate(of_opening);
      read_ = {};
      // The first store has them; what could be read then can be read again.
      if (sums_taken_)
        problems_.guard("what was not kept", [&] { sums_ = read_sums(database(), SumPart::whole); });
      store = begun();
      chunks().read_all(store, [&](std::int64_t id) { append_sums(RecordedRun(store), id, false); });
      append_sums(RecordedRun(store), INT64_MAX, false);
    }
    for (Moment& moment : sums_.moments) RecordedRun(store).add_moment(std::move(moment));
    RecordedRun(store).set_own_times(std::move(own_times_));
    problems_.guard("ranks", [&] { read_ranks(database(), store, problems_); });
    problems_.guard("messages", [&] { read_messages(database(), store, problems_); });
    finish(store);
    database().limit_work(std::nullopt);  // what is looked at later is read row by row
    if (file_.keeps_a_part() && verify_ != Verify::everything) database().execute("COMMIT");
    return store;
  }

 private:
  /// What there is beside the events.
  Store begun() {
    Store store;
    problems_.guard("static tables", [&] { read_tables(database(), store, problems_); });
    if (!store.has_tables() && !end_.holds_nothing())
      problems_.add("the run's static tables (modules, parameters) are missing");
    problems_.guard("names", [&] { read_names(database(), store, problems_); });
    RecordedRun run(store);
    run.set_rows(rows_of(file_.database(), file_.keeps_a_part()));
    next_sum_ = 0;
    if (sums_.through) run.restore_steps(std::move(sums_.steps), *sums_.through, sums_.origin_ns);
    return store;
  }

  void take_sums() {
    sums_ = read_sums(database(), verify_ == Verify::everything ? SumPart::whole : SumPart::figures);
    sums_taken_ = true;
    info_.limits = sums_.limits;
    info_.distributions = read_sketches(database());
    own_times_ = read_own_times(database());
  }

  /// Those that come before row `id`. `blocks_follow`: RecordedRun::append_sum().
  void append_sums(RecordedRun run, std::int64_t id, bool blocks_follow) {
    for (; next_sum_ < sums_.sums.size() && sums_.sums[next_sum_].id < id; ++next_sum_) {
      StoredSum& sum = sums_.sums[next_sum_];
      const BlockOrigin& origin = sum.origin;
      if (!blocks_follow && !read_.comes_next(origin.rank, origin.sequence)) {
        // With blocks all would be made again without them; here nothing else is left to try.
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

  /// False when the blocks must be made from the events.
  bool take_blocks(Store& store) {
    try {
      RecordedRun run(store);
      std::set<std::uint32_t> ranks;
      // One by one: what is kept of a block is a fraction of what is read.
      StoredBlocks stored = read_blocks(database(), verify_, [&](const StoredBlock& block) {
        append(store, block);
        ranks.insert(block.rank);
      });
      append_sums(run, INT64_MAX, true);
      Statement rest = database().prepare(StoredChunks::kColumns + " WHERE id = ?1");
      for (const std::uint32_t rank : ranks) {
        const auto tail = stored.tails.find(rank);
        if (tail == stored.tails.end()) {
          run.resume_from_last_block(rank);
        } else {
          run.resume_from(rank, std::move(tail->second));
        }
      }
      for (const std::int64_t row : stored.rest) {
        rest.bind(1, row);
        if (rest.step()) chunks().read(store, rest);
        rest.reset();
      }
      return true;
    } catch (const std::runtime_error& error) {  // of the database as well
      // What is damaged is named when the events are read; were these whole, only the blocks are.
      remade_ = error.what();
      return false;
    }
  }

  void finish(Store& store) {
    info_.chunks = read_.chunks();
    info_.events = read_.events();
    info_.complete = end_.report(database(), {read_.chunks() + read_.not_kept_chunks(), read_.by_rank()},
                                 store, problems_);
    if (!remade_.empty() && problems_.none()) {
      problems_.add("levels of detail are damaged (" + remade_ + ") and were made again from the events");
    }
    if (verify_ == Verify::everything) {
      for (const std::string& text : check_tables(database())) problems_.add(text);
    }
    if (read_.missing() > 0)
      problems_.add(std::to_string(read_.missing()) +
                    " chunks are missing between those read; shown as gaps");
    problems_.add_unlisted_count();
  }

  [[nodiscard]] Database& database() const { return *file_.database(); }
  [[nodiscard]] StoredChunks chunks() { return {database(), file_.bytes(), read_, problems_}; }

  RecordingInfo& info_;
  Verify verify_;
  Problems problems_;
  RecordingFile file_;  ///< found to be one before `end_` reads its log, and opened after that
  RecordingEnd end_;
  EventsRead read_;
  std::string remade_;  ///< why the blocks were not taken
  StoredSums sums_;     ///< of what was not kept
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
