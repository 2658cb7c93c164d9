#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

const char* to_string(OffloadDevice device) noexcept {
  switch (device) {
    case OffloadDevice::none:
      return "none";
    case OffloadDevice::cpu:
      return "cpu";
    case OffloadDevice::nvme:
      return "nvme";
  }
  return "?";
}

CompatSwitches default_switches(Compat compat) noexcept {
  CompatSwitches switches;
  switches.scheduler = compat;
  switch (compat) {
    case Compat::shardscope:
      break;
    case Compat::deepspeed:
      switches.multi_rank_bucket_allreduce = true;
      switches.ignore_allgather_bucket_size = true;
      switches.hpz_secondary_in_forward = true;
      switches.update_scale_before_unscale = true;
      switches.stage3_skips_fp16_only = true;
      switches.keep_spanning_gradients = true;
      switches.max_ongoing_fetch_events = 2;
      switches.max_param_reduce_events = 2;
      break;
    case Compat::notes:
      switches.hpz_prefetch_by_pass = true;
      switches.legacy_stage1_layout = true;
      switches.update_scale_before_unscale = true;
      switches.keep_spanning_gradients = true;
      switches.max_ongoing_fetch_events = 2;
      switches.max_param_reduce_events = 2;
      break;
  }
  return switches;
}

}  // namespace shardscope::plan
