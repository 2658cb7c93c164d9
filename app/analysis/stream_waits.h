// Waits of a GPU's compute stream for its communication streams, from the device's own records.
#pragma once

#include <cstdint>
#include <vector>

#include "app/analysis/gpu_activity.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// [Note: waits of a stream]
/// In an attached program on a GPU a stream waits for another one by an event, and no hook sees when. A
/// kernel of the compute stream had been launched, its stream was idle, and it began within 20 us after the
/// end of a gather or of a reduction: it is taken to have waited for that from its launch, or from the end of
/// the kernel before it, on. Another reason to begin just then is possible: a collective's kernel also takes
/// multiprocessors. In order of time; of the causes that the run does not record itself: none in a run that
/// records its waits.
[[nodiscard]] std::vector<GpuWait> stream_waits(const store::Store& store, std::uint32_t rank,
                                                Interval window);

/// Of these, the waits for reductions after which the backward continued, by the owner of the kernel that
/// waited: the backward had no free bucket, or waits for each reduction (DeepSpeed issue 8364).
[[nodiscard]] std::vector<Interval> reduction_waits_inside_backward(const store::Store& store,
                                                                    std::uint32_t rank, Interval window);

}  // namespace shardscope::analysis
