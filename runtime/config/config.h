// A DeepSpeed JSON file as typed settings, with DeepSpeed's defaults, consistency rules and "auto"
// (docs/configuration.md). Every key is either supported, ignored with a warning because it cannot change the
// result, or rejected by name.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "kernels/dtype.h"
#include "runtime/base/emulated_link.h"
#include "runtime/plan/data_parallel.h"
#include "runtime/plan/lr_schedule.h"
#include "runtime/plan/memory_model.h"
#include "runtime/plan/micro_batches.h"
#include "runtime/plan/param_groups.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::config {

/// A file that cannot be used. The message contains the file, line and column if known, the key's path, the
/// value and what to do.
class ConfigError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// train_batch_size = micro_batch_size * accumulation_steps * world (samples, not tokens), except with
/// shardscope.micro_batches.shapes.
struct BatchConfig {
  std::int64_t train_batch_size = 0;
  std::int64_t micro_batch_size = 0;  ///< per rank
  std::int64_t accumulation_steps = 0;
};

struct OptimizerConfig {
  std::string type = "AdamW";  ///< as written: Adam or AdamW
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool decoupled = true;  ///< AdamW, or Adam with adam_w_mode (DeepSpeed's default)
};

/// One of the optimizer's parameter groups (PyTorch's param_groups).
struct ParamGroup {
  plan::ParamGroupRule rule;
  OptimizerConfig optimizer;   ///< lr, betas, eps and weight_decay are the group's own
  plan::LrSchedule scheduler;  ///< constant: optimizer.lr
};

/// fp16 with its loss scaler (docs/zero.md L1). The scale is 1 unless fp16 is enabled.
struct Fp16Config {
  bool enabled = false;
  double loss_scale = 0;  ///< above 0: static
  std::int64_t initial_scale_power = 16;
  std::int64_t loss_scale_window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1;
};

struct Bf16Config {
  bool enabled = false;
  bool check_grad_overflow = true;  ///< skip a step whose gradients are not finite
};

/// What rank 0 prints.
enum class LogLevel : std::uint8_t { debug, info, warning, error, critical };
struct LogConfig {
  LogLevel level =
      LogLevel::info;  ///< debug: each decision of stage 3; warning: no progress; error: no warnings
  bool wall_clock_breakdown = false;  ///< times of every step and micro-step
  bool memory_breakdown = false;      ///< memory before and after each of their parts
  bool dump_state = false;            ///< the effective configuration at the start
};

/// Ours, under "shardscope".
struct ShardscopeConfig {
  plan::Compat compat = plan::Compat::shardscope;  ///< preset; single switches are in ZeroConfig::compat
  base::EmulatedLink link;
  instrumentation::Detail detail = instrumentation::Detail::params;
  std::int64_t ring_events = 1 << 16;     ///< per thread, a power of two
  std::int64_t queue_bytes = 64 << 20;    ///< unsent events kept when the collector is slow
  std::string key;                        ///< publishing key file; empty: SHARDSCOPE_KEY, or none
  double linger_s = 5;                    ///< maximum wait at the end for the collector
  bool activation_checkpointing = false;  ///< every transformer block recomputes its activations
  bool checkpoint_early_stop = false;     ///< and stops before the last product of a block
  plan::MicroBatches micro_batches{};
  plan::DataParallelGroups data_parallel_groups{};  ///< empty: all ranks are one group
  std::int64_t data_prefetch = 2;  ///< micro-batches read ahead by a thread; 0: read when needed
  std::int64_t eval_interval = 0;  ///< steps between two evaluations; 0: none
  std::int64_t eval_batches = 8;   ///< maximum of micro-batches per rank and evaluation
  double eval_fraction = 0.1;      ///< of the data, held out without --eval-data
  bool zero_init = true;           ///< false: each rank first creates the whole model in host memory
};

struct TrainingConfig {
  std::uint32_t world = 1;  ///< ranks that train one copy of the model, which the batch was checked against
  BatchConfig batch;
  double gradient_clipping = 1.0;  ///< largest norm; 0: off. DeepSpeed 0.19 clips at 1.0 by default
  OptimizerConfig optimizer;       ///< the defaults of parameter groups
  plan::LrSchedule scheduler;      ///< constant: optimizer.lr
  /// Never empty: one group of all parameters, without a rule, if the file has none.
  std::vector<ParamGroup> param_groups{1};
  Fp16Config fp16;
  Bf16Config bf16;
  plan::ZeroConfig zero;
  // Both default to the storage type.
  kernels::DType grad_accum_type = kernels::DType::f32;     ///< data_types.grad_accum_dtype: that or fp32
  kernels::DType communication_type = kernels::DType::f32;  ///< communication_data_type
  std::int64_t steps_per_print = 10;
  LogConfig log;
  ShardscopeConfig shardscope;
  /// Keys accepted without effect, one sentence each, in file order.
  std::vector<std::string> warnings;

  /// Storage type of parameters, activations and gradients.
  [[nodiscard]] kernels::DType storage_type() const noexcept;
  /// Bytes per element of each model state.
  [[nodiscard]] plan::StateBytes state_bytes() const noexcept;
  /// The rate of the optimizer's update number `update`, from 0; skipped steps do not count.
  [[nodiscard]] double learning_rate(std::int64_t update, std::size_t param_group = 0) const;
  struct Betas {
    double beta1 = 0, beta2 = 0;
  };
  /// The optimizer's betas, or those of a momentum schedule. Throws ConfigError if it has moved beta1 out of
  /// [0, 1), where Adam's bias correction is defined.
  [[nodiscard]] Betas betas(std::int64_t update, std::size_t param_group = 0) const;
  /// The rules of param_groups; empty if the file has no groups.
  [[nodiscard]] std::vector<plan::ParamGroupRule> group_rules() const;
};

/// Inputs for "auto" values and for the check of batch sizes.
struct ParseOptions {
  std::uint32_t world = 1;  ///< ranks of the run; without shardscope.data_parallel_groups one copy's
  std::int64_t default_micro_batch = 4;  ///< for an "auto" not determined by other keys
  std::int64_t hidden_size = 0;          ///< width C, for the "auto" of ZeRO bucket sizes; 0: unknown
  std::int64_t total_steps = 0;          ///< of the run, for total_num_steps "auto"; 0: unknown
  std::string file = "config";           ///< named in messages
  bool generated = false;                ///< the user has no such file: messages contain no line
};

/// Reads JSON text. Throws ConfigError.
[[nodiscard]] TrainingConfig parse_config(const std::string& json_text, const ParseOptions& options);

/// Reads a file (options.file is set to `path` unless the file was generated). Throws ConfigError.
[[nodiscard]] TrainingConfig load_config(const std::string& path, ParseOptions options);

/// The ZeRO settings in the effective configuration of a recorded run, read by the code of parse_config, so
/// that all keys of a run are included. Other programs may have written it: missing keys and keys of another
/// type have their defaults; numbers are not range-checked.
[[nodiscard]] plan::ZeroConfig recorded_zero(const std::string& effective_json);

/// The configuration of a run without a file: stage 0, fp32, AdamW, the default micro-batch.
[[nodiscard]] TrainingConfig default_config(const ParseOptions& options);

/// The whole configuration with defaults filled in, as a DeepSpeed JSON file that parses to the same
/// settings.
[[nodiscard]] std::string effective_json(const TrainingConfig& config);

/// "fp32", "bf16" or "fp16".
[[nodiscard]] const char* name_of(kernels::DType type) noexcept;
/// As DeepSpeed's log_level: "debug", "info", ...
[[nodiscard]] const char* name_of(LogLevel level) noexcept;

}  // namespace shardscope::config
