// NVTX ranges of the host's work, in a domain of our own ("shardscope"), so that Nsight Systems and other
// NVTX tools show the names that Shardscope and DeepSpeed use. They are host time: when the work of a phase,
// module or collective was issued, not when the device executed it. NVTX is header-only: a build that finds
// it has ranges on the CPU as well.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::instrumentation::nvtx {

/// Names of modules, by id. Call once, before the first event; not needed without a tool.
void name_modules(std::vector<std::string> paths);

/// Opens or closes the calling thread's range of a phase, module or collective; other events have no range.
/// Costs a branch where no tool is attached, and nothing in a build without NVTX. Ranges nest as a thread's
/// calls do: closing a range closes unfinished inner ones, and an end without its begin is ignored. Does not
/// throw.
void note(const Event& event) noexcept;

/// Functions that DeepSpeed marks with NVTX ranges of their names (instrument_w_nvtx), where the runtime has
/// an equivalent.
enum class Function : std::uint8_t {
  forward,
  backward,
  gradient_epilogue,
  step,
  overflow_check,
  prepare_sub_group,
  fetch,
  wait,
  release,
  release_all,
  all_gather,
  release_param,
  prefetch_nvme,
  add_gradient,
  reduce_gradients,
};
inline constexpr std::array kFunctionNames{"forward",
                                           "backward",
                                           "independent_gradient_partition_epilogue",
                                           "step",
                                           "_overflow_check_and_loss_scale_update",
                                           "_prepare_sub_group",
                                           "fetch_sub_module",
                                           "wait",
                                           "release_sub_module",
                                           "release_and_reset_all",
                                           "__all_gather_params",
                                           "__release_param",
                                           "__prefetch_nvme_param_partitions",
                                           "__add_grad_to_ipg_bucket",
                                           "__reduce_and_partition_ipg_grads"};

/// The calling thread's range of a function while this object exists; closes unfinished inner ranges.
class FunctionRange {
 public:
  explicit FunctionRange(Function function) noexcept;
  ~FunctionRange();
  FunctionRange(const FunctionRange&) = delete;
  FunctionRange& operator=(const FunctionRange&) = delete;

 private:
  Function function_;
};

}  // namespace shardscope::instrumentation::nvtx
