// The calls of CUDA that queue work for the GPU: what the delay of a launch and the owner of work come from.
#pragma once

#include <cupti.h>

namespace shardscope::profile::cuda {

/// `kind`: CUPTI_ACTIVITY_KIND_RUNTIME or _DRIVER; `call`: its number there.
[[nodiscard]] bool queues_work(CUpti_ActivityKind kind, CUpti_CallbackId call) noexcept;

}  // namespace shardscope::profile::cuda
