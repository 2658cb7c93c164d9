// How much memory model states need, estimated before anything runs: DeepSpeed's two estimators and the
// closed forms of ZeRO's other stages (docs/zero.md M1-M15).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

/// Where the documents and the source disagree (docs/zero.md D1, D2). ZeRO-3 is the same in both.
enum class EstimateFormula : std::uint8_t { doc, deepspeed_0_19 };
[[nodiscard]] const char* to_string(EstimateFormula formula) noexcept;

struct EstimateInput {
  std::int64_t params = 0;
  std::int64_t largest_layer_params = 0;  ///< ZeRO-3 only
  std::int64_t gpus_per_node = 1;
  std::int64_t nodes = 1;
  double additional_buffer_factor = 1.5;
  EstimateFormula formula = EstimateFormula::doc;
};
/// Total and largest layer of a model, shared parameters once (M1).
[[nodiscard]] EstimateInput estimate_input(const ModelPlan& model);

/// One row of an estimate: bytes per node on the host and per GPU.
struct EstimateRow {
  bool offload_optimizer = false;
  bool offload_param = false;  ///< ZeRO-3
  bool zero_init = false;      ///< ZeRO-3
  std::int64_t cpu_bytes = 0;
  std::int64_t gpu_bytes = 0;
};

/// Rows in print order (M9). Throw std::invalid_argument on counts below 1 or a factor not above 0.
[[nodiscard]] std::vector<EstimateRow> estimate_zero2(const EstimateInput& input);
[[nodiscard]] std::vector<EstimateRow> estimate_zero3(const EstimateInput& input);

/// The text DeepSpeed prints (M8), lines ended by newlines. The documented formula writes devices "cpu" and
/// "none", padded to four characters where another option follows; deepspeed_0_19 writes the enum's str()
/// since Python 3.11, "OffloadDeviceEnum.cpu" (docs/zero.md D3).
[[nodiscard]] std::string format_zero2(const EstimateInput& input);
[[nodiscard]] std::string format_zero3(const EstimateInput& input);

/// Per GPU, ZeRO-3, in the documents' own arithmetic: no host memory and no factor, whole bytes per GPU
/// (M14).
struct ThreeCases {
  std::int64_t largest_layer = 0;  ///< gathered, with its gradient: 4 bytes a parameter
  std::int64_t nothing_offloaded = 0, all_offloaded = 0, optimizer_offloaded = 0;
};
[[nodiscard]] ThreeCases zero3_cases(const EstimateInput& input);
/// As the documents print them: "case1 gpu memory:   3291MB", MB of 2^20 bytes, truncated.
[[nodiscard]] std::string format_cases(const EstimateInput& input);

/// Bytes of pinned host memory of all nodes together with offload_optimizer.pin_memory, a part of the host
/// memory above. The documents give no figure (M12: "no control" then); this is what DeepSpeed 0.19 allocates
/// (stage_1_and_2.py): fp32 master weights and gradients, a 16-bit staging copy of the parameters, 16-bit
/// gradients when they accumulate. A buffer for the gradient of the largest parameter, one per GPU, is not
/// counted.
[[nodiscard]] std::int64_t pinned_bytes_zero2(std::int64_t params,
                                              std::int64_t gradient_accumulation_steps) noexcept;

/// Pinned host memory of all nodes together (M12), a part of the host memory above: fp32 gradients, 16-bit
/// parameters when they are offloaded, and then 16-bit gradients when they accumulate.
[[nodiscard]] std::int64_t pinned_bytes_zero3(std::int64_t params, bool offload_param,
                                              std::int64_t gradient_accumulation_steps) noexcept;

/// Activation memory of one transformer layer in 16 bits as the documents put it (M13, "around"):
/// (2 seq heads + 16 hidden) bytes per token, times seq * batch tokens.
[[nodiscard]] double activation_bytes(double sequence, double heads, double hidden, double batch) noexcept;

}  // namespace shardscope::plan
