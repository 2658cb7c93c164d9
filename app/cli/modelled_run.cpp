#include "app/cli/modelled_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "app/store/recording.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 12;
constexpr double kCloseEnough = 0.005;

}  // namespace

Measured read_measured(const std::string& path) {
  store::RecordingInfo info;
  store::Store store = store::open_recording(path, &info);
  analysis::Pace pace = analysis::measure_pace(store);
  return {std::move(store), std::move(pace)};
}

ModelledRun::ModelledRun(const std::string& model, std::uint32_t ranks) {
  command_.model = model;
  command_.ranks = ranks;
  command_.no_memory_limit = true;
  command_.hardware = folder_.file("hardware.json");
}

void ModelledRun::set_machine(const analysis::Rates& rates, const std::string& description,
                              std::uint32_t ranks_per_node, const analysis::Pace& pace) {
  std::ofstream(command_.hardware) << analysis::hardware_file(rates, description, ranks_per_node);
  command_.stragglers.clear();
  for (std::size_t rank = 0; rank < pace.slowness.size() && rank < command_.ranks; ++rank)
    if (pace.slowness[rank] != 1.0)
      command_.stragglers.push_back(fmt::format("{}:{:.4f}", rank, pace.slowness[rank]));
}

std::string ModelledRun::play(const TemporaryConfig& config, const std::string& name, std::int64_t steps) {
  std::string path = folder_.file(name + ".zscope");
  fs::remove(path);
  command_.config = config.path();
  command_.config_name = config.name();
  command_.steps = steps;
  static_cast<void>(record_simulation(command_, path));
  return path;
}

Measured ModelledRun::fit(analysis::Rates& rates, const TemporaryConfig& config, const analysis::Pace& wanted,
                          const Machine& machine) {
  std::optional<Measured> modelled;
  for (int round = 0; round < kRounds; ++round) {
    set_machine(rates, machine.description, machine.ranks_per_node, wanted);
    modelled.emplace(read_measured(play(config, "recorded", machine.steps)));
    if (analysis::relative_error(wanted, modelled->pace) < kCloseEnough) break;
    rates = analysis::calibrate(rates, wanted, modelled->pace);
  }
  return std::move(*modelled);
}

}  // namespace shardscope::cli
