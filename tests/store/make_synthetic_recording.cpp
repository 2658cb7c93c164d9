// make_synthetic_recording OUT.zscope [world=4] [stage=3] [steps=8] [layers=4] [seed=1]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "app/store/recording.h"
#include "tests/store/synthetic_run.h"

int main(int argc, char** argv) {
  using namespace shardscope::store;
  if (argc < 2) {
    std::fprintf(stderr, "use: %s OUT.zscope [world=4] [stage=3] [steps=8] [layers=4] [seed=1]\n", argv[0]);
    return 2;
  }
  SyntheticOptions options{.steps = 8};
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
    } else {
      std::fprintf(stderr, "make_synthetic_recording: %s is not an option\n", argument.c_str());
      return 2;
    }
  }
  try {
    const SyntheticRun run = make_synthetic_run(options);
    RecordingWriter writer(argv[1]);
    record(writer, run);
    if (!writer.error().empty()) throw std::runtime_error(writer.error());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_synthetic_recording: %s\n", error.what());
    return 1;
  }
  return 0;
}
