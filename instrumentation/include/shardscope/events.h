/* The events of Shardscope's C interface: one inline function per kind, over shardscope_emit(). What each
 * event means, and when a runtime emits it, is in docs/events.md. Included by shardscope.h; include that. */
#ifndef SHARDSCOPE_EVENTS_H
#define SHARDSCOPE_EVENTS_H

#include <string.h>

#ifndef SHARDSCOPE_SHARDSCOPE_H
#include "shardscope/shardscope.h"
#endif

#include "shardscope/event_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Those of NCCL and of the GPU are in gpu_events.h. The kinds gate, paused_begin, paused_end, message and
 * detail_changed have none: the library emits them itself (shardscope_gate, shardscope_message). For times
 * taken elsewhere fill in a shardscope_event and give it to shardscope_emit_at(). */

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
/* `code`: shardscope_collective_code(). Give begin and end the same. */
static inline void shardscope_collective_begin_among(uint8_t lane, uint8_t op, uint32_t sequence,
                                                     uint32_t group, uint32_t code, int64_t elems,
                                                     int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_BEGIN, lane, op, sequence, group, code, elems, bytes);
}
/* Of an operation that needs every rank's part (all_gather, reduce_scatter, all_reduce, all_to_all, barrier)
 * never before every rank has told its begin: clocks of ranks on other hosts are refined by it. */
static inline void shardscope_collective_end_among(uint8_t lane, uint8_t op, uint32_t sequence,
                                                   uint32_t group, uint32_t code, int64_t elems,
                                                   int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_END, lane, op, sequence, group, code, elems, bytes);
}
/* The same among all ranks. `parts` is told by shardscope_collective_submitted() and not again. */
static inline void shardscope_collective_begin(uint8_t lane, uint8_t op, uint32_t sequence, uint32_t group,
                                               uint32_t parts, int64_t elems, int64_t bytes) {
  (void)parts;
  shardscope_collective_begin_among(lane, op, sequence, group, SHARDSCOPE_NO_ID, elems, bytes);
}
static inline void shardscope_collective_end(uint8_t lane, uint8_t op, uint32_t sequence, uint32_t group,
                                             uint32_t dtype, int64_t elems, int64_t bytes) {
  shardscope_collective_end_among(lane, op, sequence, group,
                                  shardscope_collective_code((uint8_t)dtype, SHARDSCOPE_SCOPE_WORLD, 0),
                                  elems, bytes);
}
static inline void shardscope_collective_part(uint8_t op, uint32_t sequence, uint32_t param, int64_t elems,
                                              int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_PART, SHARDSCOPE_LANE_HOST, op, sequence, param,
                     SHARDSCOPE_NO_ID, elems, bytes);
}
/* Every rank has come; only where that is known. Clocks are refined by it. */
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
/* Computation has nothing to do until the micro-batch is on the device. */
static inline void shardscope_data_wait_begin(uint32_t micro_step, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_DATA_WAIT_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, micro_step, step,
                     SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_data_wait_end(uint32_t micro_step, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_DATA_WAIT_END, SHARDSCOPE_LANE_COMPUTE, 0, micro_step, step,
                     SHARDSCOPE_NO_ID, 0, 0);
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
static inline void shardscope_columns_selected_because(uint8_t cause, uint32_t param, uint32_t step,
                                                       uint32_t columns, int64_t elems_chosen,
                                                       int64_t elems_of_rank) {
  shardscope_record_(SHARDSCOPE_EVENT_COLUMNS_SELECTED, SHARDSCOPE_LANE_HOST, cause, param, step, columns,
                     elems_chosen, elems_of_rank);
}
/* The same where the cause is not told. */
static inline void shardscope_columns_selected(uint32_t param, uint32_t step, uint32_t columns,
                                               int64_t elems_chosen, int64_t elems_of_rank) {
  shardscope_columns_selected_because(SHARDSCOPE_SELECTION_NOT_TOLD, param, step, columns, elems_chosen,
                                      elems_of_rank);
}
/* `cause`: SHARDSCOPE_UPDATE_... of SHARDSCOPE_DEFERRED_BEGUN, SHARDSCOPE_NO_ID of PUBLISHED. */
static inline void shardscope_deferred_update_because(uint8_t state, uint32_t cause, uint32_t step,
                                                      uint32_t steps_summed, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_UPDATE, SHARDSCOPE_LANE_HOST, state, cause, step, steps_summed,
                     elems, 0);
}
/* The same where the cause is not told. */
static inline void shardscope_deferred_update(uint8_t state, uint32_t step, uint32_t steps_summed,
                                              int64_t elems) {
  shardscope_deferred_update_because(state, SHARDSCOPE_NO_ID, step, steps_summed, elems);
}
/* Of `matrices` so many voted for a deferred update in the next step; `mass_chosen`: the part of all absolute
   gradients that was in chosen columns, 0 to 1. */
static inline void shardscope_update_votes(uint32_t step, uint32_t votes, uint32_t votes_needed,
                                           double mass_chosen, int64_t matrices) {
  shardscope_record_(SHARDSCOPE_EVENT_UPDATE_VOTES, SHARDSCOPE_LANE_HOST, 0, step, votes, votes_needed,
                     shardscope_bits_(mass_chosen), matrices);
}
static inline void shardscope_deferred_wait_begin(uint32_t step, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_WAIT_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, SHARDSCOPE_NO_ID, step,
                     SHARDSCOPE_NO_ID, elems, 0);
}
static inline void shardscope_deferred_wait_end(uint32_t step, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_WAIT_END, SHARDSCOPE_LANE_COMPUTE, 0, SHARDSCOPE_NO_ID, step,
                     SHARDSCOPE_NO_ID, elems, 0);
}
/* Memory of a pool that the runtime did not allocate, of all that is in use by what the driver says. */
static inline void shardscope_outside_memory(uint8_t pool, int64_t bytes, int64_t bytes_in_use) {
  shardscope_record_(SHARDSCOPE_EVENT_OUTSIDE_MEMORY, SHARDSCOPE_LANE_HOST, pool, SHARDSCOPE_NO_ID,
                     SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, bytes, bytes_in_use);
}
/* Error feedback of quantized gradients: what was lost of so many parameters is forgotten. */
static inline void shardscope_feedback_reset(uint32_t step, uint32_t params, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_FEEDBACK_RESET, SHARDSCOPE_LANE_HOST, 0, step, params, SHARDSCOPE_NO_ID,
                     elems, 0);
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
/* What the update multiplied gradients by to keep their norm within the limit, 1: it was. Only where there is
   a limit, of steps that were not skipped. */
static inline void shardscope_clip_factor(uint32_t step, double value) {
  shardscope_record_(SHARDSCOPE_EVENT_CLIP_FACTOR, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID,
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

#include "shardscope/gpu_events.h"

#endif
