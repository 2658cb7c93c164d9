/* GPU records of an attached run: libshardscope_gpu.so, loaded by the Python package if the run has a GPU. It
 * emits through libshardscope.so.1 whenever the level is `kernels`. Plain C; every function
 * may be called from any thread. */
#ifndef SHARDSCOPE_PROFILE_ATTACHED_GPU_H
#define SHARDSCOPE_PROFILE_ATTACHED_GPU_H

#include "shardscope/shardscope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts recording whenever the level is `kernels`. `run` must have started and stay valid until
 * shardscope_gpu_stop(). `compute`: the caller's compute cudaStream_t, on the current device: its work has
 * the lane SHARDSCOPE_LANE_GPU_COMPUTE. Later CUPTI errors are warnings of the run. Does nothing if already
 * started. */
SHARDSCOPE_API void shardscope_gpu_record(shardscope_run* run, void* compute);
/* Suspend releases CUPTI for another profiler of this process, resume takes it again. Each returns when done,
 * after at most about a tenth of a second. Without a recording they do nothing. */
SHARDSCOPE_API void shardscope_gpu_suspend(void);
SHARDSCOPE_API void shardscope_gpu_resume(void);
/* Stops recording; all records have been emitted when this returns. Call before shardscope_finish(). */
SHARDSCOPE_API void shardscope_gpu_stop(void);

#ifdef __cplusplus
}
#endif

#endif
