/* The events of Shardscope's C interface: kinds, codes and one function per kind. What each event means, and
 * when a runtime emits it, is in docs/events.md. Included by shardscope.h; include that. */
#ifndef SHARDSCOPE_EVENTS_H
#define SHARDSCOPE_EVENTS_H

#include <string.h>

#ifndef SHARDSCOPE_SHARDSCOPE_H
#include "shardscope/shardscope.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Lanes of a rank: begin and end events nest within one. Only ever appended. */
enum {
  SHARDSCOPE_LANE_HOST = 0,
  SHARDSCOPE_LANE_COMPUTE = 1,
  SHARDSCOPE_LANE_GATHER = 2,
  SHARDSCOPE_LANE_REDUCE = 3,
  SHARDSCOPE_LANE_COPY = 4,
  SHARDSCOPE_LANE_NVME = 5,
  SHARDSCOPE_LANE_WORKER = 6,      /* arithmetic on host memory: the optimizer of offloaded states */
  SHARDSCOPE_LANE_GPU_COMPUTE = 7, /* CUDA streams, as a profiler of the driver saw them */
  SHARDSCOPE_LANE_GPU_GATHER = 8,
  SHARDSCOPE_LANE_GPU_REDUCE = 9,
  SHARDSCOPE_LANE_GPU_COPY = 10,
  SHARDSCOPE_LANE_GPU_OTHER_1 = 11,
  SHARDSCOPE_LANE_GPU_OTHER_2 = 12,
  SHARDSCOPE_LANE_GPU_OTHER_3 = 13,
  SHARDSCOPE_LANE_GPU_HOST = 14,   /* calls in which the host waited for the GPU */
  SHARDSCOPE_LANE_GPU_RECORDS = 15 /* stretches of which every record of the GPU is known */
};

/* Only ever appended. */
enum {
  SHARDSCOPE_EVENT_STEP_BEGIN = 1,
  SHARDSCOPE_EVENT_STEP_END,
  SHARDSCOPE_EVENT_MICRO_STEP_BEGIN,
  SHARDSCOPE_EVENT_MICRO_STEP_END,
  SHARDSCOPE_EVENT_PHASE_BEGIN,
  SHARDSCOPE_EVENT_PHASE_END,
  SHARDSCOPE_EVENT_MODULE_BEGIN,
  SHARDSCOPE_EVENT_MODULE_END,
  SHARDSCOPE_EVENT_PARAM_STATUS,
  SHARDSCOPE_EVENT_FETCH_WAIT_BEGIN,
  SHARDSCOPE_EVENT_FETCH_WAIT_END,
  SHARDSCOPE_EVENT_COLLECTIVE_SUBMITTED,
  SHARDSCOPE_EVENT_COLLECTIVE_BEGIN,
  SHARDSCOPE_EVENT_COLLECTIVE_END,
  SHARDSCOPE_EVENT_COLLECTIVE_PART,
  SHARDSCOPE_EVENT_COLLECTIVE_ENTERED,
  SHARDSCOPE_EVENT_BUCKET_OPEN,
  SHARDSCOPE_EVENT_BUCKET_ADD,
  SHARDSCOPE_EVENT_BUCKET_FLUSH,
  SHARDSCOPE_EVENT_TRACE_MODE,
  SHARDSCOPE_EVENT_TRACE_INVALIDATED,
  SHARDSCOPE_EVENT_FETCH_DECISION,
  SHARDSCOPE_EVENT_PREFETCH_ISSUED,
  SHARDSCOPE_EVENT_RELEASE_KEPT,
  SHARDSCOPE_EVENT_MEMORY_ALLOC,
  SHARDSCOPE_EVENT_MEMORY_FREE,
  SHARDSCOPE_EVENT_TRANSFER_BEGIN,
  SHARDSCOPE_EVENT_TRANSFER_END,
  SHARDSCOPE_EVENT_OPTIMIZER_BEGIN,
  SHARDSCOPE_EVENT_OPTIMIZER_END,
  SHARDSCOPE_EVENT_REDUCE_WAIT_BEGIN,
  SHARDSCOPE_EVENT_REDUCE_WAIT_END,
  SHARDSCOPE_EVENT_OVERFLOW,
  SHARDSCOPE_EVENT_LOSS,
  SHARDSCOPE_EVENT_GRAD_NORM,
  SHARDSCOPE_EVENT_LOSS_SCALE,
  SHARDSCOPE_EVENT_LEARNING_RATE,
  SHARDSCOPE_EVENT_TOKENS,
  SHARDSCOPE_EVENT_KERNEL_BEGIN,
  SHARDSCOPE_EVENT_KERNEL_END,
  SHARDSCOPE_EVENT_GATE,
  SHARDSCOPE_EVENT_PAUSED_BEGIN,
  SHARDSCOPE_EVENT_PAUSED_END,
  SHARDSCOPE_EVENT_MESSAGE,
  SHARDSCOPE_EVENT_COLUMNS_SELECTED,
  SHARDSCOPE_EVENT_DEFERRED_UPDATE,
  SHARDSCOPE_EVENT_DEFERRED_WAIT_BEGIN,
  SHARDSCOPE_EVENT_DEFERRED_WAIT_END,
  SHARDSCOPE_EVENT_NCCL_COLLECTIVE,
  SHARDSCOPE_EVENT_NCCL_KERNEL,
  SHARDSCOPE_EVENT_NCCL_PROXY,
  SHARDSCOPE_EVENT_OUTSIDE_MEMORY,
  SHARDSCOPE_EVENT_PREFETCH_OUTCOME,
  SHARDSCOPE_EVENT_IN_FLIGHT_LIMIT,
  /* Made by the collector of GPU records, with the times of the GPU. */
  SHARDSCOPE_EVENT_GPU_BEGIN,
  SHARDSCOPE_EVENT_GPU_END,
  SHARDSCOPE_EVENT_GPU_SYNC_BEGIN,
  SHARDSCOPE_EVENT_GPU_SYNC_END,
  SHARDSCOPE_EVENT_GPU_RECORDS_BEGIN,
  SHARDSCOPE_EVENT_GPU_RECORDS_END,
  SHARDSCOPE_EVENT_GPU_MEMORY,
  SHARDSCOPE_EVENT_GPU_CLOCK,
  SHARDSCOPE_EVENT_FETCH_COUNTER,
  SHARDSCOPE_EVENT_LAST_ = SHARDSCOPE_EVENT_FETCH_COUNTER
};

enum {
  SHARDSCOPE_PHASE_FORWARD = 0,
  SHARDSCOPE_PHASE_BACKWARD = 1,
  SHARDSCOPE_PHASE_REDUCE = 2, /* on the reduce lane */
  SHARDSCOPE_PHASE_OPTIMIZER = 3,
  SHARDSCOPE_PHASE_GATHER = 4, /* on the gather lane */
  /* Between two steps; the step is the number of steps made. Kept apart from computation. */
  SHARDSCOPE_PHASE_CHECKPOINT_SAVE = 5,
  SHARDSCOPE_PHASE_CHECKPOINT_LOAD = 6
};
/* Of a deferred update: its sum is complete and the worker may begin; the device has its parameters. */
enum { SHARDSCOPE_DEFERRED_BEGUN = 0, SHARDSCOPE_DEFERRED_PUBLISHED = 1 };
enum { SHARDSCOPE_PASS_FORWARD = 0, SHARDSCOPE_PASS_BACKWARD = 1, SHARDSCOPE_PASS_RECOMPUTE = 2 };

/* A parameter's status, and why it changed. */
enum { SHARDSCOPE_NOT_AVAILABLE = 0, SHARDSCOPE_IN_FLIGHT = 1, SHARDSCOPE_AVAILABLE = 2 };
/* Added to a status: this rank also holds its part of a secondary copy (hpZ). */
enum { SHARDSCOPE_SECONDARY_HELD = 8 };
enum {
  SHARDSCOPE_CAUSE_FETCH = 0,
  SHARDSCOPE_CAUSE_PREFETCH = 1,
  SHARDSCOPE_CAUSE_PERSISTENT = 2,
  SHARDSCOPE_CAUSE_EXTERNAL = 3,
  SHARDSCOPE_CAUSE_RELEASE = 4,
  SHARDSCOPE_CAUSE_PARTITION = 5,
  SHARDSCOPE_CAUSE_INVALIDATION = 6
};

enum {
  SHARDSCOPE_ALL_GATHER = 0,
  SHARDSCOPE_REDUCE_SCATTER = 1,
  SHARDSCOPE_REDUCE = 2,
  SHARDSCOPE_ALL_REDUCE = 3,
  SHARDSCOPE_BROADCAST = 4,
  SHARDSCOPE_BARRIER = 5,
  SHARDSCOPE_ALL_TO_ALL = 6
};
/* dtype of shardscope_collective_end */
enum { SHARDSCOPE_F32 = 0, SHARDSCOPE_BF16 = 1, SHARDSCOPE_F16 = 2 };

/* How NCCL moved the bytes of a collective. */
enum {
  SHARDSCOPE_NCCL_ALGORITHM_UNKNOWN = 0,
  SHARDSCOPE_NCCL_TREE = 1,
  SHARDSCOPE_NCCL_RING = 2,
  SHARDSCOPE_NCCL_COLLNET_DIRECT = 3,
  SHARDSCOPE_NCCL_COLLNET_CHAIN = 4,
  SHARDSCOPE_NCCL_NVLS = 5,
  SHARDSCOPE_NCCL_NVLS_TREE = 6,
  SHARDSCOPE_NCCL_PAT = 7
};
enum {
  SHARDSCOPE_NCCL_PROTOCOL_UNKNOWN = 0,
  SHARDSCOPE_NCCL_LL = 1,
  SHARDSCOPE_NCCL_LL128 = 2,
  SHARDSCOPE_NCCL_SIMPLE = 3
};

enum {
  SHARDSCOPE_POOL_DEVICE = 0,
  SHARDSCOPE_POOL_HOST = 1,
  SHARDSCOPE_POOL_PINNED = 2,
  SHARDSCOPE_POOL_NVME = 3
};
enum {
  SHARDSCOPE_MEMORY_PARAM_SHARD = 0,
  SHARDSCOPE_MEMORY_PARAM_GATHERED = 1,
  SHARDSCOPE_MEMORY_PARAM_SECONDARY = 2,
  SHARDSCOPE_MEMORY_GRAD_FULL = 3,
  SHARDSCOPE_MEMORY_GRAD_SHARD = 4,
  SHARDSCOPE_MEMORY_MASTER_WEIGHT = 5,
  SHARDSCOPE_MEMORY_MOMENTUM = 6,
  SHARDSCOPE_MEMORY_VARIANCE = 7,
  SHARDSCOPE_MEMORY_REDUCE_BUCKET = 8,
  SHARDSCOPE_MEMORY_GATHER_BUFFER = 9,
  SHARDSCOPE_MEMORY_SWAP_BUFFER = 10,
  SHARDSCOPE_MEMORY_QUANTIZATION = 11,
  SHARDSCOPE_MEMORY_ACTIVATION = 12,
  SHARDSCOPE_MEMORY_INPUT = 13,
  SHARDSCOPE_MEMORY_TEMPORARY = 14,
  SHARDSCOPE_MEMORY_OTHER = 15
};

/* Why a bucket was flushed: full, a gradient larger than a bucket, the end of backward, a boundary. */
enum {
  SHARDSCOPE_FLUSH_FULL = 0,
  SHARDSCOPE_FLUSH_EXTRA_LARGE = 1,
  SHARDSCOPE_FLUSH_EPILOGUE = 2,
  SHARDSCOPE_FLUSH_BOUNDARY = 3
};
enum { SHARDSCOPE_TRACE_INVALID = 0, SHARDSCOPE_TRACE_RECORD = 1, SHARDSCOPE_TRACE_COMPLETE = 2 };

/* Why a recorded trace no longer holds. */
enum {
  SHARDSCOPE_INVALIDATED_MODULE_DIFFERS = 0,
  SHARDSCOPE_INVALIDATED_TRACE_TOO_SHORT = 1,
  SHARDSCOPE_INVALIDATED_PARAMS_DIFFER = 2
};

/* What the fetches of a micro-step did. Elements of FETCH_* are those of one rank's shards with their
   padding, of PREFETCH_SUBMIT and ALL_GATHER those of whole parameters. */
enum {
  SHARDSCOPE_FORWARD_FETCH_SUBMIT = 0,
  SHARDSCOPE_FORWARD_FETCH_WAIT = 1,
  SHARDSCOPE_FORWARD_PREFETCH_SUBMIT = 2,
  SHARDSCOPE_FORWARD_ALL_GATHER = 3,
  SHARDSCOPE_BACKWARD_FETCH_SUBMIT = 4,
  SHARDSCOPE_BACKWARD_FETCH_WAIT = 5,
  SHARDSCOPE_BACKWARD_PREFETCH_SUBMIT = 6,
  SHARDSCOPE_BACKWARD_ALL_GATHER = 7
};
/* Why prefetching stopped where it did. */
enum {
  SHARDSCOPE_PREFETCH_DISABLED = 0,
  SHARDSCOPE_PREFETCH_NO_TRACE = 1,
  SHARDSCOPE_PREFETCH_END_OF_TRACE = 2,
  SHARDSCOPE_PREFETCH_BUCKET_FULL = 3,
  SHARDSCOPE_PREFETCH_LIVE_LIMIT = 4,
  SHARDSCOPE_PREFETCH_OFFLOADED = 5,
  SHARDSCOPE_PREFETCH_RETURNED = 6 /* no fetch: a module returned a parameter, whose id is in prefetched */
};
/* What became of a prefetch: there long before it was used, just before, after it was needed (somebody
   waited), given up with an invalid trace, released without a use. */
enum {
  SHARDSCOPE_PREFETCH_EARLY = 0,
  SHARDSCOPE_PREFETCH_JUST_IN_TIME = 1,
  SHARDSCOPE_PREFETCH_LATE = 2,
  SHARDSCOPE_PREFETCH_MISTARGETED = 3,
  SHARDSCOPE_PREFETCH_UNUSED = 4
};
/* What there may be no more of in flight. */
enum { SHARDSCOPE_LIMIT_GATHERS = 0, SHARDSCOPE_LIMIT_REDUCTIONS = 1 };
/* Why a parameter of the released module stays. */
enum {
  SHARDSCOPE_KEEP_PERSISTENT = 0,
  SHARDSCOPE_KEEP_REUSED_SOON = 1,
  SHARDSCOPE_KEEP_ALREADY_FETCHED = 2,
  SHARDSCOPE_KEEP_IN_USE = 3,
  SHARDSCOPE_KEEP_EXTERNAL = 4,
  SHARDSCOPE_KEEP_NOT_AVAILABLE = 5
};
enum {
  SHARDSCOPE_HOST_TO_DEVICE = 0,
  SHARDSCOPE_DEVICE_TO_HOST = 1,
  SHARDSCOPE_NVME_READ = 2,
  SHARDSCOPE_NVME_WRITE = 3
};

/* ---- one function per kind --------------------------------------------------------------------------
 * Inline, over shardscope_emit(). The kinds gate, paused_begin, paused_end and message have none: the library
 * emits them itself (shardscope_gate, shardscope_message). For times taken elsewhere fill in a
 * shardscope_event and give it to shardscope_emit_at(). */

static inline void shardscope_record_(uint16_t kind, uint8_t lane, uint8_t code, uint32_t a, uint32_t b,
                                      uint32_t c, int64_t v0, int64_t v1) {
  shardscope_event event;
  event.kind = kind;
  event.lane = lane;
  event.code = code;
  event.a = a;
  event.b = b;
  event.c = c;
  event.v0 = v0;
  event.v1 = v1;
  shardscope_emit(&event);
}
static inline int64_t shardscope_bits_(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline void shardscope_step_begin(uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_STEP_BEGIN, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_step_end(uint32_t step, uint8_t skipped, int64_t tokens) {
  shardscope_record_(SHARDSCOPE_EVENT_STEP_END, SHARDSCOPE_LANE_HOST, skipped, step, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, tokens, 0);
}
static inline void shardscope_micro_step_begin(uint32_t micro_step, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_MICRO_STEP_BEGIN, SHARDSCOPE_LANE_HOST, 0, micro_step, step,
                     SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_micro_step_end(uint32_t micro_step, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_MICRO_STEP_END, SHARDSCOPE_LANE_HOST, 0, micro_step, step,
                     SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_phase_begin(uint8_t lane, uint8_t phase, uint32_t step, uint32_t micro_step) {
  shardscope_record_(SHARDSCOPE_EVENT_PHASE_BEGIN, lane, phase, step, micro_step, SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_phase_end(uint8_t lane, uint8_t phase, uint32_t step, uint32_t micro_step) {
  shardscope_record_(SHARDSCOPE_EVENT_PHASE_END, lane, phase, step, micro_step, SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_module_begin(uint8_t pass, uint32_t module, uint32_t micro_step) {
  shardscope_record_(SHARDSCOPE_EVENT_MODULE_BEGIN, SHARDSCOPE_LANE_COMPUTE, pass, module, micro_step,
                     SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_module_end(uint8_t pass, uint32_t module, uint32_t micro_step) {
  shardscope_record_(SHARDSCOPE_EVENT_MODULE_END, SHARDSCOPE_LANE_COMPUTE, pass, module, micro_step,
                     SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_param_status(uint8_t lane, uint8_t status, uint8_t cause, uint32_t param,
                                           uint32_t module, uint32_t gather, int64_t elems,
                                           int64_t available_elems) {
  shardscope_record_(SHARDSCOPE_EVENT_PARAM_STATUS, lane, (uint8_t)((status & 15) | (cause << 4)), param,
                     module, gather, elems, available_elems);
}
static inline void shardscope_fetch_wait_begin(uint32_t module, uint32_t gather, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_FETCH_WAIT_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, module, gather,
                     SHARDSCOPE_NO_ID, bytes, 0);
}
static inline void shardscope_fetch_wait_end(uint32_t module, uint32_t gather, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_FETCH_WAIT_END, SHARDSCOPE_LANE_COMPUTE, 0, module, gather,
                     SHARDSCOPE_NO_ID, bytes, 0);
}
static inline void shardscope_collective_submitted(uint8_t op, uint32_t sequence, uint32_t group,
                                                   uint32_t parts, int64_t elems, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_SUBMITTED, SHARDSCOPE_LANE_HOST, op, sequence, group, parts,
                     elems, bytes);
}
static inline void shardscope_collective_begin(uint8_t lane, uint8_t op, uint32_t sequence, uint32_t group,
                                               uint32_t parts, int64_t elems, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_BEGIN, lane, op, sequence, group, parts, elems, bytes);
}
static inline void shardscope_collective_end(uint8_t lane, uint8_t op, uint32_t sequence, uint32_t group,
                                             uint32_t dtype, int64_t elems, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_END, lane, op, sequence, group, dtype, elems, bytes);
}
static inline void shardscope_collective_part(uint8_t op, uint32_t sequence, uint32_t param, int64_t elems,
                                              int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_PART, SHARDSCOPE_LANE_HOST, op, sequence, param,
                     SHARDSCOPE_NO_ID, elems, bytes);
}
static inline void shardscope_collective_entered(uint8_t lane, uint8_t op, uint32_t sequence,
                                                 uint32_t group) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_ENTERED, lane, op, sequence, group, SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_bucket_open(uint32_t bucket, uint32_t buffer) {
  shardscope_record_(SHARDSCOPE_EVENT_BUCKET_OPEN, SHARDSCOPE_LANE_HOST, 0, bucket, SHARDSCOPE_NO_ID, buffer,
                     0, 0);
}
static inline void shardscope_bucket_add(uint32_t bucket, uint32_t param, int64_t elems,
                                         int64_t bucket_elems) {
  shardscope_record_(SHARDSCOPE_EVENT_BUCKET_ADD, SHARDSCOPE_LANE_HOST, 0, bucket, param, SHARDSCOPE_NO_ID,
                     elems, bucket_elems);
}
static inline void shardscope_bucket_flush(uint8_t reason, uint32_t bucket, uint32_t trigger_param,
                                           uint32_t params, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_BUCKET_FLUSH, SHARDSCOPE_LANE_HOST, reason, bucket, trigger_param,
                     params, elems, 0);
}
static inline void shardscope_trace_mode(uint8_t mode, uint32_t micro_step, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_TRACE_MODE, SHARDSCOPE_LANE_HOST, mode, micro_step, step,
                     SHARDSCOPE_NO_ID, 0, 0);
}
/* `recorded_modules`: length of the trace that was given up. */
static inline void shardscope_trace_invalidated_by(uint8_t cause, uint32_t expected_module,
                                                   uint32_t got_module, uint32_t trace_step,
                                                   int64_t recorded_modules) {
  shardscope_record_(SHARDSCOPE_EVENT_TRACE_INVALIDATED, SHARDSCOPE_LANE_HOST, cause, expected_module,
                     got_module, trace_step, recorded_modules, 0);
}
/* The same where the length is not known; no module expected: the trace was too short. */
static inline void shardscope_trace_invalidated(uint32_t expected_module, uint32_t got_module,
                                                uint32_t trace_step) {
  shardscope_trace_invalidated_by(expected_module == SHARDSCOPE_NO_ID ? SHARDSCOPE_INVALIDATED_TRACE_TOO_SHORT
                                                                      : SHARDSCOPE_INVALIDATED_MODULE_DIFFERS,
                                  expected_module, got_module, trace_step, 0);
}
/* One for each counter at the end of a micro-step. */
static inline void shardscope_fetch_counter(uint8_t counter, uint32_t micro_step, uint32_t step,
                                            uint32_t count, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_FETCH_COUNTER, SHARDSCOPE_LANE_HOST, counter, micro_step, step, count,
                     elems, 0);
}
static inline void shardscope_fetch_decision(uint8_t stop, uint32_t module, uint32_t gather,
                                             uint32_t trace_step, int64_t prefetched_elems,
                                             int64_t available_elems) {
  shardscope_record_(SHARDSCOPE_EVENT_FETCH_DECISION, SHARDSCOPE_LANE_HOST, stop, module, gather, trace_step,
                     prefetched_elems, available_elems);
}
static inline void shardscope_prefetch_issued(uint32_t gather, uint32_t module, uint32_t params,
                                              int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_PREFETCH_ISSUED, SHARDSCOPE_LANE_HOST, 0, gather, module, params, elems,
                     0);
}
/* `slack_ns`: between the end of the gather and its first use; where it was late, minus the time waited.
   `gather_ns`: how long the gather took. */
static inline void shardscope_prefetch_outcome(uint8_t outcome, uint32_t gather, uint32_t module,
                                               uint32_t params, int64_t slack_ns, int64_t gather_ns) {
  shardscope_record_(SHARDSCOPE_EVENT_PREFETCH_OUTCOME, SHARDSCOPE_LANE_COMPUTE, outcome, gather, module,
                     params, slack_ns, gather_ns);
}
/* The host waits for `id`, the oldest gather or bucket in flight, before it starts another. */
static inline void shardscope_in_flight_limit(uint8_t what, uint32_t id, int64_t in_flight, int64_t limit) {
  shardscope_record_(SHARDSCOPE_EVENT_IN_FLIGHT_LIMIT, SHARDSCOPE_LANE_HOST, what, id, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, in_flight, limit);
}
static inline void shardscope_release_kept(uint8_t reason, uint32_t module, uint32_t param, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_RELEASE_KEPT, SHARDSCOPE_LANE_HOST, reason, module, param,
                     SHARDSCOPE_NO_ID, elems, 0);
}
static inline void shardscope_memory_alloc(uint8_t pool, uint8_t category, uint32_t owner, int64_t bytes,
                                           int64_t pool_bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_MEMORY_ALLOC, SHARDSCOPE_LANE_HOST,
                     (uint8_t)((category & 15) | (pool << 4)), owner, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID,
                     bytes, pool_bytes);
}
static inline void shardscope_memory_free(uint8_t pool, uint8_t category, uint32_t owner, int64_t bytes,
                                          int64_t pool_bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_MEMORY_FREE, SHARDSCOPE_LANE_HOST,
                     (uint8_t)((category & 15) | (pool << 4)), owner, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID,
                     bytes, pool_bytes);
}
static inline void shardscope_transfer_begin(uint8_t lane, uint8_t transfer, uint32_t param,
                                             uint32_t sub_group, uint32_t queue_depth, int64_t bytes,
                                             int64_t swap_buffers) {
  shardscope_record_(SHARDSCOPE_EVENT_TRANSFER_BEGIN, lane, transfer, param, sub_group, queue_depth, bytes,
                     swap_buffers);
}
static inline void shardscope_transfer_end(uint8_t lane, uint8_t transfer, uint32_t param, uint32_t sub_group,
                                           uint32_t queue_depth, int64_t bytes, int64_t swap_buffers) {
  shardscope_record_(SHARDSCOPE_EVENT_TRANSFER_END, lane, transfer, param, sub_group, queue_depth, bytes,
                     swap_buffers);
}
static inline void shardscope_optimizer_begin(uint8_t lane, uint32_t sub_group, uint32_t step,
                                              int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_OPTIMIZER_BEGIN, lane, 0, sub_group, step, SHARDSCOPE_NO_ID, elems, 0);
}
static inline void shardscope_optimizer_end(uint8_t lane, uint32_t sub_group, uint32_t step, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_OPTIMIZER_END, lane, 0, sub_group, step, SHARDSCOPE_NO_ID, elems, 0);
}
static inline void shardscope_reduce_wait_begin(uint32_t bucket, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_REDUCE_WAIT_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, bucket, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, bytes, 0);
}
static inline void shardscope_reduce_wait_end(uint32_t bucket, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_REDUCE_WAIT_END, SHARDSCOPE_LANE_COMPUTE, 0, bucket, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, bytes, 0);
}
static inline void shardscope_columns_selected(uint32_t param, uint32_t step, uint32_t columns,
                                               int64_t elems_chosen, int64_t elems_of_rank) {
  shardscope_record_(SHARDSCOPE_EVENT_COLUMNS_SELECTED, SHARDSCOPE_LANE_HOST, 0, param, step, columns,
                     elems_chosen, elems_of_rank);
}
static inline void shardscope_deferred_update(uint8_t state, uint32_t step, uint32_t steps_summed,
                                              int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_UPDATE, SHARDSCOPE_LANE_HOST, state, SHARDSCOPE_NO_ID, step,
                     steps_summed, elems, 0);
}
static inline void shardscope_deferred_wait_begin(uint32_t step, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_WAIT_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, SHARDSCOPE_NO_ID, step,
                     SHARDSCOPE_NO_ID, elems, 0);
}
static inline void shardscope_deferred_wait_end(uint32_t step, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_WAIT_END, SHARDSCOPE_LANE_COMPUTE, 0, SHARDSCOPE_NO_ID, step,
                     SHARDSCOPE_NO_ID, elems, 0);
}
/* One operation of NCCL for collective `sequence`: what its profiler interface says of it. */
static inline void shardscope_nccl_collective(uint8_t op, uint32_t sequence, uint32_t communicator,
                                              uint8_t algorithm, uint8_t protocol, uint8_t channels,
                                              uint8_t warps, int64_t bytes, int64_t nccl_sequence) {
  shardscope_record_(
      SHARDSCOPE_EVENT_NCCL_COLLECTIVE, SHARDSCOPE_LANE_HOST, op, sequence, communicator,
      (uint32_t)algorithm | (uint32_t)protocol << 8 | (uint32_t)channels << 16 | (uint32_t)warps << 24, bytes,
      nccl_sequence);
}
/* Its kernel, emitted with the time of its last channel's end. */
static inline void shardscope_nccl_kernel(uint8_t op, uint32_t sequence, uint32_t communicator,
                                          uint16_t channels_timed, uint16_t channels_used,
                                          int64_t begin_ns_before, int64_t first_end_ns_before) {
  shardscope_record_(SHARDSCOPE_EVENT_NCCL_KERNEL, SHARDSCOPE_LANE_HOST, op, sequence, communicator,
                     (uint32_t)channels_timed | (uint32_t)channels_used << 16, begin_ns_before,
                     first_end_ns_before);
}
/* Its network operations by proxy, emitted with the time of the last one's end. */
static inline void shardscope_nccl_proxy(uint8_t op, uint32_t sequence, uint32_t communicator,
                                         uint32_t operations, int64_t begin_ns_before) {
  shardscope_record_(SHARDSCOPE_EVENT_NCCL_PROXY, SHARDSCOPE_LANE_HOST, op, sequence, communicator,
                     operations, begin_ns_before, 0);
}
/* Memory of a pool that the runtime did not allocate, of all that is in use by what the driver says. */
static inline void shardscope_outside_memory(uint8_t pool, int64_t bytes, int64_t bytes_in_use) {
  shardscope_record_(SHARDSCOPE_EVENT_OUTSIDE_MEMORY, SHARDSCOPE_LANE_HOST, pool, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, bytes, bytes_in_use);
}
static inline void shardscope_overflow(uint8_t any_rank, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_OVERFLOW, SHARDSCOPE_LANE_HOST, any_rank, step, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_loss(uint32_t step, uint32_t micro_step, double value) {
  shardscope_record_(SHARDSCOPE_EVENT_LOSS, SHARDSCOPE_LANE_HOST, 0, step, micro_step, SHARDSCOPE_NO_ID,
                     shardscope_bits_(value), 0);
}
static inline void shardscope_grad_norm(uint32_t step, double value) {
  shardscope_record_(SHARDSCOPE_EVENT_GRAD_NORM, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, shardscope_bits_(value), 0);
}
static inline void shardscope_loss_scale(uint32_t step, uint32_t hysteresis, double value) {
  shardscope_record_(SHARDSCOPE_EVENT_LOSS_SCALE, SHARDSCOPE_LANE_HOST, 0, step, hysteresis, SHARDSCOPE_NO_ID,
                     shardscope_bits_(value), 0);
}
static inline void shardscope_learning_rate(uint32_t step, double value) {
  shardscope_record_(SHARDSCOPE_EVENT_LEARNING_RATE, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, shardscope_bits_(value), 0);
}
static inline void shardscope_tokens(uint32_t step, int64_t tokens) {
  shardscope_record_(SHARDSCOPE_EVENT_TOKENS, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, tokens, 0);
}
static inline void shardscope_kernel_begin(uint32_t name, uint32_t module) {
  shardscope_record_(SHARDSCOPE_EVENT_KERNEL_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, name, module,
                     SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_kernel_end(uint32_t name, uint32_t module) {
  shardscope_record_(SHARDSCOPE_EVENT_KERNEL_END, SHARDSCOPE_LANE_COMPUTE, 0, name, module, SHARDSCOPE_NO_ID,
                     0, 0);
}

#ifdef __cplusplus
}
#endif

#endif
