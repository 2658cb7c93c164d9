// Fault injection: one rank deviates from the others on purpose, so that a run shows how a hang looks and how
// it is reported. Off without --fault.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

enum class FaultKind : std::uint8_t {
  return_early,       ///< exits with code 0 before the step without telling the other ranks
  skip_module,        ///< the step's forwards leave out one module
  swap_modules,       ///< the step's forwards run one module after the next one of its list
  fewer_micro_steps,  ///< starts the optimizer step one micro-step before the others
  fewer_steps,        ///< ends training before the step and waits at the end of the run
  save_alone,         ///< begins a checkpoint before the step
  stop,               ///< SIGSTOP before the step
  die                 ///< SIGKILL before the step
};

struct Fault {
  std::uint32_t rank = 0;  ///< the deviating rank
  std::int64_t step = 0;   ///< from 0, as progress lines count
  FaultKind kind{};
  std::string module;  ///< path, of skip_module and swap_modules
};

/// Spelling of a kind in --fault: "skip-module".
[[nodiscard]] std::string_view name_of(FaultKind kind) noexcept;
/// "rank=1,step=3,kind=skip-module,module=blk.1", in any order. Throws std::invalid_argument naming the
/// mistake and the valid values.
[[nodiscard]] Fault parse_fault(std::string_view text);

/// The properties of a run that decide whether a fault can occur in it.
struct FaultRun {
  const ModelPlan& model;
  std::uint32_t world = 1;
  std::int64_t steps = 0;
  std::int64_t accumulation_steps = 1;
  bool has_checkpoints = false;  ///< a checkpoint folder is configured
  bool resumes = false;          ///< from a checkpoint
  bool every_rank_saves = true;  ///< else only the ranks of one copy of the model
};
/// Throws std::invalid_argument where the fault would not happen or would not leave a network that can run:
/// without the module, or in the other order, the widths must still fit.
void check_fault(const Fault& fault, const FaultRun& run);

/// Prefix of the recorded message that names the injected fault; describe() follows.
inline constexpr std::string_view kRehearses = "--fault: this run rehearses a hang: ";
/// "rank 1 skips module blk.1 in step 3".
[[nodiscard]] std::string describe(const Fault& fault);

/// The deviation of an executor in micro-steps [first, end), counted over the run.
struct ExecutorFault {
  ModuleId module{};
  bool swaps = false;  ///< with the next node of its list; else it is skipped
  std::int64_t first = 0, end = 0;
  [[nodiscard]] bool in(std::int64_t micro_step) const noexcept {
    return micro_step >= first && micro_step < end;
  }
};
/// nullopt for a fault that does not concern the forward.
[[nodiscard]] std::optional<ExecutorFault> executor_fault_of(const Fault& fault, const ModelPlan& model,
                                                             std::int64_t accumulation_steps);

}  // namespace shardscope::plan
