// endless_bench [turns] [ranks]: what the store of a live window takes while a run goes on and on, with the
// bounds that a window has: resident memory of the process, what the store says that it holds, the temporary
// file, and what was evicted. Each turn is 20 steps of a small GPT per rank.
#include <cstdio>
#include <cstdlib>

#include "tests/app/store/endless_run.h"
#include "tests/resident_memory.h"

int main(int argc, char** argv) {
  using namespace shardscope;
  const int turns = argc > 1 ? std::atoi(argv[1]) : 4000;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  if (turns < 20 || ranks < 1) {
    std::fprintf(stderr, "usage: endless_bench [turns, 20 or more] [ranks]\n");
    return 2;
  }
  constexpr double kMiB = 1 << 20;
  store::EndlessRun run(static_cast<std::uint32_t>(ranks));
  store::Store store;
  store.bound({});
  for (const auto& tables : run.run().tables) store.set_tables(tables.rank, tables);
  std::printf("%12s %10s %14s %12s %12s %12s\n", "events", "steps", "resident MiB", "store MiB", "evicted",
              "steps gone");
  for (int turn = 1; turn <= turns; ++turn) {
    run.again([&](const store::Chunk& chunk) { store.ingest(chunk); });
    if (turn % (turns / 20) != 0) continue;
    const store::Store::Evicted gone = store.evicted();
    std::printf(
        "%12llu %10d %14.1f %12.1f %12llu %12llu\n", static_cast<unsigned long long>(store.event_count()),
        turn * static_cast<int>(store::EndlessRun::kSteps), static_cast<double>(resident_bytes()) / kMiB,
        static_cast<double>(store.resident_bytes()) / kMiB, static_cast<unsigned long long>(gone.events),
        static_cast<unsigned long long>(gone.steps));
    std::fflush(stdout);
  }
  return 0;
}
