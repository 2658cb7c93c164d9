// A viewer without a window, for observed.py: follows a live run until it is stopped.
//   bench_viewer ENDPOINT follow|slow|reconnect
// `slow` looks every two seconds; `reconnect` begins anew twice a second.
#include "app/collector/viewer.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  using shardscope::collector::Viewer;
  using shardscope::store::Store;
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s ENDPOINT follow|slow|reconnect\n", argv[0]);
    return 2;
  }
  const std::string mode = argv[2];
  const auto every = mode == "slow" ? 2000ms : mode == "reconnect" ? 500ms : 16ms;
  std::optional<Viewer> viewer;
  std::optional<Store> store;
  for (;;) {
    if (!viewer || mode == "reconnect") {
      viewer.reset();
      store.emplace();
      viewer.emplace(argv[1]);
    }
    (void)viewer->poll(*store, 4ms);
    std::this_thread::sleep_for(every);
  }
}
