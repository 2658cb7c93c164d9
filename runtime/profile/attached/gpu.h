/* Records of the GPU of a run that is not ours: libshardscope_gpu.so, loaded by the Python package where the
 * run has a GPU. It emits through libshardscope.so.1 whenever the level is `kernels`. Plain C; every function
 * may be called from any thread. */
#ifndef SHARDSCOPE_PROFILE_ATTACHED_GPU_H
#define SHARDSCOPE_PROFILE_ATTACHED_GPU_H

#include "shardscope/shardscope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Begins to record whenever the level asks for it. `run` has started and lives until shardscope_gpu_stop().
 * `compute`: the cudaStream_t on which the caller computes, whose device is the current one: its work has the
 * lane SHARDSCOPE_LANE_GPU_COMPUTE. What CUPTI refuses later is a warning of the run. Again while it records:
 * nothing. */
SHARDSCOPE_API void shardscope_gpu_record(shardscope_run* run, void* compute);
/* Suspend leaves CUPTI to another profiler of this process, resume takes it up again. Each returns when that
 * has happened, at most about a tenth of a second later. Without a recording: nothing. */
SHARDSCOPE_API void shardscope_gpu_suspend(void);
SHARDSCOPE_API void shardscope_gpu_resume(void);
/* Ends it; what was recorded has been emitted when this returns. Before shardscope_finish(). */
SHARDSCOPE_API void shardscope_gpu_stop(void);

#ifdef __cplusplus
}
#endif

#endif
