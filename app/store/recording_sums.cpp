#include "app/store/recording_sums.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "app/store/block_sum.h"
#include "app/store/chunk.h"
#include "app/store/recording_schema.h"
#include "app/store/recording_summary.h"
#include "app/store/step_values.h"

namespace shardscope::store {
namespace {

/// Interval of writing distributions and own times. A killed recorder loses those since the last time.
constexpr std::chrono::seconds kTotalsEvery{60};
/// Number of steps before the last written one that are written again: values of a rank may arrive late.
constexpr std::uint32_t kStepsAgain = 64;
/// Most written steps whose end is awaited.
constexpr std::size_t kMostOpen = 1U << 14;

constexpr const char* kSumsSchema = R"sql(
CREATE TABLE sums(id INTEGER PRIMARY KEY, rank INTEGER, sequence INTEGER, begin_ns INTEGER, end_ns INTEGER,
  events INTEGER, parts INTEGER, bytes BLOB NOT NULL, rare BLOB NOT NULL);
CREATE TABLE moments(id INTEGER PRIMARY KEY, at_ns INTEGER, begin_ns INTEGER, end_ns INTEGER, kind TEXT,
  step INTEGER, rank INTEGER, text TEXT);
CREATE TABLE sketches(rank INTEGER, stream INTEGER, kind INTEGER, code INTEGER, module INTEGER, count INTEGER,
  bytes BLOB NOT NULL, PRIMARY KEY(rank, stream, kind, code, module)) WITHOUT ROWID;
CREATE TABLE own_times(rank INTEGER, first_step INTEGER, last_step INTEGER, steps INTEGER, own_ns INTEGER,
  waited_ns INTEGER, PRIMARY KEY(rank, first_step)) WITHOUT ROWID;
)sql";

/// Rare events of the chunk in row `id`, whose block is `block`.
std::vector<ev::Event> rare_of(Database& database, const Block& block, std::int64_t id) {
  const bool has_some = std::any_of(block.counts.begin(), block.counts.end(),
                                    [](const InstantCount& count) { return is_rare(count.kind); });
  if (!has_some) return {};  // the chunk need not be read
  Statement get = database.prepare("SELECT bytes FROM chunks WHERE id = ?1");
  get.bind(1, id);
  if (!get.step()) return {};
  const std::span<const std::byte> bytes = get.bytes(0);
  return rare_events_of(block, Chunk::decode(bytes.data(), bytes.size()));
}

}  // namespace

void create_sums(Database& database) {
  database.execute(kSumsSchema);
  create_steps(database, "sum_steps");
  database.execute("PRAGMA user_version = " + std::to_string(kRecordingVersion));
}

SumsWriter::SumsWriter(Database& database, const Retention& retention, Files files)
    : limited_(retention.limited()), max_bytes_(retention.max_bytes), plan_(retention) {
  if (files == Files::parts) part_.emplace();
  create_sums(database);
  database.execute("INSERT INTO meta VALUES('max_age_ns', " + std::to_string(retention.max_age_ns) +
                   "), ('max_bytes', " + std::to_string(retention.max_bytes) + ")");
}

void SumsWriter::wrote(const Block& block, std::int64_t id, std::uint64_t bytes) {
  // Without limits no block is ever due.
  if (limited_) plan_.wrote(block.rank, id, block.begin_ns, block.end_ns, bytes);
}

void SumsWriter::wrote_to_part(const std::vector<std::byte>& packed, std::int64_t id, const Chunk& chunk) {
  if (part_) part_->add(packed, id, chunk);
}

void SumsWriter::write_totals(Database& database) {
  write_sketches(database);
  write_own_times(database);
}

void SumsWriter::begin_part(Database& next, const Store& store) {
  // If the part cannot be made, recording continues in the current file, so the state is restored on an
  // error.
  const auto sums = sums_;
  const auto through = through_, written = written_;
  const auto open = open_;
  const auto rewinds = rewinds_;
  const auto again_from = again_from_;
  try {
    for (const char* table : {"sums", "sum_steps", "moments", "sketches", "own_times"}) {
      const std::string name = table;
      next.execute("INSERT INTO " + name + " SELECT * FROM before." + name);
    }
    // What was deleted from the part that ends is in its own sum, too.
    Statement drop = next.prepare("DELETE FROM sums WHERE id = ?1");
    for (auto& [rank, of_rank] : sums_) {
      for (const Sum& sum : of_rank) {
        if (!sum.earlier) drop.bind(1, sum.id).run();
      }
      std::erase_if(of_rank, [](const Sum& sum) { return !sum.earlier; });
    }
    for (const WholeSum& sum : part_->sums()) {
      put(next, sum, true);
      join(next, sum.block.rank, true);
    }
    if (const auto last = part_->last_step()) through_ = std::max(through_.value_or(0), *last);
    write_steps(next, store, true);
  } catch (...) {
    sums_ = sums;
    through_ = through;
    written_ = written;
    open_ = open;
    rewinds_ = rewinds;
    again_from_ = again_from;
    throw;
  }
}

void SumsWriter::part_has_begun(std::int64_t deleted_until_ns) {
  part_->clear();
  plan_.part_ended();
  plan_.deleted_until(deleted_until_ns);
}

void SumsWriter::retain(Database& database, const Store& store, std::int64_t now_ns) {
  plan_.now(now_ns);
  // The newest step may still run. The one before it is checked by the triggers after the newest has begun.
  constexpr std::size_t kPending = 2;
  if (const std::span<const StepRow> steps = store.steps(); !steps.empty())
    plan_.pending(steps[steps.size() - std::min(kPending, steps.size())].begin_ns + store.origin_ns());
  const auto bytes = [&](std::int64_t pages) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 0)) *
           static_cast<std::uint64_t>(database.integer("PRAGMA page_size"));
  };
  const auto in_file = [&] { return database.integer("PRAGMA page_count"); };
  std::uint64_t used = 0;
  if (max_bytes_ > 0) used = bytes(in_file() - database.integer("PRAGMA freelist_count"));
  for (const auto& [rank, rows] : plan_.due(used)) delete_rows(database, rank, rows);
  if (max_bytes_ > 0 && plan_.at_least())
    check_least(bytes(in_file() - database.integer("PRAGMA freelist_count")));
  write_steps(database, store, false);
  write_moments(database);
  const auto now = std::chrono::steady_clock::now();
  if (now - totals_written_ >= kTotalsEvery) {
    totals_written_ = now;
    write_totals(database);
  }
  // Data received since the last call may have grown the file beyond the limit. Pages that are free now are
  // returned to the file system.
  if (max_bytes_ > 0 && bytes(in_file()) > max_bytes_) database.execute("PRAGMA incremental_vacuum");
}

/// What is always kept: newest blocks, sums, own times, tables, steps.
void SumsWriter::check_least(std::uint64_t used_bytes) {
  if (used_bytes <= max_bytes_ || std::exchange(least_reported_, true)) return;
  const auto mb = [](std::uint64_t bytes) {
    const std::uint64_t tenths = (bytes + 50'000) / 100'000;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MB";
  };
  warning_ = "the recording takes " + mb(used_bytes) + ", more than its limit of " + mb(max_bytes_) +
             " (--max-size): of each of its " + std::to_string(plan_.ranks()) +
             " ranks the newest events and the sums stay, about 165 kB, and of the run the steps";
}

void SumsWriter::finish(Database& database, const Store& store) {
  retain(database, store, plan_.now());
  write_steps(database, store, true);
  write_totals(database);
}

void SumsWriter::delete_rows(Database& database, std::uint32_t rank, const std::vector<std::int64_t>& rows) {
  Statement get = database.prepare("SELECT bytes FROM blocks WHERE id = ?1");
  std::vector<Statement> drops;
  for (const char* table : {"chunks", "blocks", "levels"})
    drops.push_back(database.prepare("DELETE FROM " + std::string(table) + " WHERE id = ?1"));
  std::optional<WholeSum> sum;
  for (const std::int64_t id : rows) {
    get.bind(1, id);
    if (!get.step()) throw std::runtime_error("a block that was written is not there");
    const std::span<const std::byte> bytes = get.bytes(0);
    Block block = decode_block(bytes.data(), bytes.size());
    get.reset();
    std::vector<ev::Event> rare = rare_of(database, block, id);
    rare_.limit(rank, rare);
    if (const auto step = last_step_of(block)) through_ = std::max(through_.value_or(0), *step);
    for (Statement& drop : drops) drop.bind(1, id).run();
    const std::uint64_t events = block.events;
    const bool next = sum && sum->block.sequence + sum->block.parts == block.sequence;
    if (next && add_to_sum(sum->block, block)) {
      sum->events += events;
      sum->rare.insert(sum->rare.end(), rare.begin(), rare.end());
      keep_firsts_of_stretch(sum->rare);
      sum->id = id;
      continue;
    }
    if (sum) put(database, *sum, false);
    begin_sum(block);
    sum.emplace(WholeSum{.block = std::move(block), .rare = std::move(rare), .events = events, .id = id});
  }
  if (sum) put(database, *sum, false);
  join(database, rank, false);
}

void SumsWriter::put(Database& database, const WholeSum& sum, bool earlier) {
  Chunk rare;
  rare.rank = sum.block.rank;
  rare.events = sum.rare;
  Statement add = database.prepare("INSERT INTO sums VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
  add.bind(1, sum.id).bind(2, std::int64_t{sum.block.rank});
  add.bind(3, static_cast<std::int64_t>(sum.block.sequence));
  add.bind(4, sum.block.begin_ns).bind(5, sum.block.end_ns);
  add.bind(6, static_cast<std::int64_t>(sum.events)).bind(7, std::int64_t{sum.block.parts});
  add.bind(8, encode_block(sum.block)).bind(9, rare.encode()).run();
  std::vector<Sum>& of_rank = sums_[sum.block.rank];
  const Sum entry{.id = sum.id,
                  .sequence = sum.block.sequence,
                  .until = sum.block.sequence + sum.block.parts,
                  .begin_ns = sum.block.begin_ns,
                  .end_ns = sum.block.end_ns,
                  .events = sum.events,
                  .earlier = earlier};
  // Not always at the end: blocks around a deleted moment are deleted late.
  of_rank.insert(std::upper_bound(of_rank.begin(), of_rank.end(), entry.sequence,
                                  [](std::uint64_t s, const Sum& other) { return s < other.sequence; }),
                 entry);
}

WholeSum SumsWriter::get(Database& database, std::int64_t id) const {
  Statement get = database.prepare("SELECT bytes, rare, events FROM sums WHERE id = ?1");
  get.bind(1, id);
  if (!get.step()) throw std::runtime_error("a sum that was written is not there");
  const std::span<const std::byte> bytes = get.bytes(0), rare = get.bytes(1);
  WholeSum out{.block = decode_block(bytes.data(), bytes.size()),
               .rare = Chunk::decode(rare.data(), rare.size()).events,
               .events = static_cast<std::uint64_t>(get.integer(2)),
               .id = id};
  begin_sum(out.block);
  return out;
}

void SumsWriter::join(Database& database, std::uint32_t rank, bool earlier) {
  const std::size_t most = limited_ && part_ ? kMostSumsOfPart : kMostSums;
  const auto same = [&](const Sum& sum) { return sum.earlier == earlier; };
  while (static_cast<std::size_t>(std::ranges::count_if(sums_[rank], same)) > most &&
         join_some(database, rank, earlier)) {
  }
}

/// Joins the two neighbours that together cover the shortest time.
bool SumsWriter::join_some(Database& database, std::uint32_t rank, bool earlier) {
  std::vector<Sum>& of_rank = sums_[rank];
  std::size_t best = 0;
  WholeSum first, second;
  for (;;) {
    best = of_rank.size();
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i + 1 < of_rank.size(); ++i) {
      if (of_rank[i].full || of_rank[i].until != of_rank[i + 1].sequence) continue;  // pinned blocks between
      if (of_rank[i].earlier != earlier || of_rank[i + 1].earlier != earlier) continue;
      const std::int64_t length = of_rank[i + 1].end_ns - of_rank[i].begin_ns;
      if (length >= shortest) continue;
      shortest = length;
      best = i;
    }
    if (best == of_rank.size()) return false;
    first = get(database, of_rank[best].id);
    second = get(database, of_rank[best + 1].id);
    if (add_to_sum(first.block, std::move(second.block))) break;
    of_rank[best].full = true;
  }
  first.events += second.events;
  first.rare.insert(first.rare.end(), second.rare.begin(), second.rare.end());
  keep_firsts_of_stretch(first.rare);
  Statement drop = database.prepare("DELETE FROM sums WHERE id = ?1");
  for (const std::int64_t id : {first.id, second.id}) drop.bind(1, id).run();
  first.id = second.id;
  of_rank.erase(of_rank.begin() + static_cast<std::ptrdiff_t>(best),
                of_rank.begin() + static_cast<std::ptrdiff_t>(best) + 2);
  put(database, first, earlier);
  return true;
}

void SumsWriter::write_steps(Database& database, const Store& store, bool all) {
  if (!through_) return;
  // The last step may still run if a part ended within it. Rows are rewritten until its values are final.
  const std::span<const StepRow> known = store.steps();
  const bool settled = known.empty() || known.back().step > *through_ + std::uint64_t{kStepsAgain};
  begin_again(database, store);
  write_ends(database, store);
  if (!all && settled && written_ == through_) return;
  const auto before = [](std::uint32_t step) { return step < kStepsAgain ? 0 : step - kStepsAgain; };
  std::uint32_t from = written_ ? before(*written_) : 0;
  if (again_from_) from = std::min(from, *again_from_);
  const std::span<const StepRow> rows = known;
  const auto first =
      std::partition_point(rows.begin(), rows.end(), [from](const StepRow& row) { return row.step < from; });
  const auto last =
      std::partition_point(first, rows.end(), [this](const StepRow& row) { return row.step <= *through_; });
  write_step_rows(database, "sum_steps", {first, last}, store.origin_ns());
  if (again_from_ && first != last) again_from_ = std::max(*again_from_, before(std::prev(last)->step));
  if (settled) again_from_.reset();
  for (const StepRow& row : std::span(first, last)) {
    if (row.end_ns == kOpen && open_.size() < kMostOpen) open_.insert(row.step);
  }
  database.execute("INSERT OR REPLACE INTO meta VALUES('sum_steps_through', " + std::to_string(*through_) +
                   ")");
  written_ = through_;
}

/// Deletes the rows of steps that began again: those of the new attempt take their place.
void SumsWriter::begin_again(Database& database, const Store& store) {
  for (; rewinds_ < store.rewinds().size(); ++rewinds_) {
    const std::uint32_t step = store.rewinds()[rewinds_].step;
    database.execute("DELETE FROM sum_steps WHERE step >= " + std::to_string(step));
    open_.erase(open_.lower_bound(step), open_.end());
    again_from_ = std::min(again_from_.value_or(step), step);
  }
}

/// Writes the steps whose end became known after they were written: a step waits for ranks of the world that
/// may never come.
void SumsWriter::write_ends(Database& database, const Store& store) {
  for (auto step = open_.begin(); step != open_.end();) {
    const auto row = std::ranges::lower_bound(store.steps(), *step, {}, &StepRow::step);
    const bool gone = row == store.steps().end() || row->step != *step;
    if (!gone && row->end_ns == kOpen) {
      ++step;
      continue;
    }
    if (!gone) write_step_rows(database, "sum_steps", {row, row + 1}, store.origin_ns());
    step = open_.erase(step);
  }
}

void SumsWriter::write_moments(Database& database) {
  if (moments_written_ == plan_.moments_revision()) return;
  database.execute("DELETE FROM moments");
  Statement add = database.prepare("INSERT INTO moments VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  const auto write = [&](const Moment& moment) {
    add.bind(1, moment.at_ns).bind(2, moment.begin_ns).bind(3, moment.end_ns).bind(4, moment.kind);
    add.bind(5, moment.step == ev::kNoId ? std::int64_t{-1} : std::int64_t{moment.step});
    add.bind(6, moment.rank == ev::kNoId ? std::int64_t{-1} : std::int64_t{moment.rank});
    add.bind(7, moment.text).run();
  };
  std::ranges::for_each(plan_.ended_moments(), write);
  std::ranges::for_each(plan_.moments(), write);
  moments_written_ = plan_.moments_revision();
}

void SumsWriter::write_sketches(Database& database) {
  Statement put = database.prepare("INSERT OR REPLACE INTO sketches VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  const auto id = [](std::uint32_t number) {
    return number == ev::kNoId ? std::int64_t{-1} : std::int64_t{number};
  };
  for (const auto& [key, sketch] : sketches_.all()) {
    put.bind(1, id(key.rank)).bind(2, static_cast<std::int64_t>(key.stream));
    put.bind(3, static_cast<std::int64_t>(key.kind)).bind(4, std::int64_t{key.code}).bind(5, id(key.module));
    put.bind(6, static_cast<std::int64_t>(sketch.count())).bind(7, sketch.encode()).run();
  }
}

void SumsWriter::write_own_times(Database& database) {
  const OwnTimes::Changes changes = own_times_.changes();
  if (changes.all) database.execute("DELETE FROM own_times");
  Statement put = database.prepare("INSERT OR REPLACE INTO own_times VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  for (const OwnTimeRow& row : changes.rows) {
    put.bind(1, std::int64_t{row.rank}).bind(2, std::int64_t{row.first_step});
    put.bind(3, std::int64_t{row.last_step}).bind(4, std::int64_t{row.steps});
    put.bind(5, row.own_ns).bind(6, row.waited_ns).run();
  }
}

}  // namespace shardscope::store
