/* What NCCL and the GPU's driver say, for runtimes that ask them: the rest of events.h. Included by
 * shardscope.h; include that. */
#ifndef SHARDSCOPE_GPU_EVENTS_H
#define SHARDSCOPE_GPU_EVENTS_H

#ifndef SHARDSCOPE_SHARDSCOPE_H
#include "shardscope/shardscope.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

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

/* ---- of the GPU: all with its own times, converted to nanoseconds of CLOCK_MONOTONIC ------------------- */

static inline void shardscope_record_at_(int64_t monotonic_ns, uint16_t kind, uint8_t lane, uint8_t code,
                                         uint32_t a, uint32_t b, uint32_t c, int64_t v0, int64_t v1) {
  const shardscope_event event = {kind, lane, code, a, b, c, v0, v1};
  shardscope_emit_at(monotonic_ns, &event);
}
/* On a lane of its own stream, SHARDSCOPE_LANE_GPU_.... `work` and `owner_kind`: SHARDSCOPE_GPU_... and
 * SHARDSCOPE_GPU_OWNER_...; `delay_ns`: from the host's entry into the launch to the start. `amount`: bytes
 * of a copy or memset, threads of a kernel. Give begin and end the same. */
static inline void shardscope_gpu_begin(int64_t monotonic_ns, uint8_t lane, uint8_t work, uint8_t owner_kind,
                                        uint32_t name, uint32_t owner, uint32_t cuda_stream, int64_t delay_ns,
                                        int64_t amount) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_BEGIN, lane,
                        (uint8_t)((work & 15) | (owner_kind << 4)), name, owner, cuda_stream, delay_ns,
                        amount);
}
static inline void shardscope_gpu_end(int64_t monotonic_ns, uint8_t lane, uint8_t work, uint8_t owner_kind,
                                      uint32_t name, uint32_t owner, uint32_t cuda_stream, int64_t delay_ns,
                                      int64_t amount) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_END, lane,
                        (uint8_t)((work & 15) | (owner_kind << 4)), name, owner, cuda_stream, delay_ns,
                        amount);
}
/* A call in which the host waited: SHARDSCOPE_GPU_SYNC_.... */
static inline void shardscope_gpu_sync_begin(int64_t monotonic_ns, uint8_t sync, uint32_t cuda_stream) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_SYNC_BEGIN, SHARDSCOPE_LANE_GPU_HOST, sync,
                        cuda_stream, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_gpu_sync_end(int64_t monotonic_ns, uint8_t sync, uint32_t cuda_stream) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_SYNC_END, SHARDSCOPE_LANE_GPU_HOST, sync,
                        cuda_stream, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, 0, 0);
}
/* A stretch of which every record is here: `records`, `dropped` by the driver, `not_placed` on any lane, and
 * `no_launch` of those found. */
static inline void shardscope_gpu_records_begin(int64_t monotonic_ns, uint32_t flush, uint32_t not_placed,
                                                uint32_t no_launch, int64_t records, int64_t dropped) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_RECORDS_BEGIN, SHARDSCOPE_LANE_GPU_RECORDS, 0,
                        flush, not_placed, no_launch, records, dropped);
}
static inline void shardscope_gpu_records_end(int64_t monotonic_ns, uint32_t flush, uint32_t not_placed,
                                              uint32_t no_launch, int64_t records, int64_t dropped) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_RECORDS_END, SHARDSCOPE_LANE_GPU_RECORDS, 0, flush,
                        not_placed, no_launch, records, dropped);
}
/* Memory that the driver gave or took back (`freed` not 0). Managed memory counts as the device's. */
static inline void shardscope_gpu_memory(int64_t monotonic_ns, uint8_t pool, uint8_t freed, int64_t bytes,
                                         int64_t address) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_MEMORY, SHARDSCOPE_LANE_HOST,
                        (uint8_t)((pool & 15) | (freed != 0 ? 16 : 0)), SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID,
                        SHARDSCOPE_NO_ID, bytes, address);
}
/* How well the GPU's clock is known: `pairs` of both clocks, what a pair is away at most, parts per billion.
 */
static inline void shardscope_gpu_clock(int64_t monotonic_ns, uint32_t pairs, int64_t residual_ns,
                                        int64_t drift_ppb) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_CLOCK, SHARDSCOPE_LANE_HOST, 0, pairs,
                        SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, residual_ns, drift_ppb);
}

#ifdef __cplusplus
}
#endif

#endif
