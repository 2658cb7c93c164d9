// weeks_bench FILE [ranks] [days] [seconds of a step]: how large a recording of weeks with limits is, and how
// long it takes to open it and to draw its first frame; `weeks_bench FILE open` or `verify`: of one that is
// there. What such a recording holds is made directly, not step by step: the newest stretch of a run of a
// small GPT by two ranks stands for that of every rank, its sums for those of every stretch that was deleted,
// its distributions for those of every rank. Own times are made as rows, of each rank.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>

#include "app/analysis/kept.h"
#include "app/store/block.h"
#include "app/store/database.h"
#include "app/store/own_times.h"
#include "app/store/quantile_sketch.h"
#include "app/store/recording.h"
#include "app/store/recording_summary.h"
#include "app/store/recording_sums.h"
#include "app/store/table_checksums.h"
#include "tests/app/store/endless_run.h"

namespace {

using namespace shardscope;
using Clock = std::chrono::steady_clock;
constexpr std::int64_t kSecond = 1'000'000'000;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A recording with limits of a short run of two ranks: what the parts are taken from.
void write_small(const std::string& path) {
  store::EndlessRun run(2);
  store::Store totals(store::Keep::totals);
  store::RecordingWriter writer(path, {.max_bytes = 1'000'000});
  for (const auto& tables : run.run().tables) {
    writer.tables(tables.rank, tables);
    totals.set_tables(tables.rank, tables);
  }
  for (int turn = 0; turn < 20; ++turn) {
    run.again([&](const store::Chunk& chunk) {
      writer.append(chunk);
      totals.ingest(chunk);
    });
    writer.retain(totals);
    writer.commit();
  }
  writer.finish(totals);
}

struct Weeks {
  std::uint32_t ranks = 1024;
  std::int64_t days = 30;
  double step_s = 10;
  [[nodiscard]] std::int64_t length_ns() const { return days * 86'400 * kSecond; }
  /// Those whose events were deleted; the ring has the next ones.
  [[nodiscard]] std::uint32_t steps() const {
    return static_cast<std::uint32_t>(length_ns() / static_cast<std::int64_t>(step_s * 1e9));
  }
};

/// The newest stretch of every rank: about 20 steps, after `sequence` chunks that were deleted.
void write_ring(const std::string& path, const Weeks& weeks, std::uint64_t sequence) {
  const store::SyntheticRun run = store::make_synthetic_run({.world = 2, .steps = store::EndlessRun::kSteps});
  store::RecordingWriter writer(path, {.max_age_ns = 600 * kSecond});
  store::Store totals(store::Keep::totals);
  for (std::uint32_t rank = 0; rank < weeks.ranks; ++rank) {
    auto tables = run.tables[rank % 2];
    tables.rank = rank;
    tables.world = weeks.ranks;
    writer.tables(rank, tables);
    totals.set_tables(rank, tables);
    std::uint64_t next = sequence;
    for (store::Chunk chunk : run.chunks) {
      if (chunk.rank != rank % 2) continue;
      chunk.rank = rank;
      chunk.sequence = next++;
      chunk.clock_offset_ns += weeks.length_ns();
      for (store::ev::Event& event : chunk.events) store::shift_step(event, weeks.steps());
      writer.append(chunk);
      totals.ingest(chunk);
    }
    store::RankRow row;
    row.rank = rank;
    row.finished = true;
    totals.set_rank(row);
  }
  writer.finish(totals);
}

void add_weeks(const std::string& path, const std::string& small, const Weeks& weeks,
               std::uint64_t sequence) {
  store::Database from(small, store::Database::Access::read), to(path, store::Database::Access::create);
  store::Statement sum = from.prepare("SELECT bytes, rare FROM sums ORDER BY events DESC LIMIT 1");
  if (!sum.step()) throw std::runtime_error("the small run was kept whole");
  const std::span<const std::byte> bytes = sum.bytes(0), rare = sum.bytes(1);
  const store::Block block = store::decode_block(bytes.data(), bytes.size());
  constexpr auto kSums = static_cast<std::int64_t>(store::SumsWriter::kMostSums);
  const std::int64_t each_ns = weeks.length_ns() / kSums;
  to.execute("BEGIN");
  store::Statement add = to.prepare("INSERT INTO sums VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
  std::int64_t id = -kSums * weeks.ranks;
  for (std::int64_t i = 0; i < kSums; ++i) {
    for (std::uint32_t rank = 0; rank < weeks.ranks; ++rank) {
      store::Block one = block;
      one.rank = rank;
      one.sequence = sequence / kSums * static_cast<std::uint64_t>(i);
      one.parts = static_cast<std::uint32_t>(sequence / kSums);
      one.begin_ns = each_ns * i;
      one.end_ns = each_ns * (i + 1) - 1;
      for (auto& total : one.totals) total.lane.rank = rank;
      add.bind(1, id++).bind(2, std::int64_t{rank}).bind(3, static_cast<std::int64_t>(one.sequence));
      add.bind(4, one.begin_ns).bind(5, one.end_ns).bind(6, std::int64_t{100'000'000});
      add.bind(7, std::int64_t{one.parts}).bind(8, store::encode_block(one)).bind(9, rare).run();
    }
  }
  std::vector<store::StepRow> rows;
  const auto step_ns = static_cast<std::int64_t>(weeks.step_s * 1e9);
  for (std::int64_t at = 0; at + step_ns <= weeks.length_ns(); at += step_ns) {
    store::StepRow& row = rows.emplace_back();
    row.step = static_cast<std::uint32_t>(rows.size() - 1);
    row.begin_ns = at;
    row.end_ns = at + step_ns - 1000;
    row.tokens = 4'194'304;
    row.loss = 11 - static_cast<double>(rows.size()) * 1e-5;
    row.grad_norm = row.learning_rate = 0.5;
  }
  store::write_step_rows(to, "sum_steps", rows, 0);
  to.execute("INSERT OR REPLACE INTO meta VALUES('sum_steps_through', " + std::to_string(rows.size() - 1) +
             ")");
  store::Statement sketches =
      from.prepare("SELECT stream, kind, code, module, bytes FROM sketches WHERE rank = 0 OR (rank = -1)");
  store::Statement put = to.prepare("INSERT OR REPLACE INTO sketches SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7");
  while (sketches.step()) {
    const std::span<const std::byte> sketch = sketches.bytes(4);
    const auto count = static_cast<std::int64_t>(store::QuantileSketch::decode(sketch).count());
    const bool module = sketches.integer(3) >= 0;
    for (std::uint32_t rank = 0; rank < (module ? 1 : weeks.ranks); ++rank) {
      put.bind(1, module ? std::int64_t{-1} : std::int64_t{rank}).bind(2, sketches.integer(0));
      put.bind(3, sketches.integer(1)).bind(4, sketches.integer(2)).bind(5, sketches.integer(3));
      put.bind(6, count).bind(7, sketch).run();
    }
  }
  store::write_table_checksums(to);
  to.execute("COMMIT");
}

/// As many stretches of steps as a recorder makes of them, of a rank each; one rank becomes slower.
void add_own_times(const std::string& path, const Weeks& weeks) {
  store::Database to(path, store::Database::Access::create);
  const auto steps = static_cast<std::int64_t>(static_cast<double>(weeks.length_ns()) * 1e-9 / weeks.step_s);
  std::int64_t each = 1;
  while ((steps + each - 1) / each > static_cast<std::int64_t>(store::OwnTimes::kMost)) each *= 2;
  to.execute("BEGIN");
  to.execute("DELETE FROM own_times");  // those of the newest stretch's steps
  store::Statement put = to.prepare("INSERT INTO own_times VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  const auto step_ns = static_cast<std::int64_t>(weeks.step_s * 1e9);
  for (std::uint32_t rank = 0; rank < weeks.ranks; ++rank) {
    for (std::int64_t first = 0; first < steps; first += each) {
      const std::int64_t count = std::min(each, steps - first);
      // A little apart, so that no two rows pack into the same bytes by chance.
      const std::int64_t own_ns = step_ns / 10 * 8 +
                                  (std::int64_t{rank} * 7919 + first * 104'729) % 10'000'000 +
                                  (rank == 7 && first > steps / 2 ? step_ns / 10 : 0);
      put.bind(1, std::int64_t{rank}).bind(2, first).bind(3, first + count - 1).bind(4, count);
      put.bind(5, own_ns * count).bind(6, (step_ns - own_ns) * count).run();
    }
  }
  // What lies around them is not made: ten times 60 s are what the ring of 600 s is, and take as much.
  store::Statement moment =
      to.prepare("INSERT INTO moments VALUES(NULL, ?1, ?2, ?3, 'slow_step', ?4, 7, 'took long')");
  for (std::int64_t i = 1; i <= 10; ++i) {
    const std::int64_t at_ns = weeks.length_ns() / 11 * i;
    moment.bind(1, at_ns)
        .bind(2, at_ns - 30 * kSecond)
        .bind(3, at_ns + 30 * kSecond)
        .bind(4, at_ns / step_ns)
        .run();
  }
  store::write_table_checksums(to);
  to.execute("COMMIT");
}

void print_tables(const std::string& path) {
  store::Database database(path, store::Database::Access::read);
  for (const char* what : {"sums", "sketches", "chunks", "blocks", "levels", "tables"}) {
    const std::string table = what;
    std::printf("%-10s %10lld rows %10.1f MB\n", what,
                static_cast<long long>(database.integer("SELECT count(*) FROM " + table)),
                static_cast<double>(database.integer("SELECT sum(length(bytes)) FROM " + table)) * 1e-6);
  }
  for (const char* what : {"sum_steps", "own_times", "moments"}) {
    std::printf("%-10s %10lld rows\n", what,
                static_cast<long long>(database.integer(std::string("SELECT count(*) FROM ") + what)));
  }
}

void make(const std::string& path, const Weeks& weeks) {
  const std::string small = path + ".small";
  constexpr std::uint64_t kSequence = 32'000;
  write_small(small);
  const auto begin = Clock::now();
  write_ring(path, weeks, kSequence);
  add_weeks(path, small, weeks, kSequence);
  const auto before = std::filesystem::file_size(path);
  add_own_times(path, weeks);
  std::printf("own times  %26.1f MB\n",
              static_cast<double>(std::filesystem::file_size(path) - before) * 1e-6);
  std::filesystem::remove(small);
  std::printf("made in %.1f s\n", seconds_since(begin));
}

/// What frames ask for until nothing is coarse any more: the whole of the run, of the rows that fit a window.
struct Frames {
  double first = 0, worst = 0;  ///< seconds
  int count = 0;
};
Frames draw_frames(const store::Store& read) {
  constexpr std::size_t kColumns = 1600, kRows = 64;
  constexpr std::chrono::microseconds kReading{500}, kFrame{2750};  // as the window's
  constexpr int kMost = 100'000;
  std::vector<store::Density> columns(kColumns);
  Frames out;
  for (bool more = true; more && out.count < kMost; ++out.count) {
    const auto begin = Clock::now();
    std::size_t rows = 0;
    read.limit_reading(kReading, kFrame);
    for (const store::LaneId lane : read.lanes()) {
      for (std::uint8_t d = 0; d < read.depth_count(lane) && rows < kRows; ++d, ++rows)
        read.density(lane, d, 0, read.end_ns(), columns);
    }
    more = read.wants_more();
    const double took = seconds_since(begin);
    out.worst = std::max(out.worst, took);
    if (out.count == 0) out.first = took;
  }
  read.limit_reading(std::nullopt);
  return out;
}

void look_at(const std::string& path, store::Verify verify, const char* how) {
  const std::clock_t cpu = std::clock();
  const auto begin = Clock::now();
  store::RecordingInfo info;
  const store::Store read = store::open_recording(path, &info, verify);
  const double opened = seconds_since(begin);
  const double used = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  const Frames frames = draw_frames(read);
  std::printf(
      "opened %s in %.2f s (%.2f s of CPU), 64 rows: first frame %.1f ms, worst %.1f ms, whole after %d; %zu "
      "ranks, %zu steps, "
      "%llu events not kept, %zu problems, %.0f MiB by the store's own count\n",
      how, opened, used, frames.first * 1e3, frames.worst * 1e3, frames.count, read.ranks().size(),
      read.steps().size(), static_cast<unsigned long long>(read.not_kept().events), info.problems.size(),
      static_cast<double>(read.resident_bytes()) / (1 << 20));
  if (const auto kept = analysis::kept_of(read)) std::printf("kept: %s\n", analysis::text_of(*kept).c_str());
  for (const std::string& problem : info.problems) std::printf("  %s\n", problem.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Weeks weeks;
  const std::string what = argc == 3 ? argv[2] : "";
  const bool made = what == "open" || what == "verify";
  if (argc > 2 && !made) weeks.ranks = static_cast<std::uint32_t>(std::atoi(argv[2]));
  if (argc > 3) weeks.days = std::atoi(argv[3]);
  if (argc > 4) weeks.step_s = std::atof(argv[4]);
  if (argc < 2 || weeks.ranks < 1 || weeks.days < 1 || weeks.step_s <= 0) {
    std::fprintf(stderr,
                 "usage: weeks_bench FILE [ranks] [days] [seconds of a step]\n"
                 "       weeks_bench FILE open|verify    (one that is there)\n");
    return 2;
  }
  const std::string path = argv[1];
  if (!made) {
    make(path, weeks);
    print_tables(path);
    std::printf("file       %26.1f MB\n", static_cast<double>(std::filesystem::file_size(path)) * 1e-6);
  }
  if (what != "verify") look_at(path, store::Verify::as_read, "as the window does");
  if (what != "open") look_at(path, store::Verify::everything, "verified");
  return 0;
}
