// store_bench [millions of events=4] [ranks=16] [live|FILE [frames|state]]: what recording, opening and
// looking cost. CPU time of one thread, so that other work on the machine counts little. The recording is
// made in $TMPDIR and removed; with FILE it is made there and stays, and one that is there already is looked
// at as it is, nothing else. live: only a run that grows, no recording. A rank of the made-up run has 4
// lanes, so that 16 ranks are 64 lanes; of more ranks the first 16 are looked at.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "app/store/recording.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/resident_memory.h"

namespace {

using namespace shardscope::store;
using shardscope::resident_mib;
namespace fs = std::filesystem;

constexpr std::size_t kColumns = 1600;
constexpr std::uint32_t kRanksInView = 16;
constexpr int kMostFrames = 400;          ///< of one view; it may not be whole then
constexpr std::uint64_t kFewSpans = 640;  ///< in view: drawn one by one
// As the dashboard does.
constexpr std::chrono::microseconds kReading{500}, kFrame{2750};

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

struct Spread {
  double median = 0, p99 = 0, worst = 0;
};
Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values[values.size() * 99 / 100], values.back()};
}

/// The synthetic run again and again, each time later, until there are `events`.
class LongRun {
 public:
  LongRun(std::uint32_t world, std::size_t chunk_events)
      : run_(make_synthetic_run({.world = world, .steps = 40, .chunk_events = chunk_events})) {
    for (const Chunk& chunk : run_.chunks) {
      length_ns_ = std::max(length_ns_, chunk.times().end_ns + chunk.clock_offset_ns);
      sequences_ = std::max(sequences_, chunk.sequence + 1);
      steps_ = 40;
    }
  }
  [[nodiscard]] const SyntheticRun& run() const { return run_; }
  std::size_t play(std::size_t events, const std::function<void(const Chunk&)>& sink) const {
    std::size_t done = 0;
    for (std::uint64_t round = 0; done < events; ++round) {
      for (Chunk chunk : run_.chunks) {
        chunk.sequence += round * sequences_;
        for (auto& event : chunk.events) {
          event.ticks += round * static_cast<std::uint64_t>(length_ns_);
          using shardscope::instrumentation::EventKind;
          const bool of_step = event.kind == EventKind::step_begin || event.kind == EventKind::step_end ||
                               event.kind == EventKind::loss || event.kind == EventKind::grad_norm ||
                               event.kind == EventKind::loss_scale ||
                               event.kind == EventKind::learning_rate || event.kind == EventKind::tokens;
          if (of_step) event.a += static_cast<std::uint32_t>(round) * steps_;
        }
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
  std::uint32_t steps_ = 0;
};

void write(const std::string& path, const LongRun& source, std::size_t events) {
  RecordingWriter writer(path);
  Store store(Keep::totals);
  for (const auto& tables : source.run().tables) {
    writer.tables(tables.rank, tables);
    store.set_tables(tables.rank, tables);
  }
  double writing = 0, totals = 0;
  const double before = resident_mib();
  const std::size_t done = source.play(events, [&](const Chunk& chunk) {
    writing += timed([&] { writer.append(chunk); });
    totals += timed([&] { store.ingest(chunk); });
  });
  writing += timed([&] { writer.finish(store); });
  if (!writer.error().empty()) {
    std::fprintf(stderr, "store_bench: %s\n", writer.error().c_str());
    std::exit(1);
  }
  const auto n = static_cast<double>(done);
  std::printf("recording: memory grew by %.1f MiB over %.1f M events\n", resident_mib() - before, n * 1e-6);
  std::printf("write: %.1f M events/s of CPU, joining and blocks included; totals: %.1f M events/s\n",
              n / writing * 1e-6, n / totals * 1e-6);
  std::printf("file: %.2f bytes per event, levels of detail included\n",
              static_cast<double>(fs::file_size(path)) / n);
}

using Rows = std::vector<std::pair<LaneId, std::uint8_t>>;

/// The row of each lane that has most spans, of as many ranks as a screen shows.
Rows rows_of(const Store& store) {
  Rows out;
  for (const LaneId lane : store.lanes()) {
    if (lane.rank >= kRanksInView) continue;
    std::uint8_t best = 0;
    std::uint64_t most = 0;
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) {
      const std::uint64_t count = store.span_count(lane, d, 0, store.end_ns());
      if (count > most) {
        most = count;
        best = d;
      }
    }
    out.emplace_back(lane, best);
  }
  return out;
}

std::uint64_t draw(const Store& store, const Rows& rows, std::int64_t begin, std::int64_t end,
                   std::vector<Density>& columns) {
  std::uint64_t spans = 0;
  for (const auto& [lane, depth] : rows) {
    if (store.span_count(lane, depth, begin, end) <= kFewSpans && store.ready(lane, begin, end)) {
      store.for_each_span(lane, depth, begin, end, [&](const Span&) { ++spans; });
    } else {
      store.density(lane, depth, begin, end, columns);
    }
  }
  return spans;
}

struct View {
  std::int64_t begin_ns = 0, end_ns = 0;
  /// Three columns further: all is drawn anew, from what is in memory.
  [[nodiscard]] View panned() const {
    const std::int64_t by = (end_ns - begin_ns) * 3 / static_cast<std::int64_t>(kColumns);
    return {begin_ns + by, end_ns + by};
  }
};

double frame_of(const Store& store, const Rows& rows, const View& view, std::vector<Density>& columns) {
  store.limit_reading(kReading, kFrame);
  return timed([&] { (void)draw(store, rows, view.begin_ns, view.end_ns, columns); });
}

/// Frames of a view until it is whole; adds what each cost to `costs`. Returns how many followed the first.
int refine(const Store& store, const Rows& rows, const View& view, std::vector<Density>& columns,
           std::vector<double>& costs) {
  int frames = 0;
  do {
    costs.push_back(frame_of(store, rows, view, columns));
  } while (store.wants_more() && ++frames < kMostFrames);
  return frames;
}

/// `every_zoom`: prints each one's.
void bench_frames(const Store& store, const Rows& rows, double before, bool every_zoom) {
  std::vector<Density> columns(kColumns);
  std::vector<double> costs, of_zoom, pans, pans_of_zoom;
  std::mt19937_64 random(1);
  int zooms = 0, views = 0, most_frames = 0;
  struct Zoom {
    Spread cost;
    std::int64_t width_ns = 0;
  } costliest;
  for (std::int64_t width = store.end_ns(); width > 50'000; width /= 2, ++zooms) {
    of_zoom.clear();
    pans_of_zoom.clear();
    for (int pan = 0; pan < 4; ++pan, ++views) {
      const auto begin =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns() - width + 1));
      const View view{begin, begin + width};
      most_frames = std::max(most_frames, refine(store, rows, view, columns, of_zoom));
      pans_of_zoom.push_back(frame_of(store, rows, view.panned(), columns));
    }
    costs.insert(costs.end(), of_zoom.begin(), of_zoom.end());
    pans.insert(pans.end(), pans_of_zoom.begin(), pans_of_zoom.end());
    const Spread cost = spread_of(of_zoom);
    if (every_zoom) {
      std::printf(
          "%12.3f ms wide, %4zu frames: median %.2f ms, p99 %.2f ms, worst %.2f ms; panned then: median %.2f "
          "ms, worst %.2f ms\n",
          static_cast<double>(width) * 1e-6, of_zoom.size(), cost.median * 1e3, cost.p99 * 1e3,
          cost.worst * 1e3, spread_of(pans_of_zoom).median * 1e3, spread_of(pans_of_zoom).worst * 1e3);
    }
    if (cost.p99 > costliest.cost.p99) costliest = {cost, width};
  }
  const Spread frame = spread_of(costs);
  std::printf(
      "frame of %zu lanes, %.1f M events each, %zu columns, %d zooms: median %.2f ms, p99 %.2f ms, worst "
      "%.2f "
      "ms (target 4); the costliest zoom, %.3f ms wide: median %.2f ms, p99 %.2f ms\n",
      rows.size(), static_cast<double>(store.event_count()) / static_cast<double>(rows.size()) * 1e-6,
      kColumns, zooms, frame.median * 1e3, frame.p99 * 1e3, frame.worst * 1e3,
      static_cast<double>(costliest.width_ns) * 1e-6, costliest.cost.median * 1e3, costliest.cost.p99 * 1e3);
  const Spread panned = spread_of(pans);
  std::printf("panned by 3 columns, most of it read before: median %.2f ms, p99 %.2f ms, worst %.2f ms\n",
              panned.median * 1e3, panned.p99 * 1e3, panned.worst * 1e3);
  std::printf(
      "%d views, all blocks to be read: refined after %d frames at most (%d: no longer waited for), %.1f on "
      "average\n",
      views, most_frames, kMostFrames, static_cast<double>(costs.size()) / views);
  std::printf("memory after looking around: %.0f MiB resident more\n", resident_mib() - before);
}

/// Every parameter, pool and bucket of every rank.
void look_at_state(const Store& store, std::int64_t at) {
  std::vector<ParamState> states(store.tables().params.size());
  for (const RankRow& rank : store.ranks()) {
    store.param_states(rank.rank, at, states);
    for (std::size_t p = 0; p < shardscope::instrumentation::kMemoryPoolCount; ++p) {
      (void)store.memory_at(rank.rank, static_cast<shardscope::instrumentation::MemoryPool>(p), at);
    }
    (void)store.buckets_at(rank.rank, at);
  }
}

void bench_state(const Store& store) {
  std::mt19937_64 random(2);
  store.limit_reading(std::nullopt);
  std::vector<double> cold, warm;
  for (int i = 0; i < 100; ++i) {
    const auto at = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns()));
    cold.push_back(timed([&] { look_at_state(store, at); }));
    warm.push_back(timed([&] { look_at_state(store, at + 1'000'000); }));
  }
  const Spread far = spread_of(cold), near = spread_of(warm);
  std::printf(
      "state of %zu ranks at any time: median %.2f ms, worst %.2f ms; 1 ms later: %.2f, %.2f (target 5)\n",
      store.ranks().size(), far.median * 1e3, far.worst * 1e3, near.median * 1e3, near.worst * 1e3);
}

void bench_reading(const Store& store, const std::string& path, double before) {
  const double reading = timed([&] {
    for (const RankRow& rank : store.ranks()) {
      store.for_each_instant(rank.rank, Store::kBegin, Store::kEnd, [](const auto&) {});
    }
  });
  std::printf("reading every block: %.1f M events/s of CPU; memory then: %.0f MiB resident more\n",
              static_cast<double>(store.event_count()) / reading * 1e-6, resident_mib() - before);
  const double verifying = timed([&] { (void)open_recording(path, nullptr); });
  std::printf("open with every checksum verified: %.2f s of CPU\n", verifying);
}

enum class What : std::uint8_t { all, frames, state };

void bench_opening(const std::string& path, What what) {
  const double before = resident_mib();
  Store store;
  const auto wall = std::chrono::steady_clock::now();
  const double opening = timed([&] { store = open_recording(path, nullptr, Verify::as_read); });
  const auto rows = rows_of(store);
  std::vector<Density> columns(kColumns);
  store.limit_reading(kReading, kFrame);
  const double first = timed([&] { (void)draw(store, rows, 0, store.end_ns(), columns); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  std::printf(
      "open: %.3f s of CPU, first frame of the whole run %.2f ms, both %.3f s by the wall (target 1)\n",
      opening, first * 1e3, seconds);
  std::printf("memory: %.0f MiB resident more, of which the store counts %.0f (target 1024)\n",
              resident_mib() - before, static_cast<double>(store.resident_bytes()) / (1 << 20));

  if (what != What::state) bench_frames(store, rows, before, what == What::frames);
  if (what != What::frames) bench_state(store);
  if (what == What::all) bench_reading(store, path, before);
}

/// A live run: the newest events whole, the others sealed as it grows.
void bench_live(const LongRun& source, std::size_t events) {
  const double before = resident_mib();
  Store store;
  for (const auto& tables : source.run().tables) store.set_tables(tables.rank, tables);
  std::vector<double> costs, zoomed, pans, cold, newest;
  std::mt19937_64 random(3);
  double taking = 0;
  std::size_t chunks = 0, views = 0;
  int most_frames = 0;
  Rows rows;
  std::vector<Density> columns(kColumns);
  const std::size_t done = source.play(events, [&](const Chunk& chunk) {
    taking += timed([&] { store.ingest(chunk); });
    if (++chunks % 512 != 0) return;
    // Once: the frame that is measured must be the first that looks at the run as it is now.
    if (rows.empty()) rows = rows_of(store);
    costs.push_back(frame_of(store, rows, {0, store.end_ns()}, columns));
    const std::int64_t width = std::max<std::int64_t>(store.end_ns() >> random() % 16, 50'000);
    const auto begin =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns() - width + 1));
    const View view{begin, begin + width};
    most_frames = std::max(most_frames, refine(store, rows, view, columns, zoomed));
    pans.push_back(frame_of(store, rows, view.panned(), columns));
    ++views;
    if (chunks % 4096 != 0) return;
    const auto at = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns()));
    cold.push_back(timed([&] { look_at_state(store, at); }));
    newest.push_back(timed([&] { look_at_state(store, store.end_ns()); }));
  });
  const double grown = resident_mib() - before;
  const Spread frame = spread_of(costs);
  std::printf(
      "live: %.1f M events/s of CPU taken in; frame of the whole run while it grows: median %.2f ms, p99 "
      "%.2f "
      "ms, worst %.2f ms (target 4); %.1f bytes of memory per event\n",
      static_cast<double>(done) / taking * 1e-6, frame.median * 1e3, frame.p99 * 1e3, frame.worst * 1e3,
      grown * (1 << 20) / static_cast<double>(done));
  const Spread other = spread_of(zoomed), panned = spread_of(pans);
  std::printf(
      "live: frame of a view of any width: median %.2f ms, p99 %.2f ms, worst %.2f ms; refined after %d "
      "frames at most, %.1f on average; panned then: median %.2f ms, worst %.2f ms\n",
      other.median * 1e3, other.p99 * 1e3, other.worst * 1e3, most_frames,
      static_cast<double>(zoomed.size()) / static_cast<double>(views), panned.median * 1e3,
      panned.worst * 1e3);
  if (cold.empty()) return;
  const Spread far = spread_of(cold), now = spread_of(newest);
  std::printf(
      "live: state at any time so far: median %.2f ms, worst %.2f ms; now: median %.2f ms, worst %.2f ms "
      "(target 5)\n",
      far.median * 1e3, far.worst * 1e3, now.median * 1e3, now.worst * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const auto events = static_cast<std::size_t>((argc > 1 ? std::strtod(argv[1], nullptr) : 4) * 1e6);
  const auto ranks = static_cast<std::uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 16);
  const bool live = argc > 3 && std::string(argv[3]) == "live";
  const bool stays = argc > 3 && !live;
  const std::string path =
      stays ? argv[3]
            : (fs::temp_directory_path() / ("store_bench-" + std::to_string(getpid()) + ".zscope")).string();
  if (stays && fs::exists(path)) {
    const std::string only = argc > 4 ? argv[4] : "";
    bench_opening(path, only == "frames" ? What::frames : only == "state" ? What::state : What::all);
    return 0;
  }
  const LongRun source(ranks, 1024);
  if (live) {
    bench_live(source, events);
    return 0;
  }
  write(path, source, events);
  bench_opening(path, What::all);
  if (!stays) fs::remove(path);
  bench_live(source, std::min<std::size_t>(events, 50'000'000));
  return 0;
}
