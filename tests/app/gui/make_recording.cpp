// Writes a synthetic run to a recording, for tests and for looking at panels without training.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "app/store/recording.h"
#include "tests/app/store/synthetic_gpu.h"
#include "tests/app/store/synthetic_run.h"

using shardscope::store::SyntheticOptions;

/// make_recording OUT.zscope [key=value...]: world, stage, steps, layers, prefetch, link_gbps, micro_steps;
/// gpu=1: with the records of GPUs; long=1: with names longer than any panel has room for.
int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "make_recording: where to? make_recording OUT.zscope [key=value...]\n");
    return 1;
  }
  SyntheticOptions options;
  options.plan_ids = true;
  bool gpu = false;
  bool long_names = false;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const double value = equals == std::string::npos ? 0 : std::atof(argument.c_str() + equals + 1);
    if (key == "world")
      options.world = static_cast<std::uint32_t>(value);
    else if (key == "stage")
      options.stage = static_cast<std::int32_t>(value);
    else if (key == "steps")
      options.steps = static_cast<std::uint32_t>(value);
    else if (key == "layers")
      options.layers = static_cast<std::uint32_t>(value);
    else if (key == "micro_steps")
      options.micro_steps = static_cast<std::uint32_t>(value);
    else if (key == "prefetch")
      options.prefetch_elems = static_cast<std::int64_t>(value);
    else if (key == "link_gbps")
      options.link_gbps = value;
    else if (key == "long")
      long_names = value != 0;
    else if (key == "gpu")
      gpu = value != 0;
    else {
      std::fprintf(stderr, "make_recording: option '%s' is not known\n", key.c_str());
      return 1;
    }
  }
  try {
    auto run = shardscope::store::make_synthetic_run(options);
    if (gpu) shardscope::store::add_gpu(run);
    if (long_names) {
      const std::string prefix = "base_model.model.a_wrapper_with_a_very_long_name.language_model.decoder.";
      for (auto& tables : run.tables) {
        tables.model = prefix + tables.model;
        for (auto& module : tables.modules) {
          if (!module.path.empty()) module.path = prefix + module.path;
        }
        for (auto& param : tables.params) param.name = prefix + param.name;
      }
    }
    shardscope::store::Store store;
    shardscope::store::fill_store(store, run);
    shardscope::store::RecordingWriter writer(argv[1]);
    for (const auto& tables : run.tables) writer.tables(tables.rank, tables);
    for (const auto& chunk : run.chunks) writer.append(chunk);
    for (const auto& rank : run.ranks) {
      writer.rank(rank);
      if (!gpu) continue;
      const auto& names = shardscope::store::gpu_names();
      for (std::uint32_t id = 0; id < names.size(); ++id) writer.name(rank.rank, id, names[id]);
    }
    for (const auto& message : run.messages) writer.message(message);
    writer.finish(store);
    if (!writer.error().empty()) {
      std::fprintf(stderr, "make_recording: %s\n", writer.error().c_str());
      return 1;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_recording: %s\n", error.what());
    return 1;
  }
  return 0;
}
