#include "runtime/engine/run_log.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace shardscope::engine {

void RunLog::write(const std::string& path, comm::Communicator& comm) const {
  using nlohmann::json;
  json losses = json::array();
  // Rank by rank and step by step, as a sum in which the other ranks contribute zeros: all ranks have the
  // same steps and micro-steps, so they make the same collectives.
  for (std::uint32_t rank = 0; rank < comm.world(); ++rank) {
    json of_rank = json::array();
    for (const StepResult& step : steps_) {
      std::vector<double> values(step.losses.size(), 0.0);
      if (rank == comm.rank()) values.assign(step.losses.begin(), step.losses.end());
      comm.all_reduce_host(values);
      of_rank.push_back(values);
    }
    losses.push_back(std::move(of_rank));
  }
  // After the last collective: ranks that returned earlier would leave it waiting.
  if (comm.rank() != 0) return;
  json norms = json::array();
  json scales = json::array();
  json rates = json::array();
  json skipped = json::array();
  for (const StepResult& step : steps_) {
    // JSON has no NaN: a skipped step has the norm null.
    norms.push_back(std::isfinite(step.grad_norm) ? json(step.grad_norm) : json(nullptr));
    scales.push_back(step.loss_scale);
    rates.push_back(step.learning_rate);
    skipped.push_back(step.skipped);
  }
  json ended = json::array();
  for (const auto at : ended_) ended.push_back(std::chrono::duration<double>(at.time_since_epoch()).count());
  json log{{"losses", losses},       {"grad_norm", norms}, {"loss_scale", scales},
           {"learning_rate", rates}, {"skipped", skipped}, {"ended_s", ended}};
  for (const Evaluation& each : evaluations_) {
    log["evaluations"].push_back({{"step", each.step}, {"loss", each.loss}, {"batches", each.batches}});
  }
  std::ofstream file(path);
  file << log.dump(1) << '\n';
  // Before the check: close() flushes the buffer, which may fail.
  file.close();
  if (!file) throw std::runtime_error("--losses " + path + ": cannot be written; is the folder there?");
}

}  // namespace shardscope::engine
