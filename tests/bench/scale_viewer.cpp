// What a viewer of many ranks waits for and takes, for scale.py; a line of JSON.
//   scale_viewer ENDPOINT [seconds]     a new viewer of a live run, which then follows it for so long
//   scale_viewer FILE [words]           a recording: opened, drawn, searched for spans whose names have these
//   words
// A picture is 1,600 columns of 64 rows of the whole run, as a window's first.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/viewer.h"
#include "app/gui/model/find_spans.h"
#include "app/store/recording.h"
#include "tests/resident_memory.h"

namespace {

using namespace shardscope;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

double since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Seconds that one frame's rows took.
double draw(const store::Store& store) {
  constexpr std::size_t kColumns = 1600, kRows = 64;
  const auto begin = Clock::now();
  std::vector<store::Density> columns(kColumns);
  std::size_t rows = 0;
  store.limit_reading(std::chrono::microseconds{500}, std::chrono::microseconds{2750});
  for (const store::LaneId lane : store.lanes()) {
    if (rows >= kRows) break;
    for (std::uint8_t d = 0; d < store.depth_count(lane) && rows < kRows; ++d, ++rows)
      store.density(lane, d, 0, std::max<std::int64_t>(store.end_ns(), 1), columns);
  }
  store.limit_reading(std::nullopt);
  return since(begin);
}

Json memory_of(const store::Store& store) {
  return {{"rss_mib", resident_mib()},
          {"store_mib", static_cast<double>(store.resident_bytes()) / (1 << 20)},
          {"ranks", store.ranks().size()},
          {"steps", store.steps().size()},
          {"events", store.event_count()}};
}

Json live(const std::string& endpoint, double seconds) {
  using collector::Viewer;
  Json out;
  const auto begin = Clock::now();
  store::Store store;
  store.bound({});
  Viewer viewer(endpoint);
  bool first = false, whole = false;
  while (since(begin) < seconds || !whole) {
    const bool changed = viewer.poll(store, std::chrono::milliseconds(8));
    if (!first && store.has_tables() && store.event_count() > 0) {
      first = true;
      const double took = draw(store);
      out["first_frame_s"] = since(begin);
      out["first_frame_draw_s"] = took;
      out["first_frame_ranks"] = store.ranks().size();
    }
    const Viewer::Link link = viewer.link();
    if (!whole && first && (link == Viewer::Link::live || link == Viewer::Link::ended)) {
      whole = true;
      out["caught_up_s"] = since(begin);
      out["caught_up_cpu_s"] = cpu_s();
      out["caught_up"] = memory_of(store);
    }
    if (whole && link == Viewer::Link::ended) break;
    if (!changed) std::this_thread::sleep_for(std::chrono::milliseconds(8));
    if (since(begin) > 120 && !whole) break;
  }
  out["followed_s"] = since(begin);
  out["cpu_s"] = cpu_s();
  out["end"] = memory_of(store);
  return out;
}

Json file(const std::string& path, const std::string& words) {
  Json out;
  const auto begin = Clock::now();
  store::RecordingInfo info;
  const store::Store store = store::open_recording(path, &info, store::Verify::as_read);
  out["opened_s"] = since(begin);
  out["first_draw_s"] = draw(store);
  out["first_frame_s"] = since(begin);
  int frames = 1;
  double worst = 0;
  for (; store.wants_more() && frames < 10'000; ++frames) worst = std::max(worst, draw(store));
  out["frames_until_whole"] = frames;
  out["worst_draw_s"] = worst;
  out["opened"] = memory_of(store);
  out["problems"] = info.problems.size();
  gui::SpanSearch search;
  const auto searching = Clock::now();
  const double cpu = cpu_s();
  search.start({.words = words});
  double longest = 0;
  while (!search.done()) {
    const auto turn = Clock::now();
    if (!search.advance(store, std::chrono::milliseconds(4))) break;
    longest = std::max(longest, since(turn));
  }
  out["search"] = {{"words", words},
                   {"seconds", since(searching)},
                   {"cpu_s", cpu_s() - cpu},
                   {"longest_turn_s", longest},
                   {"searched", search.searched()},
                   {"hits", search.hits()},
                   {"rss_mib", resident_mib()}};
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: scale_viewer ENDPOINT [seconds] | FILE [words]\n");
    return 2;
  }
  const std::string what = argv[1];
  try {
    const Json out = what.find("://") != std::string::npos ? live(what, argc > 2 ? std::atof(argv[2]) : 0)
                                                           : file(what, argc > 2 ? argv[2] : "step");
    std::printf("%s\n", out.dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scale_viewer: %s\n", error.what());
    return 1;
  }
  return 0;
}
