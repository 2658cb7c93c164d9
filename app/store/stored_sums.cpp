// Reading of the tables that SumsWriter writes (recording_sums.h).
#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "app/store/block_sum.h"
#include "app/store/chunk.h"
#include "app/store/recording_sums.h"
#include "app/store/step_values.h"
#include "instrumentation/possible_time.h"

namespace shardscope::store {
namespace {

std::int64_t time_of(const Statement& rows, int column) {
  const std::int64_t ns = rows.integer(column);
  if (!instrumentation::is_time(ns)) throw std::runtime_error("a time is damaged");
  return ns;
}

}  // namespace

std::vector<std::pair<SketchKey, QuantileSketch>> read_sketches(Database& database) {
  std::vector<std::pair<SketchKey, QuantileSketch>> out;
  if (database.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'sketches'") == 0) return out;
  Statement rows = database.prepare(
      "SELECT rank, stream, kind, code, module, count, bytes FROM sketches ORDER BY rank, stream, kind, "
      "code, "
      "module");
  const auto id = [&](int column) {
    return rows.integer(column) < 0 ? ev::kNoId : static_cast<std::uint32_t>(rows.integer(column));
  };
  while (rows.step()) {
    const SketchKey key{.rank = id(0),
                        .stream = static_cast<ev::StreamId>(rows.integer(1)),
                        .kind = static_cast<ev::EventKind>(rows.integer(2)),
                        .code = static_cast<std::uint8_t>(rows.integer(3)),
                        .module = id(4)};
    QuantileSketch sketch = QuantileSketch::decode(rows.bytes(6));
    if (static_cast<std::int64_t>(sketch.count()) != rows.integer(5))
      throw std::runtime_error("a distribution does not count what its row says");
    out.emplace_back(key, std::move(sketch));
  }
  return out;
}

std::vector<OwnTimeRow> read_own_times(Database& database) {
  std::vector<OwnTimeRow> out;
  // Recordings without limits and parts, and older ones, have no such table.
  if (database.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'own_times'") == 0) return out;
  Statement rows = database.prepare(
      "SELECT rank, first_step, last_step, steps, own_ns, waited_ns FROM own_times ORDER BY rank, "
      "first_step");
  const auto number = [&](int column, std::int64_t least) {
    const std::int64_t value = rows.integer(column);
    if (value < least || value > std::numeric_limits<std::uint32_t>::max())
      throw std::runtime_error("a rank's own time is damaged");
    return static_cast<std::uint32_t>(value);
  };
  while (rows.step()) {
    const OwnTimeRow& row = out.emplace_back(OwnTimeRow{.rank = number(0, 0),
                                                        .first_step = number(1, 0),
                                                        .last_step = number(2, 0),
                                                        .steps = number(3, 1),
                                                        .own_ns = time_of(rows, 4),
                                                        .waited_ns = time_of(rows, 5)});
    if (row.last_step < row.first_step || row.own_ns < 0 || row.waited_ns < 0)
      throw std::runtime_error("a rank's own time is damaged");
  }
  return out;
}

namespace {

/// Most steps for which memory is reserved in advance: the count in a damaged file may have any value.
constexpr std::size_t kMostReserved = 1U << 20;

void read_step_rows(Database& database, StoredSums& out) {
  std::string columns;
  for_each_step_column([&](const StepValue& value) { columns += std::string(", ") + value.name(); },
                       [&] { columns += ", skipped"; });
  Statement rows = database.prepare("SELECT step, begin_ns, end_ns, paused_ns, tokens" + columns +
                                    " FROM sum_steps ORDER BY step");
  if (out.through) out.steps.reserve(std::min<std::size_t>(*out.through + std::size_t{1}, kMostReserved));
  while (rows.step()) {
    StepRow& row = out.steps.emplace_back();
    row.step = static_cast<std::uint32_t>(rows.integer(0));
    row.begin_ns = time_of(rows, 1);
    row.end_ns = rows.type(2) == Statement::Type::null ? kOpen : time_of(rows, 2);
    row.paused_ns = rows.integer(3);
    row.tokens = rows.integer(4);
    int column = 5;
    for_each_step_column(
        [&](const StepValue& value) { row.*value.member = rows.real(column++); },  // NULL: not a number
        [&] { row.skipped = rows.integer(column++) != 0; });
  }
}

void read_moments(Database& database, StoredSums& out) {
  Statement rows = database.prepare(
      "SELECT at_ns, begin_ns, end_ns, kind, step, rank, text FROM moments ORDER BY at_ns, id");
  const auto id = [&](int column) {
    return rows.integer(column) < 0 ? ev::kNoId : static_cast<std::uint32_t>(rows.integer(column));
  };
  while (rows.step()) {
    out.moments.push_back({.at_ns = time_of(rows, 0),
                           .kind = rows.text(3),
                           .step = id(4),
                           .rank = id(5),
                           .text = rows.text(6),
                           .begin_ns = time_of(rows, 1),
                           .end_ns = time_of(rows, 2)});
  }
}

/// Columns of a row of table `sums` that SumDecoder checks and decodes.
struct SumRow {
  std::int64_t rank = 0, sequence = 0, begin_ns = 0, end_ns = 0, parts = 0;
  std::vector<std::byte> rare;
};

/// Decodes sums on several threads while the other tables are read. A run of a thousand ranks has tens of
/// thousands of sums.
class SumDecoder {
 public:
  SumDecoder(const std::vector<SumRow>& rows, std::vector<StoredSum>& sums, SumPart part)
      : rows_(rows), sums_(sums), part_(part) {
    std::map<std::int64_t, std::vector<std::size_t>> by_rank;
    for (std::size_t i = 0; i < rows.size(); ++i) by_rank[rows[i].rank].push_back(i);
    for (auto& [rank, of_rank] : by_rank) ranks_.push_back(std::move(of_rank));
    constexpr std::size_t kMostThreads = 4;
    const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1U);
    const std::size_t threads = std::min({cores, kMostThreads, ranks_.size()});
    try {
      while (helpers_.size() + 1 < threads) helpers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // no more threads can be started: finish() decodes the rest
    }
  }
  ~SumDecoder() {
    stop_ = true;
    for (std::thread& helper : helpers_) helper.join();
  }
  SumDecoder(const SumDecoder&) = delete;
  SumDecoder& operator=(const SumDecoder&) = delete;

  /// Decodes on the calling thread too, until all sums are done. Rethrows the error of the first damaged sum.
  void finish() {
    work();
    for (std::thread& helper : helpers_) helper.join();
    helpers_.clear();
    if (damaged_) std::rethrow_exception(damaged_);
  }

 private:
  void work() {
    for (std::size_t next = next_++; next < ranks_.size() && !stop_; next = next_++) {
      RankFigures* figures = nullptr;
      for (std::size_t i = 0; i < ranks_[next].size(); ++i) {
        const std::size_t at = ranks_[next][i];
        try {
          if (i == 0 || !follows(rows_[ranks_[next][i - 1]], rows_[at])) figures = nullptr;
          decode(rows_[at], sums_[at], figures);
        } catch (...) {
          note_damaged(at, std::current_exception());
          break;
        }
      }
    }
  }

  /// Whether `next` directly follows `row` in their rank.
  static bool follows(const SumRow& row, const SumRow& next) {
    return next.sequence - row.sequence == row.parts;
  }

  void decode(const SumRow& row, StoredSum& sum, RankFigures*& figures) const {
    bool rare = false;
    const auto look = [&](const auto& block) {
      sum.origin = static_cast<const BlockOrigin&>(block);
      rare = std::any_of(block.counts.begin(), block.counts.end(),
                         [](const InstantCount& count) { return is_rare(count.kind); });
    };
    if (part_ == SumPart::whole) {
      sum.block = std::make_unique<Block>(decode_block(sum.bytes.data(), sum.bytes.size()));
      begin_sum(*sum.block);
      look(*sum.block);
      rare = true;  // verification also decodes empty lists
    } else {
      BlockHead head = decode_head(sum.bytes.data(), sum.bytes.size());
      begin_sum(head);
      look(head);
      if (figures == nullptr) {
        sum.figures = std::make_unique<RankFigures>();
        figures = sum.figures.get();
      }
      figures->add(head);
    }
    const BlockOrigin& origin = sum.origin;
    const bool fits = origin.rank == row.rank && static_cast<std::int64_t>(origin.sequence) == row.sequence &&
                      origin.begin_ns == row.begin_ns && origin.end_ns == row.end_ns &&
                      origin.parts == row.parts;
    if (!fits) throw std::runtime_error("a sum is not in its place");
    if (rare) sum.rare = Chunk::decode(row.rare.data(), row.rare.size()).events;
  }

  void note_damaged(std::size_t at, std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    if (damaged_ && first_damaged_ < at) return;
    first_damaged_ = at;
    damaged_ = std::move(why);
  }

  const std::vector<SumRow>& rows_;
  std::vector<StoredSum>& sums_;
  SumPart part_;
  std::vector<std::vector<std::size_t>> ranks_;  ///< by rank: indices of its sums, in order
  std::atomic<std::size_t> next_ = 0;            ///< next index in ranks_
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::size_t first_damaged_ = 0;
  std::exception_ptr damaged_;
  std::vector<std::thread> helpers_;  ///< declared last: the threads use the other members
};

std::vector<SumRow> read_sum_rows(Database& database, const ReadUntil& until, std::vector<StoredSum>& sums) {
  std::vector<SumRow> all;
  Statement rows = database.prepare(
      "SELECT id, rank, sequence, begin_ns, end_ns, events, parts, bytes, rare FROM sums ORDER BY id");
  while (rows.step()) {
    const auto copy = [&](int column) {
      const std::span<const std::byte> bytes = rows.bytes(column);
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    if (rows.integer(2) < 0 || rows.integer(5) < 0 || rows.integer(6) == 0)
      throw std::runtime_error("a sum is not in its place");
    const auto read = until.find(static_cast<std::uint32_t>(rows.integer(1)));
    if (read != until.end() && static_cast<std::uint64_t>(rows.integer(2)) < read->second) continue;
    all.push_back({.rank = rows.integer(1),
                   .sequence = rows.integer(2),
                   .begin_ns = time_of(rows, 3),
                   .end_ns = time_of(rows, 4),
                   .parts = rows.integer(6),
                   .rare = copy(8)});
    StoredSum& sum = sums.emplace_back();
    sum.id = rows.integer(0);
    sum.events = static_cast<std::uint64_t>(rows.integer(5));
    sum.bytes = copy(7);
  }
  return all;
}

/// Throws std::runtime_error unless the sums of each rank are in the order of its chunks.
void check_order(const std::vector<StoredSum>& sums) {
  std::map<std::uint32_t, std::uint64_t> next;  ///< sequence, by rank
  for (const StoredSum& sum : sums) {
    std::uint64_t& until = next[sum.origin.rank];
    if (sum.origin.sequence < until) throw std::runtime_error("a sum is not in its place");
    until = sum.origin.sequence + sum.origin.parts;
  }
}

}  // namespace

StoredSums read_sums(Database& database, SumPart part, const std::function<void()>& meanwhile) {
  StoredSums out;
  out.limits.max_age_ns = database.integer("SELECT value FROM meta WHERE key = 'max_age_ns'");
  out.limits.max_bytes =
      static_cast<std::uint64_t>(database.integer("SELECT value FROM meta WHERE key = 'max_bytes'"));
  const std::vector<SumRow> rows = read_sum_rows(database, {}, out.sums);
  SumDecoder decoder(rows, out.sums, part);
  // Without a sum no event was deleted, so the value is ignored: the file may be damaged.
  if (!out.sums.empty() &&
      database.integer("SELECT count(*) FROM meta WHERE key = 'sum_steps_through'") != 0) {
    out.through = static_cast<std::uint32_t>(
        database.integer("SELECT value FROM meta WHERE key = 'sum_steps_through'"));
  }
  read_step_rows(database, out);
  read_moments(database, out);
  meanwhile();
  decoder.finish();
  check_order(out.sums);
  out.origin_ns = std::numeric_limits<std::int64_t>::max();
  for (const StoredSum& sum : out.sums) out.origin_ns = std::min(out.origin_ns, sum.origin.begin_ns);
  return out;
}

std::vector<StoredSum> read_sums_of_part(Database& database, SumPart part, const ReadUntil& until) {
  std::vector<StoredSum> out;
  const std::vector<SumRow> rows = read_sum_rows(database, until, out);
  SumDecoder(rows, out, part).finish();
  check_order(out);
  return out;
}

}  // namespace shardscope::store
