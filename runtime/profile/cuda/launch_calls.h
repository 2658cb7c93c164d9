// The CUDA calls that queue GPU work, from which launch delays and owners of work are computed.
#pragma once

#include <cupti.h>

namespace shardscope::profile::cuda {

/// `kind`: CUPTI_ACTIVITY_KIND_RUNTIME or _DRIVER; `call`: its number there.
[[nodiscard]] bool queues_work(CUpti_ActivityKind kind, CUpti_CallbackId call) noexcept;

}  // namespace shardscope::profile::cuda
