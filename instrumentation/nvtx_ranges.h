// NVTX ranges of what the host does and issues, in a domain of our own ("shardscope"), so that Nsight Systems
// and other NVTX tools show the names that Shardscope shows, and those of DeepSpeed's functions. They are
// host time: when the work of a phase, module or collective was issued, not when the device did it. NVTX is
// headers only: a build that finds them has ranges on the CPU as well.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::instrumentation::nvtx {

/// Names of modules, by id. Once, before the first event; not needed without a tool.
void name_modules(std::vector<std::string> paths);

/// Opens or closes the calling thread's range of a phase, module or collective; other events are not NVTX's.
/// A branch where no tool is attached, and nothing at all in a build without NVTX. Ranges nest as a thread's
/// calls do: a begin within is closed with what it lies in, an end without its begin is ignored. Does not
/// throw.
void note(const Event& event) noexcept;

/// Functions of DeepSpeed that it marks with ranges of their names (instrument_w_nvtx), as far as the runtime
/// does what they do.
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

/// The calling thread's range of a function while this lives; whatever was left open in it is closed with it.
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
