// store_bench [millions of events=4] [millions per lane=2]: what recording, opening and looking cost. CPU
// time of one thread, so that other work on the machine counts little; the file is made in $TMPDIR and
// removed.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "app/store/density_pyramid.h"
#include "app/store/recording.h"
#include "tests/store/synthetic_run.h"

namespace {

using namespace shardscope::store;
namespace fs = std::filesystem;

double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double timed(const std::function<void()>& work) {
  const double begin = cpu_s();
  work();
  return cpu_s() - begin;
}

/// Resident now, in MiB.
double resident_mib() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  file >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

struct Spread {
  double median = 0, worst = 0;
};
Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.back()};
}

/// The synthetic run again and again, each time later, until there are `events`.
class LongRun {
 public:
  explicit LongRun(std::size_t chunk_events)
      : run_(make_synthetic_run({.steps = 40, .chunk_events = chunk_events})) {
    for (const Chunk& chunk : run_.chunks) {
      length_ns_ = std::max(length_ns_, chunk.end_ns() + chunk.clock_offset_ns);
      sequences_ = std::max(sequences_, chunk.sequence + 1);
    }
  }
  [[nodiscard]] const SyntheticRun& run() const { return run_; }
  std::size_t play(std::size_t events, const std::function<void(const Chunk&)>& sink) const {
    std::size_t done = 0;
    for (std::uint64_t round = 0; done < events; ++round) {
      for (Chunk chunk : run_.chunks) {
        chunk.sequence += round * sequences_;
        for (auto& event : chunk.events) event.ticks += round * static_cast<std::uint64_t>(length_ns_);
        done += chunk.events.size();
        sink(chunk);
      }
    }
    return done;
  }

 private:
  SyntheticRun run_;
  std::int64_t length_ns_ = 0;
  std::uint64_t sequences_ = 0;
};

void bench_recording(std::size_t events) {
  const LongRun source(1024);
  const std::string path =
      (fs::temp_directory_path() / ("store_bench-" + std::to_string(getpid()) + ".zscope")).string();
  std::size_t done = 0;
  double writing = 0, totals = 0;
  {
    RecordingWriter writer(path);
    Store store(Keep::totals);
    for (const auto& tables : source.run().tables) {
      writer.tables(tables.rank, tables);
      store.set_tables(tables.rank, tables);
    }
    const double before = resident_mib();
    done = source.play(events, [&](const Chunk& chunk) {
      writing += timed([&] { writer.append(chunk); });
      totals += timed([&] { store.ingest(chunk); });
    });
    writing += timed([&] { writer.finish(store); });
    std::printf("recording: memory grew by %.1f MiB over %.1f M events\n", resident_mib() - before,
                static_cast<double>(done) * 1e-6);
    if (!writer.error().empty()) {
      std::fprintf(stderr, "store_bench: %s\n", writer.error().c_str());
      std::exit(1);
    }
  }
  const auto n = static_cast<double>(done);
  std::printf("write: %.1f M events/s of CPU, joining included; totals: %.1f M events/s\n",
              n / writing * 1e-6, n / totals * 1e-6);
  std::printf("file: %.2f bytes per event\n", static_cast<double>(fs::file_size(path)) / n);

  const double before = resident_mib();
  Store store;
  const double opening = timed([&] { store = open_recording(path, nullptr); });
  std::printf("open whole: %.2f s of CPU, %.1f M events/s, %.0f bytes of memory per event\n", opening,
              n / opening * 1e-6, (resident_mib() - before) * (1 << 20) / n);

  std::vector<double> costs;
  std::mt19937_64 random(1);
  std::vector<ParamState> states(store.tables().params.size());
  for (int i = 0; i < 1000; ++i) {
    const auto at = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns()));
    costs.push_back(timed([&] {
      for (const RankRow& rank : store.ranks()) {
        store.param_states(rank.rank, at, states);
        for (std::size_t p = 0; p < shardscope::instrumentation::kMemoryPoolCount; ++p) {
          (void)store.memory_at(rank.rank, static_cast<shardscope::instrumentation::MemoryPool>(p), at);
        }
      }
    }));
  }
  const Spread state = spread_of(costs);
  std::printf("state of %zu ranks at any time: median %.1f us, worst %.1f us (target 5000)\n",
              store.ranks().size(), state.median * 1e6, state.worst * 1e6);
  fs::remove(path);
}

/// Frames over many lanes, at every zoom at which levels of detail answer.
void bench_frames(std::size_t events_per_lane) {
  constexpr std::size_t kLanes = 64, kColumns = 1600;
  std::vector<DensityPyramid> lanes(kLanes);
  std::int64_t end = 0;
  for (std::size_t l = 0; l < kLanes; ++l) {
    std::mt19937_64 random(l);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < events_per_lane / 2; ++i) {
      at += static_cast<std::int64_t>(random() % 4000);
      const std::int64_t begin = at;
      at += static_cast<std::int64_t>(random() % 6000);
      lanes[l].append(begin, at, shardscope::instrumentation::EventKind::module_begin,
                      static_cast<std::uint8_t>(random() % 3));
    }
    lanes[l].settle();
    end = std::max(end, at);
  }
  std::vector<double> costs;
  std::vector<Density> columns(kColumns);
  std::mt19937_64 random(1);
  int zooms = 0;
  for (std::int64_t width = end; lanes[0].covers(static_cast<double>(width) / kColumns);
       width /= 2, ++zooms) {
    for (int pan = 0; pan < 9; ++pan) {
      const auto begin = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end - width + 1));
      costs.push_back(timed([&] {
        for (const DensityPyramid& lane : lanes) lane.columns(begin, begin + width, columns);
      }));
    }
  }
  std::size_t bytes = 0;
  for (const DensityPyramid& lane : lanes) bytes += lane.bytes();
  const Spread frame = spread_of(costs);
  std::printf(
      "frame of %zu lanes of %.1f M events, %zu columns, %d zooms: median %.2f ms, worst %.2f ms (target "
      "4)\n",
      kLanes, static_cast<double>(events_per_lane) * 1e-6, kColumns, zooms, frame.median * 1e3,
      frame.worst * 1e3);
  std::printf("levels of detail: %.1f bytes per event\n",
              static_cast<double>(bytes) / static_cast<double>(events_per_lane * kLanes));
}

}  // namespace

int main(int argc, char** argv) {
  const auto millions = [&](int i, double otherwise) {
    return static_cast<std::size_t>((argc > i ? std::strtod(argv[i], nullptr) : otherwise) * 1e6);
  };
  bench_recording(millions(1, 4));
  bench_frames(millions(2, 2));
  return 0;
}
