// Whole training runs on thread worlds: every rank is a thread with its device, communicators and engine, the
// same code as under mpirun.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/engine/engine.h"
#include "runtime/execution/context.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/zero_traffic.h"

namespace shardscope::engine::testing {

using execution::Context;

using Json = nlohmann::json;

struct RunSpec {
  plan::ModelSpec model;
  /// Where set: what a rank has instead, of the same parameters.
  std::function<plan::ModelSpec(std::uint32_t rank)> model_of_rank;
  Json config;  ///< DeepSpeed JSON
  std::uint32_t world = 1;
  std::string data = "golden:mlp";
  std::string init = "hash";
  std::int64_t steps = 4;
  std::size_t limit_bytes = 0;  ///< of each rank's device pool; 0: none
  kernels::Backend backend = kernels::Backend::cpu;
  /// What this rank gets out of a reduction is infinite, and nothing else is.
  std::optional<std::uint32_t> overflows_on;
  /// Where set: of this parameter alone (not of an all-reduce).
  std::optional<plan::ParamId> overflows_in;
  /// Called on every rank before training, with its context and its rank in the run.
  std::function<void(const Context&, std::uint32_t rank)> prepare;
  /// Called on every rank once the gradients of a step are complete, before the optimizer.
  std::function<void(const Context&)> before_update;
  /// Called on every rank after each step, with its engine.
  std::function<void(Engine&, const Context&, const StepResult&)> between_steps;
  /// Called on every rank once the weights are set: may continue a checkpoint instead.
  std::function<void(const Context&, Engine&, data::BatchStream&)> begin;
  /// Called on every rank after the last step.
  std::function<void(const Context&, Engine&, data::BatchStream&)> end;
  /// Called on every rank after each step.
  std::function<void(const Context&, const StepResult&)> after_step;
};

/// Elements that one rank passed to collectives (metrics 2.3; an all-reduce counts twice).
struct Volume {
  std::int64_t gathered = 0, reduced = 0, calls = 0;
  plan::ScopeTraffic gathers{}, reductions{};  ///< the same with bytes, by the ranks they are among
};

/// One collective as it was submitted to the communicator of gradients.
struct Reduction {
  std::string op;                    ///< "reduce" or "all_reduce"
  std::int64_t elems = 0;            ///< passed by each rank
  std::vector<std::uint32_t> roots;  ///< of a reduce: owners of its parts, neighbours that are equal once
  bool operator==(const Reduction&) const = default;
};

struct RankRun {
  std::string error;
  std::vector<StepResult> steps;
  Volume volume;                      ///< of all steps, without setting and collecting weights
  std::vector<Reduction> reductions;  ///< of all steps, stages 0 to 2
  std::size_t model_state_peak = 0;   ///< bytes; categories of metrics.md section 1
  std::size_t gathered_peak = 0;      ///< bytes of gathered parameters, at collectives
  std::size_t bucket_peak = 0;        ///< bytes of gradients on their way, at collectives (stages 2 and 3)
  std::size_t secondary_peak = 0;     ///< bytes of hpZ's copies when any collective was issued
  std::size_t secondary_after = 0;    ///< and between steps
  std::size_t state_bytes_after = 0;  ///< model states between steps
  std::size_t used_after = 0;         ///< bytes of all pools once the engine is gone
  std::size_t host_state_bytes = 0;   ///< model states between steps in pageable host memory
  std::size_t pinned_state_bytes = 0;
  std::vector<std::vector<float>> weights;  ///< of the first rank of a further copy of the model
};

struct TrainingRun {
  std::vector<RankRun> ranks;
  std::vector<std::vector<float>> weights;  ///< by ParamId, consolidated on rank 0
};

/// Runs to the end; errors of ranks are in the result.
[[nodiscard]] TrainingRun train(const RunSpec& spec);

/// Bytes of model states (metrics.md section 1) at `stage`.
[[nodiscard]] std::size_t model_states(device::Arena& memory, std::uint32_t stage);

/// samples/models/NAME.json or a built-in model.
[[nodiscard]] plan::ModelSpec model_named(const std::string& name);
/// Layers large enough that their shards go to NVMe: 1 MiB and more, in fp32 over two ranks.
[[nodiscard]] plan::ModelSpec wide_model();

/// {"train_micro_batch_size_per_gpu": 4, AdamW of the golden runs, gradient_clipping 1, stage}. Stage 3 gets
/// small limits so that everything is gathered, prefetched and released. `type`: fp32, bf16 or fp16.
[[nodiscard]] Json make_config(int stage, int accumulation_steps = 1, const std::string& type = "fp32");

/// "" when bitwise equal, else where the first difference is.
[[nodiscard]] std::string first_difference(const TrainingRun& a, const TrainingRun& b);

}  // namespace shardscope::engine::testing
