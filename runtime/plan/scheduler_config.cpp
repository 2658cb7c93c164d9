#include "runtime/plan/scheduler_config.h"

namespace shardscope::plan {

SchedulerConfig make_scheduler_config(const ZeroConfig& zero) noexcept {
  SchedulerConfig config;
  // With allgather_sequential a bucket of one element: each prefetch takes one parameter, since the last
  // parameter may exceed the bucket.
  config.prefetch_bucket_elems = zero.allgather_sequential ? 1 : zero.prefetch_bucket_size;
  config.max_live_elems = zero.max_live_parameters;
  config.max_reuse_distance_elems = zero.max_reuse_distance;
  config.param_persistence_elems = zero.param_persistence_threshold;
  config.model_persistence_elems = zero.model_persistence_threshold;
  config.compat = zero.compat.scheduler;
  config.overlap = overlap_of(zero.overlap());
  return config;
}

}  // namespace shardscope::plan
