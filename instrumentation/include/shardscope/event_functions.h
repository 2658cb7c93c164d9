/* The events of Shardscope's C interface: one inline function for each kind, over shardscope_emit(). What
 * each event means, and when a runtime emits it, is in docs/events.md. Included by shardscope.h; include
 * that. */
#ifndef SHARDSCOPE_EVENT_FUNCTIONS_H
#define SHARDSCOPE_EVENT_FUNCTIONS_H

/* clang-format off */
/* written from event_kinds.def */
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
    uint32_t module, uint32_t gather, int64_t elems, int64_t available_elems) {
  shardscope_record_(SHARDSCOPE_EVENT_PARAM_STATUS, lane, (uint8_t)(((uint32_t)status & 15U) |
      ((uint32_t)cause & 15U) << 4), param, module, gather, elems, available_elems);
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
/* `code`: from shardscope_collective_code(). Begin and end have the same fields, except for
   SHARDSCOPE_ENDED_BY_ERROR. An operation that needs data of every rank (all_gather, reduce_scatter,
   all_reduce, all_to_all, barrier) must not end before every rank has begun it, unless by an error: it aligns
   the clocks of ranks on different hosts. */
static inline void shardscope_collective_begin_among(uint8_t lane, uint8_t op, uint32_t sequence,
    uint32_t group, uint32_t code, int64_t elems, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_BEGIN, lane, op, sequence, group, code, elems, bytes);
}
static inline void shardscope_collective_end_among(uint8_t lane, uint8_t op, uint32_t sequence,
    uint32_t group, uint32_t code, int64_t elems, int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_END, lane, op, sequence, group, code, elems, bytes);
}
static inline void shardscope_collective_part(uint8_t op, uint32_t sequence, uint32_t param, int64_t elems,
    int64_t bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_PART, SHARDSCOPE_LANE_HOST, op, sequence, param,
      SHARDSCOPE_NO_ID, elems, bytes);
}
/* Every rank has entered the collective: waiting ends and the transfer begins. Emit it only where this is
   known: it aligns the clocks of ranks on different hosts. */
static inline void shardscope_collective_entered(uint8_t lane, uint8_t op, uint32_t sequence, uint32_t group)
    {
  shardscope_record_(SHARDSCOPE_EVENT_COLLECTIVE_ENTERED, lane, op, sequence, group, SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_bucket_open(uint32_t bucket, uint32_t buffer) {
  shardscope_record_(SHARDSCOPE_EVENT_BUCKET_OPEN, SHARDSCOPE_LANE_HOST, 0, bucket, SHARDSCOPE_NO_ID, buffer, 0,
      0);
}
static inline void shardscope_bucket_add(uint32_t bucket, uint32_t param, int64_t elems, int64_t bucket_elems)
    {
  shardscope_record_(SHARDSCOPE_EVENT_BUCKET_ADD, SHARDSCOPE_LANE_HOST, 0, bucket, param, SHARDSCOPE_NO_ID,
      elems, bucket_elems);
}
static inline void shardscope_bucket_flush(uint8_t reason, uint32_t bucket, uint32_t trigger_param,
    uint32_t params, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_BUCKET_FLUSH, SHARDSCOPE_LANE_HOST, reason, bucket, trigger_param, params,
      elems, 0);
}
static inline void shardscope_trace_mode(uint8_t mode, uint32_t micro_step, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_TRACE_MODE, SHARDSCOPE_LANE_HOST, mode, micro_step, step,
      SHARDSCOPE_NO_ID, 0, 0);
}
/* `recorded_modules`: length of the discarded trace. */
static inline void shardscope_trace_invalidated_by(uint8_t cause, uint32_t expected_module,
    uint32_t got_module, uint32_t trace_step, int64_t recorded_modules) {
  shardscope_record_(SHARDSCOPE_EVENT_TRACE_INVALIDATED, SHARDSCOPE_LANE_HOST, cause, expected_module,
      got_module, trace_step, recorded_modules, 0);
}
static inline void shardscope_fetch_decision(uint8_t stop, uint32_t module, uint32_t gather,
    uint32_t trace_step, int64_t prefetched_elems, int64_t available_elems) {
  shardscope_record_(SHARDSCOPE_EVENT_FETCH_DECISION, SHARDSCOPE_LANE_HOST, stop, module, gather, trace_step,
      prefetched_elems, available_elems);
}
static inline void shardscope_prefetch_issued(uint32_t gather, uint32_t module, uint32_t params,
    int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_PREFETCH_ISSUED, SHARDSCOPE_LANE_HOST, 0, gather, module, params, elems,
      0);
}
static inline void shardscope_release_kept(uint8_t reason, uint32_t module, uint32_t param, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_RELEASE_KEPT, SHARDSCOPE_LANE_HOST, reason, module, param,
      SHARDSCOPE_NO_ID, elems, 0);
}
static inline void shardscope_memory_alloc(uint8_t pool, uint8_t category, uint32_t owner, int64_t bytes,
    int64_t pool_bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_MEMORY_ALLOC, SHARDSCOPE_LANE_HOST, (uint8_t)(((uint32_t)pool & 15U) << 4
      | ((uint32_t)category & 15U)), owner, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, bytes, pool_bytes);
}
static inline void shardscope_memory_free(uint8_t pool, uint8_t category, uint32_t owner, int64_t bytes,
    int64_t pool_bytes) {
  shardscope_record_(SHARDSCOPE_EVENT_MEMORY_FREE, SHARDSCOPE_LANE_HOST, (uint8_t)(((uint32_t)pool & 15U) << 4 |
      ((uint32_t)category & 15U)), owner, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, bytes, pool_bytes);
}
static inline void shardscope_transfer_begin(uint8_t lane, uint8_t transfer, uint32_t param,
    uint32_t sub_group, uint32_t queue_depth, int64_t bytes, int64_t swap_buffers) {
  shardscope_record_(SHARDSCOPE_EVENT_TRANSFER_BEGIN, lane, transfer, param, sub_group, queue_depth, bytes,
      swap_buffers);
}
static inline void shardscope_transfer_end(uint8_t lane, uint8_t transfer, uint32_t param, uint32_t sub_group,
    uint32_t queue_depth, int64_t bytes, int64_t swap_buffers) {
  shardscope_record_(SHARDSCOPE_EVENT_TRANSFER_END, lane, transfer, param, sub_group, queue_depth, bytes,
      swap_buffers);
}
static inline void shardscope_optimizer_begin(uint8_t lane, uint32_t sub_group, uint32_t step, int64_t elems)
    {
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
  shardscope_record_(SHARDSCOPE_EVENT_TOKENS, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID,
      tokens, 0);
}
static inline void shardscope_kernel_begin(uint32_t name, uint32_t module) {
  shardscope_record_(SHARDSCOPE_EVENT_KERNEL_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, name, module, SHARDSCOPE_NO_ID,
      0, 0);
}
static inline void shardscope_kernel_end(uint32_t name, uint32_t module) {
  shardscope_record_(SHARDSCOPE_EVENT_KERNEL_END, SHARDSCOPE_LANE_COMPUTE, 0, name, module, SHARDSCOPE_NO_ID, 0,
      0);
}
static inline void shardscope_columns_selected_because(uint8_t cause, uint32_t param, uint32_t step,
    uint32_t columns, int64_t elems_chosen, int64_t elems_of_rank) {
  shardscope_record_(SHARDSCOPE_EVENT_COLUMNS_SELECTED, SHARDSCOPE_LANE_HOST, cause, param, step, columns,
      elems_chosen, elems_of_rank);
}
/* `cause`: SHARDSCOPE_UPDATE_... with SHARDSCOPE_DEFERRED_BEGUN, SHARDSCOPE_NO_ID with
   SHARDSCOPE_DEFERRED_PUBLISHED. */
static inline void shardscope_deferred_update_because(uint8_t state, uint32_t cause, uint32_t step,
    uint32_t steps_summed, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_UPDATE, SHARDSCOPE_LANE_HOST, state, cause, step, steps_summed,
      elems, 0);
}
static inline void shardscope_deferred_wait_begin(uint32_t step, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_WAIT_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, SHARDSCOPE_NO_ID, step,
      SHARDSCOPE_NO_ID, elems, 0);
}
static inline void shardscope_deferred_wait_end(uint32_t step, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_DEFERRED_WAIT_END, SHARDSCOPE_LANE_COMPUTE, 0, SHARDSCOPE_NO_ID, step,
      SHARDSCOPE_NO_ID, elems, 0);
}
/* One NCCL operation of collective `sequence`, as NCCL's profiler interface reports it. */
static inline void shardscope_nccl_collective(uint8_t op, uint32_t sequence, uint32_t communicator,
    uint8_t algorithm, uint8_t protocol, uint8_t channels, uint8_t warps, int64_t bytes,
    int64_t nccl_sequence) {
  shardscope_record_(SHARDSCOPE_EVENT_NCCL_COLLECTIVE, SHARDSCOPE_LANE_HOST, op, sequence, communicator,
      ((uint32_t)algorithm & 255U) | ((uint32_t)protocol & 255U) << 8 | ((uint32_t)channels & 255U) << 16 |
      ((uint32_t)warps & 255U) << 24, bytes, nccl_sequence);
}
/* Kernel of an NCCL operation. The time of the event is the end of the last channel. */
static inline void shardscope_nccl_kernel(uint8_t op, uint32_t sequence, uint32_t communicator,
    uint16_t channels_timed, uint16_t channels_used, int64_t begin_ns_before, int64_t first_end_ns_before) {
  shardscope_record_(SHARDSCOPE_EVENT_NCCL_KERNEL, SHARDSCOPE_LANE_HOST, op, sequence, communicator,
      ((uint32_t)channels_timed & 65535U) | ((uint32_t)channels_used & 65535U) << 16, begin_ns_before,
      first_end_ns_before);
}
/* Network operations of an NCCL operation, by its proxy thread. The time of the event is the end of the last
   one. */
static inline void shardscope_nccl_proxy(uint8_t op, uint32_t sequence, uint32_t communicator,
    uint32_t operations, int64_t begin_ns_before) {
  shardscope_record_(SHARDSCOPE_EVENT_NCCL_PROXY, SHARDSCOPE_LANE_HOST, op, sequence, communicator, operations,
      begin_ns_before, 0);
}
/* `bytes`: memory of the pool that the runtime did not allocate. `bytes_in_use`: all that the driver reports
   in use. */
static inline void shardscope_outside_memory(uint8_t pool, int64_t bytes, int64_t bytes_in_use) {
  shardscope_record_(SHARDSCOPE_EVENT_OUTSIDE_MEMORY, SHARDSCOPE_LANE_HOST, pool, SHARDSCOPE_NO_ID,
      SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, bytes, bytes_in_use);
}
/* `slack_ns`: from the end of the gather to its first use; of a late prefetch, minus the time that
   computation waited. `gather_ns`: duration of the gather. */
static inline void shardscope_prefetch_outcome(uint8_t outcome, uint32_t gather, uint32_t module,
    uint32_t params, int64_t slack_ns, int64_t gather_ns) {
  shardscope_record_(SHARDSCOPE_EVENT_PREFETCH_OUTCOME, SHARDSCOPE_LANE_COMPUTE, outcome, gather, module,
      params, slack_ns, gather_ns);
}
/* The host waits until the oldest gather or bucket in flight, `id`, has finished, and then starts another. */
static inline void shardscope_in_flight_limit(uint8_t limited, uint32_t id, int64_t in_flight, int64_t limit)
    {
  shardscope_record_(SHARDSCOPE_EVENT_IN_FLIGHT_LIMIT, SHARDSCOPE_LANE_HOST, limited, id, SHARDSCOPE_NO_ID,
      SHARDSCOPE_NO_ID, in_flight, limit);
}
/* On the lane of its stream, SHARDSCOPE_LANE_GPU_.... `work`: SHARDSCOPE_GPU_.... `owner_kind`:
   SHARDSCOPE_GPU_OWNER_..., the meaning of `owner`. `delay_ns`: from the host's entry into the launching call
   to the start. `amount`: bytes of a copy or memset, threads of a kernel. Begin and end have the same fields.
   */
static inline void shardscope_gpu_begin(int64_t monotonic_ns, uint8_t lane, uint8_t work, uint8_t owner_kind,
    uint32_t name, uint32_t owner, uint32_t cuda_stream, int64_t delay_ns, int64_t amount) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_BEGIN, lane, (uint8_t)(((uint32_t)work & 15U) |
      ((uint32_t)owner_kind & 15U) << 4), name, owner, cuda_stream, delay_ns, amount);
}
static inline void shardscope_gpu_end(int64_t monotonic_ns, uint8_t lane, uint8_t work, uint8_t owner_kind,
    uint32_t name, uint32_t owner, uint32_t cuda_stream, int64_t delay_ns, int64_t amount) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_END, lane, (uint8_t)(((uint32_t)work & 15U) |
      ((uint32_t)owner_kind & 15U) << 4), name, owner, cuda_stream, delay_ns, amount);
}
/* A call in which the host waited for the GPU: SHARDSCOPE_GPU_SYNC_.... */
static inline void shardscope_gpu_sync_begin(int64_t monotonic_ns, uint8_t sync, uint32_t cuda_stream) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_SYNC_BEGIN, SHARDSCOPE_LANE_GPU_HOST, sync,
      cuda_stream, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_gpu_sync_end(int64_t monotonic_ns, uint8_t sync, uint32_t cuda_stream) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_SYNC_END, SHARDSCOPE_LANE_GPU_HOST, sync,
      cuda_stream, SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, 0, 0);
}
/* An interval whose GPU records have all arrived. `records`: their number. `dropped`: dropped by CUPTI.
   `not_placed`: placed on no lane. `no_launch`: launch not found. */
static inline void shardscope_gpu_records_begin(int64_t monotonic_ns, uint32_t flush, uint32_t not_placed,
    uint32_t no_launch, int64_t records, int64_t dropped) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_RECORDS_BEGIN, SHARDSCOPE_LANE_GPU_RECORDS, 0, flush,
      not_placed, no_launch, records, dropped);
}
static inline void shardscope_gpu_records_end(int64_t monotonic_ns, uint32_t flush, uint32_t not_placed,
    uint32_t no_launch, int64_t records, int64_t dropped) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_RECORDS_END, SHARDSCOPE_LANE_GPU_RECORDS, 0, flush,
      not_placed, no_launch, records, dropped);
}
/* Memory allocated from the driver, or returned to it (`freed` not 0). Managed memory counts as device
   memory. */
static inline void shardscope_gpu_memory(int64_t monotonic_ns, uint8_t pool, uint8_t freed, int64_t bytes,
    int64_t address) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_MEMORY, SHARDSCOPE_LANE_HOST,
      (uint8_t)(((uint32_t)pool & 15U) | (uint32_t)(freed != 0) << 4), SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID,
      SHARDSCOPE_NO_ID, bytes, address);
}
/* Accuracy of the GPU's clock. `pairs`: readings of both clocks at once. `residual_ns`: bound on the error of
   a converted time. `drift_ppb`: drift against the host's clock. */
static inline void shardscope_gpu_clock(int64_t monotonic_ns, uint32_t pairs, int64_t residual_ns,
    int64_t drift_ppb) {
  shardscope_record_at_(monotonic_ns, SHARDSCOPE_EVENT_GPU_CLOCK, SHARDSCOPE_LANE_HOST, 0, pairs,
      SHARDSCOPE_NO_ID, SHARDSCOPE_NO_ID, residual_ns, drift_ppb);
}
/* One event for each counter, at the end of a micro-step. */
static inline void shardscope_fetch_counter(uint8_t counter, uint32_t micro_step, uint32_t step,
    uint32_t count, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_FETCH_COUNTER, SHARDSCOPE_LANE_HOST, counter, micro_step, step, count,
      elems, 0);
}
/* Computation waits until the micro-batch is on the device. */
static inline void shardscope_data_wait_begin(uint32_t micro_step, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_DATA_WAIT_BEGIN, SHARDSCOPE_LANE_COMPUTE, 0, micro_step, step,
      SHARDSCOPE_NO_ID, 0, 0);
}
static inline void shardscope_data_wait_end(uint32_t micro_step, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_DATA_WAIT_END, SHARDSCOPE_LANE_COMPUTE, 0, micro_step, step,
      SHARDSCOPE_NO_ID, 0, 0);
}
/* Factor by which the update scaled the gradients to limit their norm; 1: not clipped. Emitted only if there
   is a limit and the step was not skipped. */
static inline void shardscope_clip_factor(uint32_t step, double value) {
  shardscope_record_(SHARDSCOPE_EVENT_CLIP_FACTOR, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID,
      SHARDSCOPE_NO_ID, shardscope_bits_(value), 0);
}
/* `votes` of `matrices` matrices vote for a deferred update in the next step, which takes `votes_needed`.
   `mass_chosen`: share of the sum of absolute gradients that lies in selected columns. */
static inline void shardscope_update_votes(uint32_t step, uint32_t votes, uint32_t votes_needed,
    double mass_chosen, int64_t matrices) {
  shardscope_record_(SHARDSCOPE_EVENT_UPDATE_VOTES, SHARDSCOPE_LANE_HOST, 0, step, votes, votes_needed,
      shardscope_bits_(mass_chosen), matrices);
}
/* Error feedback of quantized gradients: the accumulated errors of `params` parameters are set to 0. */
static inline void shardscope_feedback_reset(uint32_t step, uint32_t params, int64_t elems) {
  shardscope_record_(SHARDSCOPE_EVENT_FEEDBACK_RESET, SHARDSCOPE_LANE_HOST, 0, step, params, SHARDSCOPE_NO_ID,
      elems, 0);
}
/* Work of any kind. `name`: from shardscope_name_id(). `id` distinguishes spans of one name. `value` is for
   your own use. */
static inline void shardscope_span_begin(uint8_t lane, uint32_t name, uint32_t id, int64_t value) {
  shardscope_record_(SHARDSCOPE_EVENT_SPAN_BEGIN, lane, 0, name, id, SHARDSCOPE_NO_ID, value, 0);
}
static inline void shardscope_span_end(uint8_t lane, uint32_t name, uint32_t id, int64_t value) {
  shardscope_record_(SHARDSCOPE_EVENT_SPAN_END, lane, 0, name, id, SHARDSCOPE_NO_ID, value, 0);
}
/* State of a caching allocator. `reserved_bytes`: allocated from the driver. `inactive_split_bytes`: free
   pieces of blocks that are partly in use. `retries`: how often so far it freed its cache and tried again.
   `ooms`: how often it failed. */
static inline void shardscope_allocator_state(uint8_t pool, int64_t reserved_bytes,
    int64_t inactive_split_bytes, uint32_t retries, uint32_t ooms) {
  shardscope_record_(SHARDSCOPE_EVENT_ALLOCATOR_STATE, SHARDSCOPE_LANE_HOST, pool, retries, ooms,
      SHARDSCOPE_NO_ID, reserved_bytes, inactive_split_bytes);
}
/* Mean loss of an evaluation after `step` on held-out data, over `batches` batches of this rank. Every rank
   has the same number of batches. */
static inline void shardscope_eval_loss(uint32_t step, uint32_t batches, double value) {
  shardscope_record_(SHARDSCOPE_EVENT_EVAL_LOSS, SHARDSCOPE_LANE_HOST, 0, step, batches, SHARDSCOPE_NO_ID,
      shardscope_bits_(value), 0);
}
/* As trace_mode, for a batch of an evaluation after `step`. Except in DeepSpeed, evaluation has a fetch trace
   of its own. */
static inline void shardscope_eval_trace_mode(uint8_t mode, uint32_t step) {
  shardscope_record_(SHARDSCOPE_EVENT_EVAL_TRACE_MODE, SHARDSCOPE_LANE_HOST, mode, SHARDSCOPE_NO_ID, step,
      SHARDSCOPE_NO_ID, 0, 0);
}
/* Contents of this rank's micro-batch. For a batch of an evaluation after `step`, `micro_step` is absent. */
static inline void shardscope_micro_batch(uint32_t micro_step, uint32_t step, uint32_t samples,
    int64_t tokens, int64_t padding) {
  shardscope_record_(SHARDSCOPE_EVENT_MICRO_BATCH, SHARDSCOPE_LANE_HOST, 0, micro_step, step, samples, tokens,
      padding);
}
/* The first gradient in this rank's partition that was infinite or NaN in a step, in the order in which
   backward completed them. `position`: its place in that order; absent: not known, and `param` is the last
   such parameter by id. `elems`: its infinite or NaN elements in the partition; 0: at least one.
   `other_params`: further parameters of the partition with such gradients; -1: not counted. */
static inline void shardscope_gradient_not_finite(uint8_t infinite, uint8_t nan, uint32_t step,
    uint32_t param, uint32_t position, int64_t elems, int64_t other_params) {
  shardscope_record_(SHARDSCOPE_EVENT_GRADIENT_NOT_FINITE, SHARDSCOPE_LANE_HOST,
      (uint8_t)((uint32_t)(infinite != 0) | (uint32_t)(nan != 0) << 1), step, param, position, elems,
      other_params);
}
/* Time of a step in which computation was idle because the host had not queued the next operation, minus the
   time in which the host thread waited itself. */
static inline void shardscope_host_late(uint32_t step, int64_t idle_ns) {
  shardscope_record_(SHARDSCOPE_EVENT_HOST_LATE, SHARDSCOPE_LANE_HOST, 0, step, SHARDSCOPE_NO_ID,
      SHARDSCOPE_NO_ID, idle_ns, 0);
}
/* A value of a counter of your own, valid until the next one. `name` and `unit` (or SHARDSCOPE_NO_ID): from
   shardscope_name_id(). `accumulated` not 0: the value only grows (joules, bytes sent), and viewers show its
   rate. */
static inline void shardscope_counter(uint8_t accumulated, uint32_t name, uint32_t unit, double value) {
  shardscope_record_(SHARDSCOPE_EVENT_COUNTER, SHARDSCOPE_LANE_HOST, accumulated, name, unit, SHARDSCOPE_NO_ID,
      shardscope_bits_(value), 0);
}
/* end of what is written */
/* clang-format on */

#endif
