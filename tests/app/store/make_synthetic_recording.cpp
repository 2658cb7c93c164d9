// make_synthetic_recording OUT.zscope [world=4] [stage=3] [steps=8] [layers=4] [seed=1] [lossy=1]
//   lossy: some chunks say that events and messages are missing before them
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "app/store/recording.h"
#include "tests/app/store/synthetic_run.h"

namespace {

/// Every so many chunks follow a loss of each kind.
constexpr std::size_t kChunksBetweenLosses = 24;

void lose(shardscope::store::SyntheticRun& run) {
  for (std::size_t i = kChunksBetweenLosses; i < run.chunks.size(); i += kChunksBetweenLosses) {
    shardscope::store::Chunk& chunk = run.chunks[i];
    if (chunk.events.empty()) continue;
    chunk.dropped_before = 7;
    chunk.shed_before = 3;
    chunk.lost_before = 2;
    chunk.lost_between = 1;
    const auto earliest = std::min_element(chunk.events.begin(), chunk.events.end(),
                                           [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
    chunk.missing_end_ns = static_cast<std::int64_t>(earliest->ticks);
    chunk.missing_begin_ns = chunk.missing_end_ns - 1000;
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace shardscope::store;
  if (argc < 2) {
    std::fprintf(stderr, "use: %s OUT.zscope [world=4] [stage=3] [steps=8] [layers=4] [seed=1] [lossy=1]\n",
                 argv[0]);
    return 2;
  }
  SyntheticOptions options{.steps = 8};
  bool lossy = false;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const auto value =
        equals == std::string::npos ? 0UL : std::strtoul(argument.c_str() + equals + 1, nullptr, 10);
    if (key == "world") {
      options.world = static_cast<std::uint32_t>(value);
    } else if (key == "stage") {
      options.stage = static_cast<std::int32_t>(value);
    } else if (key == "steps") {
      options.steps = static_cast<std::uint32_t>(value);
    } else if (key == "layers") {
      options.layers = static_cast<std::uint32_t>(value);
    } else if (key == "seed") {
      options.seed = value;
    } else if (key == "lossy") {
      lossy = value != 0;
    } else {
      std::fprintf(stderr, "make_synthetic_recording: %s is not an option\n", argument.c_str());
      return 2;
    }
  }
  try {
    SyntheticRun run = make_synthetic_run(options);
    if (lossy) lose(run);
    RecordingWriter writer(argv[1]);
    record(writer, run);
    if (!writer.error().empty()) throw std::runtime_error(writer.error());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_synthetic_recording: %s\n", error.what());
    return 1;
  }
  return 0;
}
