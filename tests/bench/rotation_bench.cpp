// rotation_bench FOLDER [ranks] [changes]: how long a recorder holds still when it goes on in its next file,
// and how much each file repeats of those before it. Four changes in each 20 steps of a small GPT per rank;
// half of the ranks' events are in no block yet when a part ends.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "app/store/database.h"
#include "app/store/recording.h"
#include "app/store/recording_parts.h"
#include "tests/app/store/endless_run.h"
#include "tests/resident_memory.h"

int main(int argc, char** argv) {
  using namespace shardscope;
  using Clock = std::chrono::steady_clock;
  const auto ranks = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 1024);
  const int changes = argc > 3 ? std::atoi(argv[3]) : 40;
  if (argc < 2 || ranks < 1 || changes < 2) {
    std::fprintf(stderr, "usage: rotation_bench FOLDER [ranks] [changes, 2 or more]\n");
    return 2;
  }
  const std::string path = std::string(argv[1]) + "/rotation_bench.zscope";
  constexpr double kMiB = 1 << 20;
  store::EndlessRun run(ranks);
  store::Store totals(store::Keep::totals);
  std::vector<double> holds;
  std::printf("%8s %12s %14s %12s %14s\n", "part", "hold ms", "begins MiB", "sums MiB", "resident MiB");
  {
    store::RecordingWriter writer(path, {}, store::RecordingWriter::WallClock::of_the_collector,
                                  {.part_ns = 1, .max_files = 2});
    for (const auto& tables : run.run().tables) {
      writer.tables(tables.rank, tables);
      totals.set_tables(tables.rank, tables);
    }
    const std::size_t each = run.run().chunks.size() / 4 + 1;
    std::size_t taken = 0;
    std::uint32_t part = 1;
    const auto look = [&] {
      const auto begin = Clock::now();
      writer.retain(totals);
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      writer.commit();
      const std::string next = store::part_path(path, part + 1);
      if (!std::filesystem::exists(next)) return;
      ++part;
      holds.push_back(ms);
      // While it has little of its own; the log has nothing of it yet.
      store::Database database(next, store::Database::Access::read);
      std::printf(
          "%8u %12.0f %14.1f %12.1f %14.0f\n", part, ms,
          static_cast<double>(std::filesystem::file_size(next)) / kMiB,
          static_cast<double>(database.integer("SELECT sum(length(bytes) + length(rare)) FROM sums")) / kMiB,
          static_cast<double>(resident_bytes()) / kMiB);
      std::fflush(stdout);
    };
    while (static_cast<int>(holds.size()) < changes) {
      run.again([&](const store::Chunk& chunk) {
        writer.append(chunk);
        totals.ingest(chunk);
        if (++taken % each == 0) look();
      });
    }
    writer.finish(totals);
    if (!writer.error().empty()) {
      std::fprintf(stderr, "%s\n", writer.error().c_str());
      return 1;
    }
  }
  std::sort(holds.begin(), holds.end());
  std::printf("median %.0f ms, longest %.0f ms\n", holds[holds.size() / 2], holds.back());
  return 0;
}
